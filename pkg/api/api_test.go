package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/api"
	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

func TestAJobFromItsSubmissionToItsReport(t *testing.T) {
	in(t, "every route", func(d *desk) {
		job := d.submitted()
		if job.Tenant != "123456789012" {
			d.Errorf("got the tenant %q", job.Tenant)
		}
		var again answered
		if d.ask("POST /jobs", map[string]any{"name": "contract.txt", "text": contract, "profile": "compact"}, &again); !again.Stood || again.Job.ID != job.ID {
			d.Errorf("got %+v, want the same job", again)
		}
		at := "/jobs/" + string(job.ID)
		d.refused(http.StatusConflict, "it has ended", "GET "+at+"/report", nil)
		var paused answered
		if d.ask("POST "+at+"/pause", nil, &paused); paused.Job.Status != pipeline.JobPaused {
			d.Errorf("got %s", paused.Job.Status)
		}
		d.refused(http.StatusConflict, "only a planned job can be started", "POST "+at+"/start", nil)
		d.ask("POST "+at+"/resume", "{}", nil)
		d.works(job.ID)
		var standing struct {
			Job    pipeline.Job
			Counts pipeline.Counts
		}
		d.ask("GET "+at, nil, &standing)
		if standing.Job.Status != pipeline.JobCompleted || standing.Counts.Answered == 0 || standing.Counts.Answered+standing.Counts.Gated != standing.Counts.Cells {
			d.Errorf("got %+v", standing)
		}
		for format, want := range map[string]string{"html": "<!DOCTYPE html>", "markdown": "# ", "json": `"findings"`, "answers": `"call"`, "": "<!DOCTYPE html>"} {
			edits := []edit{query("format", format)}
			if format == "" {
				edits = nil
			}
			answer := d.ask("GET "+at+"/report", nil, nil, edits...)
			if answer.StatusCode != http.StatusOK || !strings.Contains(strings.ToLower(answer.Body), strings.ToLower(want)) || answer.Headers["cache-control"] != "private, no-store" {
				d.Errorf("%q: got %d %s %.100q", format, answer.StatusCode, answer.Headers, answer.Body)
			}
		}
		d.refused(http.StatusBadRequest, "the formats are answers, html, json, markdown", "GET "+at+"/report", nil, query("format", "docx"))
		if answer := d.ask("GET "+at+"/why", nil, nil); answer.StatusCode != http.StatusOK || !strings.Contains(answer.Body, `"ended":true`) {
			d.Errorf("got %d %s", answer.StatusCode, answer.Body)
		}
		for _, task := range []string{"0", "split", "finalize", "work%2300000"} {
			if answer := d.ask("GET "+at+"/why/"+task, nil, nil); answer.StatusCode != http.StatusOK || !strings.Contains(answer.Body, `"attempts":[{`) {
				d.Errorf("%s: got %d %s", task, answer.StatusCode, answer.Body)
			}
		}
		d.refused(http.StatusNotFound, "has no work#00099", "GET "+at+"/why/99", nil)
		d.refused(http.StatusBadRequest, "names no task", "GET "+at+"/why/first", nil)
		d.refused(http.StatusConflict, "nothing is missing", "POST "+at+"/redrive", nil)
		d.refused(http.StatusConflict, "nothing left to cancel", "POST "+at+"/cancel", map[string]string{"reason": "late"})
		var listed struct {
			Tenant string
			Jobs   []pipeline.Job
			Next   string
		}
		if d.ask("GET /jobs", nil, &listed); listed.Tenant != "123456789012" || len(listed.Jobs) != 1 || listed.Jobs[0].ID != job.ID {
			d.Errorf("got %+v", listed)
		}
		if answer := d.ask("GET /dead-letters", nil, nil); !strings.Contains(answer.Body, `"dead_letters":[]`) {
			d.Errorf("got %s", answer.Body)
		}
		for _, op := range []string{"Claim", "Renew", "Checkpoint", "End", "Expire"} {
			if d.used[op] {
				d.Errorf("the api made a %s: only workers and the reaper do", op)
			}
		}
	})
	in(t, "a document that was uploaded, held, started and cancelled", func(d *desk) {
		var offered struct {
			Upload, URL string
			Headers     map[string]string
		}
		answer := d.ask("POST /uploads", map[string]int{"bytes": len(contract)}, &offered)
		if answer.StatusCode != http.StatusCreated || offered.Headers["Content-Length"] != fmt.Sprint(len(contract)) {
			d.Fatalf("got %d %s", answer.StatusCode, answer.Body)
		}
		key, _ := strings.CutPrefix(offered.URL, "https://blobs/")
		submission := map[string]any{"name": "contract.txt", "upload": offered.Upload, "profile": "compact", "hold": true, "max_cost": 2.5}
		d.refused(http.StatusBadRequest, "nothing was put under the upload id-1", "POST /jobs", submission)
		d.must(d.back.Blobs.PutBlob(d.ctx, key, []byte(contract)))
		d.refused(http.StatusBadRequest, "nothing was put", "POST /jobs", submission, account("210987654321")) // it is another tenant's
		var got answered
		d.ask("POST /jobs", submission, &got)
		if got.Job.Status != pipeline.JobPlanned || got.Job.MaxCost != pipeline.Dollar*5/2 {
			d.Errorf("got %+v", got.Job)
		}
		at := "/jobs/" + string(got.Job.ID)
		d.refused(http.StatusConflict, "only a paused job can be resumed", "POST "+at+"/resume", nil)
		if d.ask("POST "+at+"/cancel", map[string]string{"reason": "wrong contract"}, &got); got.Job.Status != pipeline.JobCancelling || got.Job.Reason.Cause != "wrong contract" {
			d.Errorf("got %+v", got.Job)
		}
		if job := d.works(got.Job.ID); job.Status != pipeline.JobCancelled {
			d.Errorf("got %s", job.Status)
		}
	})
}

