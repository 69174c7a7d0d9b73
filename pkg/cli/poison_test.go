package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"holdfast/pkg/finalize"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/split"
	"holdfast/pkg/view"
)

// poisoned is a contract of several chunks with a marker in the middle of it.
func poisoned(n int, marker string) string {
	text := contract(0, n)
	at := strings.Index(text[n/2:], "\n\n") + n/2
	return text[:at] + "\n\nThe parties agree to " + marker + " each other." + text[at:]
}

func TestPoisonInAChunk(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	doc := d.doc("contract.txt", poisoned(14_000, offline.PoisonKill))
	o := d.runs(exitPartial, doc, "--workers", "2", "--fail", "refused=2%", "--seed", "3")
	s := d.system()
	attempts := int64(s.Policy().MaxAttempts)
	var poison pipeline.Task
	for _, row := range d.rows(s, o.Job) {
		switch {
		case row.Status == pipeline.TaskAbandoned && poison.ID == "":
			poison = row
		case row.Status != pipeline.TaskDone:
			t.Errorf("%s, a neighbour, is %s: %s", row.ID, row.Status, row.Reason)
		}
	}
	claims := func(when string) {
		t.Helper()
		if row := d.task(s, o.Job, poison.ID); row.Generation != attempts || row.Status != pipeline.TaskAbandoned {
			t.Errorf("%s: %s is %s after %d claims, want abandoned after %d", when, row.ID, row.Status, row.Generation, attempts)
		}
		d.quiet(s)
	}
	if poison.ID == "" || poison.Reason.Kind != pipeline.Lost || int64(o.Killed) != attempts {
		t.Fatalf("%q was abandoned because %s, %d workers were killed; want one, because lost, after %d", poison.ID, poison.Reason, o.Killed, attempts)
	}
	number := strconv.Itoa(poison.ID.Number())
	claims("the run")
	t.Run("why has a reason for every attempt", func(t *testing.T) {
		text := d.does(exitCompleted, "why", string(o.Job), number)
		for n := range attempts {
			d.says(text, fmt.Sprintf("TIER TWO  attempt %d, generation %d", n+1, n+1))
		}
		if n := strings.Count(text, "exited at stage 1 without ending its claim"); int64(n) < attempts {
			t.Errorf("%d reasons, want %d:\n%s", n, attempts, text)
		}
	})
	t.Run("its dead letter has the context", func(t *testing.T) {
		letters, err := s.Triage.DeadLetters(t.Context())
		d.must(err)
		if len(letters) != 1 || letters[0].Task != poison.ID || letters[0].Job != o.Job || letters[0].Reason.Kind != pipeline.Lost || letters[0].Stale {
			t.Errorf("got %+v, want one, of %s", letters, poison.ID)
		}
		d.says(d.does(exitCompleted, "dead-letters"), string(o.Job), string(poison.ID), "lost")
	})
	t.Run("a second submit claims nothing", func(t *testing.T) {
		asked := d.asked()
		d.runs(exitPartial, doc, "--workers", "2")
		if d.asked() != asked {
			t.Errorf("%d calls were asked", d.asked()-asked)
		}
		claims("a second run")
	})
	t.Run("a raw message, a sweep, and another job claim nothing", func(t *testing.T) {
		_, err := s.Backend.Queues.Work.Send(t.Context(), []pipeline.Message{poison.Message()})
		d.must(err)
		d.does(exitCompleted, "reap")
		claims("a raw message")
	})
	t.Run("a redrive of other chunks claims nothing of it", func(t *testing.T) {
		var others []string
		for _, cell := range missingOf(d, o.Job) {
			if n := strconv.Itoa(cell.Chunk); cell.State == pipeline.CellFailed && n != number {
				others = append(others, n)
			}
		}
		if len(others) == 0 {
			t.Fatal("no neighbour has a failed cell; choose another seed")
		}
		d.does(exitCompleted, append([]string{"redrive", string(o.Job)}, others...)...)
		again := d.runs(exitPartial, doc)
		claims("a redrive of others")
		if again.Counts.Failed != 0 || again.Counts.NotAsked != 28 || again.Again != 0 {
			t.Errorf("%d failed, %d not asked; want none and the 28 of %s", again.Counts.Failed, again.Counts.NotAsked, poison.ID)
		}
	})
	t.Run("only its own redrive gives it attempts back", func(t *testing.T) {
		d.says(d.does(exitCompleted, "redrive", string(o.Job), number), "28 calls")
		if again := d.runs(exitPartial, doc, "--workers", "2"); int64(again.Killed) != attempts {
			t.Errorf("%d workers were killed, want %d more", again.Killed, attempts)
		}
	})
}

