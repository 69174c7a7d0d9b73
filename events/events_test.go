package events_test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"go.uber.org/goleak"

	"holdfast/pkg/config"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files are the events, each with the type that its function takes.
func files(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	found, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		switch name {
		case "control.json", "work.json":
			all[name] = &events.SQSEvent{}
		case "reap.json":
			all[name] = &events.EventBridgeEvent{}
		default:
			all[name] = &events.APIGatewayV2HTTPRequest{}
		}
	}
	return all
}

func read(t *testing.T, name string, into any) []byte {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return body
}

// Nothing of an event is lost on its way through the types, and what they add is empty.
func TestEventsAreDecodedAndEncodedBackToTheSame(t *testing.T) {
	for name, typed := range files(t) {
		body := read(t, name, typed)
		again, err := json.Marshal(typed)
		if err != nil {
			t.Fatal(err)
		}
		var before, after any
		if err := json.Unmarshal(body, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &after); err != nil {
			t.Fatal(err)
		}
		for _, difference := range differences("", before, after) {
			t.Errorf("%s: %s", name, difference)
		}
	}
}

// differences are where two values differ; a field that only the second has may be there if it is empty.
func differences(at string, before, after any) (all []string) {
	switch before := before.(type) {
	case map[string]any:
		other, is := after.(map[string]any)
		if !is {
			return []string{fmt.Sprintf("%s became %v", at, after)}
		}
		for key, value := range before {
			all = append(all, differences(at+"."+key, value, other[key])...)
		}
		for key, value := range other {
			if _, has := before[key]; !has && !empty(value) {
				all = append(all, fmt.Sprintf("%s.%s was added: %v", at, key, value))
			}
		}
	case []any:
		other, is := after.([]any)
		if !is || len(other) != len(before) {
			return []string{fmt.Sprintf("%s became %v", at, after)}
		}
		for i, value := range before {
			all = append(all, differences(fmt.Sprintf("%s[%d]", at, i), value, other[i])...)
		}
	default:
		if before != after && !(empty(before) && empty(after)) {
			all = append(all, fmt.Sprintf("%s was %v and became %v", at, before, after))
		}
	}
	return all
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if !empty(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return v == "" || v == 0.0 || v == false
}

// submission is what the event of the submission submits.
func submission(t *testing.T) (tenant string, source []byte, d pipeline.Definition) {
	t.Helper()
	var e events.APIGatewayV2HTTPRequest
	read(t, "api-submit.json", &e)
	var body struct{ Text, Pipeline, Profile string }
	if err := json.Unmarshal([]byte(e.Body), &body); err != nil {
		t.Fatal(err)
	}
	d, err := pipelines.Load(body.Pipeline, body.Profile)
	if err != nil {
		t.Fatal(err)
	}
	return e.RequestContext.Authorizer.IAM.AccountID, []byte(body.Text), d
}

// All of the events are about the job that the submission makes with the offline model: handed to their functions one
// after the other, they take it from its submission to its report.
func TestEventsAreAboutTheJobThatTheSubmissionMakes(t *testing.T) {
	tenant, source, d := submission(t)
	hash := sha256.Sum256(source)
	info := offline.New(offline.Config{}).Info()
	want := pipeline.NewJobID(tenant, hex.EncodeToString(hash[:]), d.Key(), info.ID(), 1)
	for name := range files(t) {
		body := string(read(t, name, nil))
		if name == "reap.json" || strings.HasPrefix(name, "api-submit") || name == "api-upload.json" || name == "api-list.json" || name == "api-dead-letters.json" {
			continue
		}
		if !strings.Contains(body, string(want)) {
			t.Errorf("%s is about another job; what api-submit.json makes is %s", name, want)
		}
	}
}

func TestThereIsAnEventForEveryRouteAndKindOfAuthorizer(t *testing.T) {
	seen, kinds := map[string]bool{}, map[string]bool{}
	for name, typed := range files(t) {
		e, is := typed.(*events.APIGatewayV2HTTPRequest)
		if !is {
			continue
		}
		read(t, name, e)
		seen[e.RouteKey] = true
		path := strings.TrimPrefix(e.RouteKey, e.RequestContext.HTTP.Method+" ")
		for parameter, value := range e.PathParameters {
			path = strings.ReplaceAll(path, "{"+parameter+"}", value)
		}
		if path != e.RawPath || e.RequestContext.HTTP.Path != path || e.RequestContext.RouteKey != e.RouteKey {
			t.Errorf("%s: %s is at %s and %s", name, e.RouteKey, e.RawPath, e.RequestContext.HTTP.Path)
		}
		who := e.RequestContext.Authorizer
		kinds["iam"] = kinds["iam"] || who.IAM != nil
		kinds["jwt"] = kinds["jwt"] || who.JWT != nil
		kinds["lambda"] = kinds["lambda"] || who.Lambda != nil
	}
	for _, route := range config.Routes() {
		if !seen[route.Key()] {
			t.Errorf("there is no event for %s", route.Key())
		}
	}
	if len(kinds) != 3 || !kinds["iam"] || !kinds["jwt"] || !kinds["lambda"] {
		t.Errorf("got the authorizers %v", kinds)
	}
}

func TestMessagesAreWholeAndOneIsNotOurs(t *testing.T) {
	for _, name := range []string{"control.json", "work.json"} {
		var e events.SQSEvent
		read(t, name, &e)
		foreign := 0
		for _, m := range e.Records {
			sum := md5.Sum([]byte(m.Body))
			if m.Md5OfBody != hex.EncodeToString(sum[:]) {
				t.Errorf("%s: the sum of %s is wrong", name, m.MessageId)
			}
			if _, err := pipeline.DecodeMessage([]byte(m.Body)); err != nil {
				foreign++
			} else if !bytes.Contains([]byte(m.Body), []byte(`"generation":0`)) {
				t.Errorf("%s: got %s", name, m.Body)
			}
		}
		if want := map[string]int{"control.json": 0, "work.json": 1}[name]; foreign != want {
			t.Errorf("%s: got %d that are not ours, want %d", name, foreign, want)
		}
	}
}
