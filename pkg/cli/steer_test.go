package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
)

func TestCancelFromAnotherTerminal(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	doc := d.doc("contract.txt", contract(0, 14_000))
	d.token("line-40-begin", say)
	run := d.starts(d.runArgs(doc, "--workers", "2", "--pace", "200ms", "--concurrency", "8")...)
	d.hears("line-40-begin")
	s := d.system()
	job := d.job(s)
	text := d.does(exitCompleted, "cancel", string(job.ID)[:8], "--reason", "wrong draft")
	returned := pipeline.At(time.Now())
	d.says(text, "is cancelling", "what was answered is kept")
	said := run.ends(exitCancelled)

	t.Run("no question begins later than two seconds after", func(t *testing.T) {
		for _, e := range d.entries() {
			if e.Event == offline.Begin && e.At > returned.Add(2*time.Second) {
				t.Errorf("%s was asked %v after the cancel", e.Key, e.At.Sub(returned))
			}
		}
	})
	t.Run("each open task has the record of the stage at which it was", func(t *testing.T) {
		open := 0
		for _, row := range d.rows(s, job.ID) {
			if row.Status == pipeline.TaskDone {
				continue
			}
			open++
			body, err := s.Backend.Store.Item(t.Context(), job.ID, pipeline.CancellationKey(row.ID))
			d.must(err)
			c, err := pipeline.Decode[pipeline.Cancellation](body, "cancellation")
			d.must(err)
			if want := fmt.Sprintf("cancelled-at-stage-%d", row.Accepted+1); row.Status != pipeline.TaskCancelled || c.Label != want || c.Reason.Cause != "wrong draft" {
				t.Errorf("%s is %s, its record says %q because %q; want cancelled, %q because \"wrong draft\"", row.ID, row.Status, c.Label, c.Reason.Cause, want)
			}
		}
		if open == 0 {
			t.Error("no task was open: it was cancelled too late to show anything")
		}
	})
	t.Run("the run and the report say why, and what was saved", func(t *testing.T) {
		d.says(said, "wrong draft", "(cancelled)", "report.md")
		for name, says := range map[string][]string{
			"report.md":   {"Cancelled:", "questions answered before it was stopped", "wrong draft"},
			"report.html": {"wrong draft", "cancelled-at-stage-"},
		} {
			body, err := os.ReadFile(filepath.Join(d.out, name))
			d.must(err)
			d.says(string(body), says...)
		}
	})
	t.Run("terminal stays terminal", func(t *testing.T) {
		for _, command := range []string{"pause", "resume", "redrive"} {
			d.says(d.does(exitFailed, command, string(job.ID)), "cancelled")
		}
	})
	t.Run("submitted again it is a new run that pays for nothing twice", func(t *testing.T) {
		before := map[pipeline.ReplyKey]bool{}
		for key := range storedReplies(d, s) {
			before[key] = true
		}
		lines := len(d.entries())
		again := d.runs(exitCompleted, doc)
		if again.Job == job.ID || again.Counts.Answered-again.Asked != len(before) || len(before) == 0 {
			t.Errorf("job %s: %d of %d by stored replies, want another job than %s and the %d that were stored", again.Job, again.Counts.Answered-again.Asked, again.Counts.Cells, job.ID, len(before))
		}
		for _, e := range d.entries()[lines:] {
			if e.Event == offline.Begin && before[e.Key] {
				t.Errorf("%s was stored and is asked again", e.Key)
			}
		}
	})
}

func TestPauseAndResume(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	doc := d.doc("contract.txt", contract(0, 9000))
	d.token("line-20-begin", say)
	run := d.starts(d.runArgs(doc, "--pace", "100ms", "--concurrency", "4")...)
	d.hears("line-20-begin")
	job := d.job(d.system())
	d.says(d.does(exitCompleted, "pause", string(job.ID)), "is paused", "holdfast resume "+string(job.ID))
	d.says(d.does(exitCompleted, "status", string(job.ID)), "paused")
	d.says(d.does(exitFailed, d.runArgs(doc)...), "is paused", "holdfast resume")
	d.does(exitCompleted, "resume", string(job.ID))
	text := run.ends(exitCompleted)
	d.says(text, "56 of 56 cells answered")
	if strings.Contains(text, "asked again") {
		t.Errorf("a pause made calls that were asked again:\n%s", text)
	}
}

func TestSubmitAndWorker(t *testing.T) {
	t.Run("started at once, a worker that stops when idle does all of it", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		code, out, errOut := d.holdfast("submit", d.doc("contract.txt", contract(0, 5000)), "--profile", "compact", "--start")
		job := strings.TrimSpace(out)
		if code != exitCompleted || strings.ContainsAny(job, " \n") {
			t.Fatalf("exit code %d, and %q is more than a job's id\n%s", code, out, errOut)
		}
		d.says(d.does(exitCompleted, "status", job), "not split yet", "holdfast worker")
		d.does(exitCompleted, "worker", "--idle", "--ledger", d.ledger)
		d.says(d.does(exitCompleted, "watch", job), "28 of 28 cells answered")
		d.says(d.does(exitCompleted, "report", job, "--out", d.out), "report.html", "findings.json")
		d.says(d.does(exitCompleted, "jobs"), job, "completed", "contract.txt")
		d.says(d.does(exitCompleted, "why", job), "nothing is missing")
		d.says(d.does(exitCompleted, "why", job, "0"), "TIER TWO", "TIER ONE  28 tries")
	})
	t.Run("not started, it shows its plan and waits for a resume", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		code, out, errOut := d.holdfast("submit", d.doc("contract.txt", contract(0, 5000)), "--profile", "compact")
		job := strings.TrimSpace(out)
		if code != exitCompleted {
			t.Fatal(errOut)
		}
		d.token("split-End-after-"+job, say)
		worker := d.starts("worker", "--idle", "--ledger", d.ledger)
		d.hears("split-End-after")
		d.says(d.does(exitCompleted, "status", job), "1 chunk x 28 calls", "once", "worst", "holdfast resume "+job)
		d.says(d.does(exitFailed, "report", job), "is planned", "holdfast watch "+job)
		d.says(d.does(exitFailed, "pause", job), "only a running job can be paused")
		if d.asked() != 0 {
			t.Errorf("%d calls were asked before it was started", d.asked())
		}
		d.does(exitCompleted, "resume", job)
		worker.ends(exitCompleted)
		d.says(d.does(exitCompleted, "watch", job), "28 of 28 cells answered")
	})
}
