//go:build deployed

package deployed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// asks sends a request to the deployed api as API Gateway would, signed by that account, and decodes its answer.
func (b *bench) asks(account, route, path string, body, answer any) (status int) {
	b.t.Helper()
	method, _, _ := strings.Cut(route, " ")
	path, query, _ := strings.Cut(path, "?")
	event := map[string]any{
		"version": "2.0", "routeKey": route, "rawPath": path, "rawQueryString": query, "headers": map[string]string{"content-type": "application/json"},
		"pathParameters": parameters(route, path), "queryStringParameters": queries(query),
		"requestContext": map[string]any{
			"accountId": account, "routeKey": route, "stage": "$default", "http": map[string]string{"method": method, "path": path},
			"authorizer": map[string]any{"iam": map[string]string{"accountId": account, "userArn": "arn:aws:iam::" + account + ":user/anna"}},
		},
	}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		event["body"] = string(text)
	}
	said, failed := b.invoke("api", event)
	var response struct {
		StatusCode      int
		Body            string
		IsBase64Encoded bool
	}
	if err := json.Unmarshal(said, &response); err != nil || failed {
		b.t.Fatalf("%s: %v: %s", route, err, said)
	}
	text := []byte(response.Body)
	if response.IsBase64Encoded {
		text, _ = base64.StdEncoding.DecodeString(response.Body)
	}
	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			b.t.Fatalf("%s: %d, %v: %s", route, response.StatusCode, err, text)
		}
	}
	return response.StatusCode
}

// parameters are the parts of a path that its route has in braces.
func parameters(route, path string) map[string]string {
	_, pattern, _ := strings.Cut(route, " ")
	found := map[string]string{}
	parts := strings.Split(path, "/")
	for i, name := range strings.Split(pattern, "/") {
		if strings.HasPrefix(name, "{") && i < len(parts) {
			found[strings.Trim(name, "{}")] = parts[i]
		}
	}
	return found
}

func queries(query string) map[string]string {
	found := map[string]string{}
	for _, pair := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' }) {
		name, value, _ := strings.Cut(pair, "=")
		found[name] = value
	}
	return found
}

// submitted is the answer to a submission.
type submitted struct{ Job struct{ ID, Status string } }

// upload puts a document where the api says.
func (b *bench) upload(document string) (name string) {
	b.t.Helper()
	body, err := os.ReadFile(document)
	if err != nil {
		b.t.Fatal(err)
	}
	var offered struct {
		Upload, URL string
		Headers     map[string]string
	}
	if status := b.asks(tenant, "POST /uploads", "/uploads", map[string]any{"bytes": len(body)}, &offered); status != http.StatusCreated {
		b.t.Fatalf("an upload: %d", status)
	}
	r, err := http.NewRequest(http.MethodPut, offered.URL, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range offered.Headers {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b.t.Fatalf("put the document: %s", resp.Status)
	}
	return offered.Upload
}

// ends waits until a job has ended, and says how.
func (b *bench) ends(job string) string {
	b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var watched struct {
			Standing struct{ Job struct{ Status string } }
		}
		b.asks(tenant, "GET /jobs/{job}/watch", "/jobs/"+job+"/watch?after=0&wait=5", nil, &watched)
		switch status := watched.Standing.Job.Status; status {
		case "completed", "partial", "failed", "cancelled":
			return status
		}
	}
	b.t.Fatalf("job %s did not end", job)
	return ""
}

func TestAReviewByTheAPIFromUploadToRedrive(t *testing.T) {
	b := newBench(t)
	b.deploy("offline-fail=refused=5%")
	b.hurry()
	document := map[string]any{"name": "contract.txt", "profile": "compact", "fresh": true, "upload": b.upload(b.document(30_000))}
	var job submitted
	if status := b.asks(tenant, "POST /jobs", "/jobs", document, &job); status != http.StatusAccepted {
		t.Fatalf("submit: %d", status)
	}
	id := job.Job.ID
	under := func(method, what string) (route, path string) {
		return fmt.Sprintf("%s /jobs/{job}%s", method, what), "/jobs/" + id + what
	}
	for _, what := range []string{"/pause", "/resume"} {
		route, path := under("POST", what)
		if status := b.asks(tenant, route, path, nil, nil); status >= 500 {
			t.Errorf("%s: %d", route, status)
		}
	}
	if status := b.ends(id); status != "partial" {
		t.Fatalf("the job is %s, want partial: one in twenty tries was refused", status)
	}
	for _, what := range []string{"", "/report", "/why", "/why/0"} {
		route, path := under("GET", what)
		route = strings.Replace(route, "/why/0", "/why/{task}", 1)
		if status := b.asks(tenant, route, path, nil, nil); status != http.StatusOK {
			t.Errorf("%s: %d", route, status)
		}
		if status := b.asks("111122223333", route, path, nil, nil); status != http.StatusNotFound {
			t.Errorf("%s of another tenant: %d, want that there is no such job", route, status)
		}
	}
	for _, path := range []string{"/jobs", "/dead-letters"} {
		if status := b.asks(tenant, "GET "+path, path, nil, nil); status != http.StatusOK {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	b.deploy() // nothing is refused any more
	route, path := under("POST", "/redrive")
	if status := b.asks(tenant, route, path, map[string]any{}, nil); status >= 300 {
		t.Fatalf("redrive: %d", status)
	}
	if status := b.ends(id); status != "completed" {
		t.Errorf("after the redrive the job is %s, want completed", status)
	}
	route, path = under("POST", "/cancel")
	if status := b.asks(tenant, route, path, nil, nil); status >= 500 {
		t.Errorf("cancel of what has ended: %d", status)
	}
}