// Only the size of an upload is part of its address: S3 refuses any other. What a file is shows when it is read.
func TestAnUploadThatIsNoDocumentBecomesAJobThatFailedAndSaysWhatToDo(t *testing.T) {
	in(t, "whatever its name says", func(d *desk) {
		var offered struct{ Upload, URL string }
		picture := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), make([]byte, 500)...)
		d.ask("POST /uploads", map[string]int{"bytes": len(picture)}, &offered)
		d.must(d.back.Blobs.PutBlob(d.ctx, strings.TrimPrefix(offered.URL, "https://blobs/"), picture))
		var got answered
		d.ask("POST /jobs", map[string]any{"name": "contract.pdf", "upload": offered.Upload, "profile": "compact"}, &got)
		job := d.works(got.Job.ID)
		if job.Status != pipeline.JobFailed {
			d.Errorf("got %s", job.Status)
		}
		var why struct{ Tasks []pipeline.TaskEnd }
		d.ask("GET /jobs/"+string(job.ID)+"/why", nil, &why)
		if len(why.Tasks) != 1 || !strings.Contains(why.Tasks[0].Reason.String(), "DOCX, PDF") {
			d.Errorf("got %+v, want what can be read", why.Tasks)
		}
	})
}

func TestOneTenantNeverSeesAnothersJob(t *testing.T) {
	in(t, "by any route", func(d *desk) {
		job := d.submitted()
		for _, route := range config.Routes() {
			if !strings.Contains(route.Path, "{job}") {
				continue
			}
			line := strings.NewReplacer("{job}", string(job.ID), "{task}", "0").Replace(route.Key())
			theirs := d.ask(line, nil, nil, account("210987654321"))
			nobodys := d.ask(strings.Replace(line, string(job.ID), "0000000000-1", 1), nil, nil, account("210987654321"))
			if theirs.StatusCode != http.StatusNotFound || theirs.Body != strings.ReplaceAll(nobodys.Body, "0000000000-1", string(job.ID)) {
				d.Errorf("%s: got %d %s, want the same as for a job that is not there: %s", line, theirs.StatusCode, theirs.Body, nobodys.Body)
			}
		}
		if answer := d.ask("GET /jobs", nil, nil, account("210987654321")); strings.Contains(answer.Body, string(job.ID)) {
			d.Errorf("got %s", answer.Body)
		}
		stands, err := d.back.Store.Job(d.ctx, job.ID)
		d.must(err)
		if stands != job {
			d.Errorf("the job was changed: %+v", stands)
		}
	})
	in(t, "nor its dead letters, nor those that are about nothing", func(d *desk) {
		job := d.submitted()
		split := pipeline.Ref{Job: job.ID, ID: pipeline.SplitTask}
		row, err := d.back.Store.Task(d.ctx, split)
		d.must(err)
		d.must(d.back.Queues.Control.Bury(d.ctx, pipeline.DeadLetter{Body: pipeline.Encode(row.Message()), Job: job.ID, Task: row.ID}))
		d.must(d.back.Queues.Work.Bury(d.ctx, pipeline.DeadLetter{Body: []byte("secret")}))
		var letters struct {
			DeadLetters []json.RawMessage `json:"dead_letters"`
		}
		if d.ask("GET /dead-letters", nil, &letters); len(letters.DeadLetters) != 1 {
			d.Errorf("got %s, want one's own", letters.DeadLetters)
		}
		if d.ask("GET /dead-letters", nil, &letters, account("210987654321")); len(letters.DeadLetters) != 0 {
			d.Errorf("got %s", letters.DeadLetters)
		}
	})
	in(t, "who asks is what the setting says, and nobody is nobody", func(d *desk) {
		lambdaSays := func(e *events.APIGatewayV2HTTPRequest) {
			e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"team": "legal", "n": 7}}
		}
		for _, c := range []struct {
			from   config.TenantFrom
			who    edit
			status int
			tenant string
		}{
			{config.TenantFrom{Kind: config.TenantAccount}, account("123456789012"), http.StatusAccepted, "123456789012"},
			{config.TenantFrom{Kind: config.TenantUser}, account("123456789012"), http.StatusAccepted, "arn:aws:sts::123456789012:assumed-role/Reviewer"},
			{config.TenantFrom{Kind: config.TenantClaim, Value: "team"}, token(map[string]string{"team": "legal"}), http.StatusAccepted, "legal"},
			{config.TenantFrom{Kind: config.TenantClaim, Value: "team"}, lambdaSays, http.StatusAccepted, "legal"},
			{config.TenantFrom{Kind: config.TenantOnly, Value: "us"}, token(map[string]string{}), http.StatusAccepted, "us"},
			{config.TenantFrom{Kind: config.TenantOnly, Value: "us"}, anonymous, http.StatusUnauthorized, ""},
			{config.TenantFrom{Kind: config.TenantAccount}, anonymous, http.StatusUnauthorized, ""},
			{config.TenantFrom{Kind: config.TenantAccount}, token(map[string]string{"team": "legal"}), http.StatusForbidden, ""},
			{config.TenantFrom{Kind: config.TenantUser}, lambdaSays, http.StatusForbidden, ""},
			{config.TenantFrom{Kind: config.TenantClaim, Value: "team"}, account("123456789012"), http.StatusForbidden, ""},
			{config.TenantFrom{Kind: config.TenantClaim, Value: "n"}, lambdaSays, http.StatusForbidden, ""},
			{config.TenantFrom{Kind: config.TenantClaim, Value: "team"}, token(map[string]string{"team": "a\nb"}), http.StatusForbidden, ""},
			{config.TenantFrom{Kind: config.TenantClaim, Value: "team"}, token(map[string]string{"team": strings.Repeat("x", 300)}), http.StatusForbidden, ""},
		} {
			d.cfg.TenantFrom = c.from
			var got answered
			answer := d.ask("POST /jobs", map[string]any{"name": "contract.txt", "text": contract, "profile": "compact"}, &got, c.who)
			if answer.StatusCode != c.status || got.Job.Tenant != c.tenant {
				d.Errorf("%+v: got %d and the tenant %q, want %d and %q", c.from, answer.StatusCode, got.Job.Tenant, c.status, c.tenant)
			}
		}
	})
}