// missingOf are the cells that a job that has ended is missing.
func missingOf(d *desk, id pipeline.JobID) []pipeline.Cell {
	d.Helper()
	s := d.system()
	job, err := s.Backend.Store.Job(d.Context(), id)
	d.must(err)
	result, err := view.Result(d.Context(), s, job)
	d.must(err)
	return result.Missing
}

func TestPoisonInAStepOfItsOwn(t *testing.T) {
	for step, marker := range map[string]string{"split": split.PoisonMarker, "finalize": finalize.PoisonMarker} {
		t.Run(step, func(t *testing.T) {
			d := newDesk(t, swiftPolicy)
			doc := d.doc("contract.txt", poisoned(5000, marker))
			said := d.does(exitFailed, d.runArgs(doc, "--workers", "2")...)
			s := d.system()
			job := d.job(s)
			d.says(said, "Job "+string(job.ID)+" is failed", "Reason: ", "exited at stage 1 without ending its claim")
			task := pipeline.SplitTask
			if step == "finalize" {
				task = pipeline.FinalizeTask(1)
			}
			row := d.task(s, job.ID, task)
			if attempts := int64(s.Policy().MaxAttempts); row.Generation != attempts || row.Status != pipeline.TaskAbandoned {
				t.Errorf("%s is %s after %d claims, want abandoned after %d", task, row.Status, row.Generation, attempts)
			}
			why := d.does(exitCompleted, "why", string(job.ID), step)
			d.says(why, "attempt 1", "attempt 2", "attempt 3", "abandoned")
			d.quiet(s)
			d.does(exitCompleted, "reap")
			after, err := s.Backend.Store.Job(t.Context(), job.ID)
			d.must(err)
			if after != job {
				t.Errorf("the job moved after its end: %+v, and was %+v", after, job)
			}
		})
	}
}

func TestPoisonBeforeTheClaim(t *testing.T) {
	b := newBench(t, `claim_ttl: 2s
renew_every: 500ms
max_skew: 500ms
max_deferrals: 500
ring_delay: 1s
ring_limit: 4s
max_rings: 3
max_receives: 4
job_deadline: 20s
`)
	id := b.submit("contract.txt", contract(0, 9000))
	unclaimable := pipeline.WorkTask(1)
	write(t, b.kills, "claim-"+string(unclaimable), always)
	for range 2 {
		b.start("0s")
	}
	shown := ""
	watching := func() {
		row, err := b.system.Backend.Store.Task(context.Background(), pipeline.Ref{Job: id, ID: unclaimable})
		if err != nil {
			return // not split yet
		}
		if shown == "" && row.Unclaimable(b.system.Policy()) {
			_, shown, _ = holdfast(t, "--store", b.store, "--policy", b.policy, "status", string(id))
		}
	}
	job := b.waitWatching(watching)[id]
	if job.Status != pipeline.JobPartial || !strings.Contains(job.Reason.String(), "deadline") {
		t.Errorf("the job is %s (%s), want partial because of its deadline", job.Status, job.Reason)
	}
	if !strings.Contains(shown, "unclaimable: "+string(unclaimable)) {
		t.Errorf("status shows no row as unclaimable:\n%s", shown)
	}
	row, err := b.system.Backend.Store.Task(t.Context(), pipeline.Ref{Job: id, ID: unclaimable})
	if err != nil || row.Generation != 0 || row.Status != pipeline.TaskCancelled {
		t.Errorf("%s is %s after %d claims, %v; want cancelled without any", row.ID, row.Status, row.Generation, err)
	}
	limit := b.system.Policy().MaxReceives * (row.Rings + 1)
	if deaths := len(b.deaths); deaths == 0 || deaths > limit {
		t.Errorf("%d workers died, want at most %d: the receives of %d messages", deaths, limit, row.Rings+1)
	}
	if row.Rings > 9 {
		t.Errorf("it was rung %d times in the 20 s until its deadline: its rings did not slow down", row.Rings)
	}
}
