package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

// buried gives every task of a job a dead letter with a cause of so many bytes.
func (d *desk) buried(id pipeline.JobID, bytes int) {
	d.Helper()
	rows, err := pipeline.AllTasks(d.ctx, d.back.Store, id)
	d.must(err)
	for _, row := range rows {
		d.must(d.back.Queues.Work.Bury(d.ctx, pipeline.DeadLetter{
			Job: id, Task: row.ID, Reason: pipeline.Failure{Kind: pipeline.Broken, Cause: strings.Repeat("<", bytes)},
		}))
	}
}

func TestAnAnswerThatIsTooLargeToBeSentIsPutWhereItCanBeGot(t *testing.T) {
	in(t, "of any route, under a name that nobody can guess", func(d *desk) {
		job := d.submitted()
		d.works(job.ID)
		d.buried(job.ID, 50_000)
		small := d.ask("GET /dead-letters", nil, nil)
		if small.StatusCode != http.StatusOK || strings.Count(small.Body, `"row"`) < 3 {
			d.Fatalf("got %d %.300s, want a letter for each task", small.StatusCode, small.Body)
		}
		d.buried(job.ID, 600_000) // each < becomes six bytes on its way through Lambda
		var elsewhere struct{ URL string }
		answer := d.ask("GET /dead-letters", nil, &elsewhere)
		key, typed, _ := strings.Cut(strings.TrimPrefix(elsewhere.URL, "https://blobs/"), "?as=")
		if answer.StatusCode != http.StatusSeeOther || answer.Headers["location"] != elsewhere.URL || typed != "application/json" {
			d.Fatalf("got %d %v %.300s, want where it is", answer.StatusCode, answer.Headers, answer.Body)
		}
		if !strings.HasPrefix(key, config.AnswerPrefix) || !strings.HasSuffix(key, "/id-1") {
			d.Errorf("it is at %s", key)
		}
		body, err := d.back.Blobs.Blob(d.ctx, key)
		d.must(err)
		var letters struct {
			DeadLetters []json.RawMessage `json:"dead_letters"`
		}
		if err := json.Unmarshal(body, &letters); err != nil || len(letters.DeadLetters) != strings.Count(small.Body, `"row"`) {
			d.Errorf("got %d letters in %d bytes (%v)", len(letters.DeadLetters), len(body), err)
		}
		d.cfg.Backend.Shared = nil
		d.refused(http.StatusRequestEntityTooLarge, "ask with the command line", "GET /dead-letters", nil)
	})
}

// What is read for an answer grows with the document. That of one with 3,300 cells has to fit: into what Lambda sends,
// and, with reads of 20 ms one after the other, many times over into the request's time.
func TestAReviewOf3300CellsIsAnsweredInOneRequest(t *testing.T) {
	in(t, "by every route that reads", func(d *desk) {
		text, err := os.ReadFile("../pipelines/documents/cuad-worldwide-reseller.txt")
		d.must(err)
		var got answered
		d.ask("POST /jobs", map[string]any{"name": "contract.txt", "text": strings.Repeat(string(text), 2)[:reviewBytes]}, &got)
		job := d.works(got.Job.ID)
		at := "/jobs/" + string(job.ID)
		var standing struct{ Counts pipeline.Counts }
		if d.ask("GET "+at, nil, &standing); job.Status != pipeline.JobCompleted || standing.Counts.Cells < reviewCells {
			d.Fatalf("got %s with %+v", job.Status, standing.Counts)
		}
		d.slow = 20 * time.Millisecond
		for _, c := range []struct {
			line, format string
		}{{"", ""}, {"/watch", ""}, {"/why", ""}, {"/why/0", ""}, {"/report", "html"}, {"/report", "markdown"}, {"/report", "json"}, {"/report", "answers"}} {
			began := d.clock.Mono()
			answer := d.ask("GET "+at+c.line, nil, nil, query("format", c.format))
			took := d.clock.Mono() - began
			sent, err := json.Marshal(answer)
			d.must(err)
			d.Logf("%s %s: %d, %d bytes, %v", c.line, c.format, answer.StatusCode, len(sent), took)
			if answer.StatusCode != http.StatusOK || took > config.APITimeout/4 || len(sent) > 1<<20 {
				d.Errorf("%s: got %d with %d bytes after %v", c.line, answer.StatusCode, len(sent), took)
			}
		}
	})
}

func TestARequestThatTakesTooLongIsToldSoInTime(t *testing.T) {
	in(t, "before the gateway gives up", func(d *desk) {
		job := d.submitted()
		d.works(job.ID)
		d.slow = 10 * time.Second
		began := d.clock.Mono()
		d.refused(http.StatusGatewayTimeout, "holdfast report", "GET /jobs/"+string(job.ID)+"/report", nil)
		if took := d.clock.Mono() - began; took < config.APITimeout-5*time.Second {
			d.Errorf("it gave up after %v, and had %v", took, config.APITimeout)
		}
		d.slow = 0
		if answer := d.ask("GET /jobs/"+string(job.ID)+"/report", nil, nil); answer.StatusCode != http.StatusOK {
			d.Errorf("got %d %s", answer.StatusCode, answer.Body)
		}
	})
}