func TestBadRequestsAreToldWhatToDo(t *testing.T) {
	in(t, "each with a sentence", func(d *desk) {
		good := func(edits map[string]any) map[string]any {
			all := map[string]any{"name": "contract.txt", "text": contract, "profile": "compact"}
			for name, value := range edits {
				all[name] = value
				if value == nil {
					delete(all, name)
				}
			}
			return all
		}
		for says, body := range map[string]any{
			"unexpected EOF":                         "{",
			"send one JSON object":                   "[]",
			"something after the JSON object":        "{} {}",
			`unknown field "profil"`:                 good(map[string]any{"profil": "x"}),
			"name is the document's":                 good(map[string]any{"name": nil}),
			"without slashes":                        good(map[string]any{"name": "../contract.txt"}),
			"bytes that can be printed":              good(map[string]any{"name": "contract\x1b[2J.txt"}),
			"that can be printed, without":           good(map[string]any{"name": "contract\u202etxt.exe"}),
			"1 to 200 bytes":                         good(map[string]any{"name": " "}),
			"the least is $0.000000001":              good(map[string]any{"max_cost": 1e-10}),
			"upload is what POST":                    good(map[string]any{"text": nil, "upload": strings.Repeat("a", 2000)}),
			"upload is what POST /uploads":           good(map[string]any{"text": nil, "upload": "a\x00\nb"}),
			"upload is what POST /uploads called":    good(map[string]any{"text": nil, "upload": "é"}),
			"send the document either as text":       good(map[string]any{"text": nil}),
			"as the upload that POST /uploads named": good(map[string]any{"upload": "id-1"}),
			"upload is what":                         good(map[string]any{"text": nil, "upload": "../../source/abc"}),
			"the shipped ones are contract-review":   good(map[string]any{"pipeline": "/etc/passwd.yaml"}),
			"compact":                                good(map[string]any{"profile": "huge"}),
			"max_cost is an amount of dollars":       good(map[string]any{"max_cost": -1}),
			"cannot unmarshal string":                good(map[string]any{"max_cost": "2.50"}),
		} {
			d.refused(http.StatusBadRequest, says, "POST /jobs", body)
		}
		d.refused(http.StatusRequestEntityTooLarge, "POST /uploads says", "POST /jobs", good(map[string]any{"text": strings.Repeat("x", 5<<20)}))
		d.refused(http.StatusBadRequest, "no base64", "POST /jobs", "{}", func(e *events.APIGatewayV2HTTPRequest) { e.IsBase64Encoded, e.Body = true, "%%%" })
		d.refused(http.StatusBadRequest, "bytes is the size", "POST /uploads", map[string]int{"bytes": 0})
		d.refused(http.StatusBadRequest, "bytes is the size", "POST /uploads", map[string]int{"bytes": api.MaxDocument + 1})
		d.refused(http.StatusNotFound, "there are: POST /uploads, POST /jobs", "DELETE /jobs", nil)
		d.refused(http.StatusNotFound, "tenant 123456789012 has no job", "GET /jobs/"+strings.Repeat("9", 200), nil)
		job := d.submitted()
		at := "/jobs/" + string(job.ID)
		d.refused(http.StatusBadRequest, "limit is a whole number from 1 to 100", "GET /jobs", nil, query("limit", "0"))
		d.refused(http.StatusBadRequest, "cursor is the next of the last answer", "GET /jobs", nil, query("cursor", strings.Repeat("9", 2000)))
		d.refused(http.StatusBadRequest, "cursor is the next of the last answer", "GET /jobs", nil, query("cursor", "1\x00#"))
		d.refused(http.StatusBadRequest, "one line that can be printed", "POST "+at+"/cancel", map[string]any{"reason": "wrong\n\x1b[31mcontract"})
		d.refused(http.StatusBadRequest, "the least is", "POST "+at+"/redrive", map[string]any{"max_cost": 1e-12})
		d.refused(http.StatusBadRequest, "wait is a whole number from 0 to 20", "GET "+at+"/watch", nil, query("wait", "60"))
		d.refused(http.StatusBadRequest, "after is the cursor", "GET "+at+"/watch", nil, query("after", "x"))
		d.refused(http.StatusBadRequest, "names no task", "POST "+at+"/redrive", map[string]any{"tasks": []string{"all"}})
		d.refused(http.StatusBadRequest, "at most 200 are kept", "POST "+at+"/cancel", map[string]any{"reason": strings.Repeat("x", 201)})
		d.refused(http.StatusBadRequest, `unknown field "reason"`, "POST "+at+"/pause", map[string]any{"reason": "x"})
		d.cfg.MaxCost = pipeline.Dollar
		d.refused(http.StatusBadRequest, "allows a job $1.00 at most", "POST /jobs", good(map[string]any{"max_cost": 2}))
		d.cfg.Backend.Shared = nil
		d.refused(http.StatusNotImplemented, "send the text in the submission", "POST /uploads", map[string]int{"bytes": 10})
	})
	in(t, "a name in any script is one, with the spaces of any system", func(d *desk) {
		for n, name := range []string{"Vertrag\u00a0№ 7.pdf", "截屏\u202f10.00.txt", "قرارداد\u200cها.txt", "👩\u200d⚖️.txt"} {
			var got answered
			d.ask("POST /jobs", map[string]any{"name": name, "text": fmt.Sprint(contract, n), "profile": "compact"}, &got)
			if got.Job.Name != name {
				d.Errorf("got %q, want %q", got.Job.Name, name)
			}
		}
	})
	in(t, "a ceiling of the deployment holds for whoever says nothing", func(d *desk) {
		d.cfg.MaxCost = pipeline.Dollar
		if job := d.submitted(); job.MaxCost != pipeline.Dollar {
			d.Errorf("got a ceiling of %s", job.MaxCost)
		}
	})
	in(t, "base64 is decoded", func(d *desk) {
		body := base64.StdEncoding.EncodeToString(pipeline.Encode(map[string]any{"name": "contract.txt", "text": contract}))
		answer := d.ask("POST /jobs", body, nil, func(e *events.APIGatewayV2HTTPRequest) { e.IsBase64Encoded = true })
		if answer.StatusCode != http.StatusAccepted {
			d.Errorf("got %d %s", answer.StatusCode, answer.Body)
		}
	})
	in(t, "what is not the caller's fault says nothing of the inside, and is in the log", func(d *desk) {
		job := d.submitted()
		d.fails = func(op string) error { return fmt.Errorf("table blue-pipeline: secret detail") }
		answer := d.ask("GET /jobs/"+string(job.ID), nil, nil)
		if answer.StatusCode != http.StatusInternalServerError || strings.Contains(answer.Body, "secret") || !strings.Contains(d.log.String(), "secret detail") {
			d.Errorf("got %d %s, log %s", answer.StatusCode, answer.Body, d.log.String())
		}
		d.fails = func(op string) error { return fmt.Errorf("job x: %w; update what runs this", pipeline.ErrNewer) }
		d.refused(http.StatusConflict, "written by a newer version of Holdfast; update", "GET /jobs/"+string(job.ID), nil)
		d.fails = func(op string) error { return pipeline.ErrBusy }
		if answer := d.ask("GET /jobs/"+string(job.ID), nil, nil); answer.StatusCode != http.StatusServiceUnavailable || answer.Headers["retry-after"] == "" {
			d.Errorf("got %d %v", answer.StatusCode, answer.Headers)
		}
		d.fails = func(op string) error { panic("a bug") }
		if answer := d.ask("GET /jobs/"+string(job.ID), nil, nil); answer.StatusCode != http.StatusInternalServerError {
			d.Errorf("got %d", answer.StatusCode)
		}
	})
}

