package finalize_test

import (
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

func TestWhatAHandlerWorkedOnInVain(t *testing.T) {
	d := pipeline.LinesOf("fetch@1")
	b := newBench(t, d, 4)
	b.answer(0, 1, pipeline.TaskDone, pipeline.Failure{}, nil)
	b.answer(1, 0, pipeline.TaskAbandoned, pipeline.Fail(pipeline.Broken, "exit status 7"), nil)
	id := pipeline.WorkTask(1)
	try := pipeline.Try{Call: "work", Cost: 30, Ran: true, Failure: pipeline.Fail(pipeline.Broken, "exit status 7")}
	b.must(b.store.PutItem(t.Context(), jobID, pipeline.JournalKey(id, 1, 1), pipeline.Encode(pipeline.Journal{Task: id, Generation: 1, Page: 1, Tries: []pipeline.Try{try, try}})))
	b.close(pipeline.WorkTask(2), pipeline.TaskAbandoned, pipeline.Fail(pipeline.Exhausted, "the deadline passed"))
	b.close(pipeline.WorkTask(3), pipeline.TaskCancelled, pipeline.Fail(pipeline.Cancelled, "the ceiling"))
	b.run()
	r := b.result()
	if len(r.Missing) != 3 {
		t.Fatalf("got %d missing, want 3", len(r.Missing))
	}
	if c := r.Missing[0]; c.State != pipeline.CellFailed || c.Tries != 3 || c.Cost != 60 {
		t.Errorf("got %s after %d tries for %s, want failed after 3 (1 known by number only) for $0.00000006", c.State, c.Tries, c.Cost)
	}
	for _, c := range r.Missing[1:] {
		if c.State != pipeline.CellNotAsked || c.Tries != 0 {
			t.Errorf("chunk %d: got %s after %d tries, want not asked: nobody began it", c.Chunk, c.State, c.Tries)
		}
	}
	if r.Counts.Failed != 1 || r.Counts.NotAsked != 2 {
		t.Errorf("got %+v", r.Counts)
	}
}

func TestReasonOfAPartialJob(t *testing.T) {
	for _, c := range []struct {
		name   string
		causes []pipeline.Failure
		want   string
	}{
		{"the commonest cause, not the commonest kind", []pipeline.Failure{
			pipeline.Fail(pipeline.Broken, "the command died of a signal"), pipeline.Fail(pipeline.Broken, "the command is not there"),
			pipeline.Fail(pipeline.Invalid, "no url"), pipeline.Fail(pipeline.Invalid, "no url"),
		}, "4 of 5 cells are missing, 2 of them: no url"},
		{"causes that differ in numbers are quoted as one of many", []pipeline.Failure{
			pipeline.Fail(pipeline.Broken, "exit status 3"), pipeline.Fail(pipeline.Broken, "exit status 4"),
		}, "2 of 3 cells are missing, such as: exit status 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, pipeline.LinesOf("fetch@1"), len(c.causes)+1)
			b.answer(0, 1, pipeline.TaskDone, pipeline.Failure{}, nil)
			for n, cause := range c.causes {
				b.close(pipeline.WorkTask(n+1), pipeline.TaskAbandoned, cause)
			}
			b.run()
			if got := b.job().Reason.Cause; !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