func TestWatch(t *testing.T) {
	type watched struct {
		Standing struct{ Job pipeline.Job }
		Findings []pipeline.FindingGroup
		After    int64
		Seen     string
		More     bool
	}
	in(t, "it waits for news, no longer than was asked, and tells each finding once", func(d *desk) {
		job := d.submitted()
		line := "GET /jobs/" + string(job.ID) + "/watch"
		var first watched
		began := d.clock.Mono()
		d.ask(line, nil, &first)
		if took := d.clock.Mono() - began; took != 0 || first.Seen == "" {
			d.Errorf("got %+v after %v, want the first look at once", first, took)
		}
		began = d.clock.Mono()
		d.ask(line, nil, nil, query("seen", first.Seen, "wait", "7"))
		if took := d.clock.Mono() - began; took < 6*time.Second || took > 7*time.Second {
			d.Errorf("it waited %v without news, want 7 s", took)
		}
		go func() {
			_ = d.clock.Sleep(d.ctx, 3*time.Second)
			d.works(job.ID)
		}()
		var groups []int64
		last, after := first, int64(0)
		for n := 0; !last.Standing.Job.Status.Ended() && n < 50; n++ {
			d.ask(line, nil, &last, query("seen", last.Seen, "after", fmt.Sprint(after), "wait", "20"))
			for _, g := range last.Findings {
				groups = append(groups, g.Seq)
			}
			after = last.After
		}
		if last.Standing.Job.Status != pipeline.JobCompleted || len(groups) == 0 || !slices.IsSorted(groups) || len(slices.Compact(slices.Clone(groups))) != len(groups) {
			d.Errorf("got %s and the groups %v, want each once, in order", last.Standing.Job.Status, groups)
		}
		began = d.clock.Mono()
		d.ask(line, nil, nil, query("seen", last.Seen, "after", fmt.Sprint(after), "wait", "20"))
		if took := d.clock.Mono() - began; took != 0 {
			d.Errorf("it waited %v for a job that has ended", took)
		}
		synctest.Wait()
	})
}

func TestARouteForEachThatTheStackMakes(t *testing.T) {
	in(t, "no more and no less", func(d *desk) {
		for _, route := range config.Routes() {
			answer := d.ask(strings.NewReplacer("{job}", "1", "{task}", "1").Replace(route.Key()), nil, nil)
			if strings.Contains(answer.Body, "here; there are") {
				d.Errorf("%s is not answered", route.Key())
			}
		}
		if got := api.New(d.cfg).Routes(); len(got) != len(config.Routes()) {
			d.Errorf("the api knows %v, and the stack makes %v", got, config.Routes())
		}
	})
}
