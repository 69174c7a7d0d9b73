package triage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/triage"
)

const jobID pipeline.JobID = "job-1"

type bench struct {
	*testing.T
	store         *memory.Store
	control, work *memory.Queue
	clock         *pipelinetest.Clock
	d             pipeline.Definition
	cfg           triage.Config
}

// newBench is a partial job of two stages with two calls each: chunk 0 is done, chunk 1 done with a failed cell in its
// second stage, chunk 2 abandoned in its second stage.
func newBench(t *testing.T) *bench {
	b := &bench{T: t, store: memory.New(), clock: pipelinetest.NewClock(), d: pipelinetest.NewDefinition(2, 2)}
	queue := memory.QueueConfig{Visibility: time.Minute, MaxReceives: 2, Now: b.clock.Now}
	b.control, b.work = memory.NewQueue(queue), memory.NewQueue(queue)
	b.cfg = triage.Config{
		Store: b.store, Blobs: b.store, Queues: pipeline.Queues{Control: b.control, Work: b.work}, Clock: b.clock, Policy: pipeline.DefaultPolicy(),
	}
	job := pipelinetest.NewJob(jobID, func(j *pipeline.Job) {
		j.Fingerprint, j.Status, j.EndedAt = b.d.Key(), pipeline.JobPartial, b.clock.Now()
	})
	_, _, err := b.store.Submit(t.Context(), job, pipelinetest.NewRow(jobID, pipeline.SplitTask))
	b.must(err)
	b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: pipeline.SplitTask}, map[string]any{"status": "done", "stages": 1, "accepted": 1}))
	b.must(b.store.PutBlob(t.Context(), b.d.Key(), b.d.Encode()))
	m := pipeline.Manifest{Chunks: []pipeline.Chunk{{Index: 0}, {Index: 1}, {Index: 2, Heading: "12. Liability"}}}
	_, err = b.store.PutItemOnce(t.Context(), jobID, pipeline.ManifestKey, m.Encode())
	b.must(err)
	_, err = b.store.PutItemOnce(t.Context(), jobID, pipeline.PlanKey, pipeline.Encode(pipeline.Plan{Dearest: 1000, Cells: 1}))
	b.must(err)
	b.must(b.store.OpenBudget(t.Context(), jobID, 1_000_000))
	b.row(0, "done", 2, 0)
	b.row(1, "done", 2, 2)
	b.row(2, "abandoned", 1, 0)
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// row puts the row of a chunk and its accepted bodies; the first cell of stage bad has failed.
func (b *bench) row(chunk int, status string, accepted, bad int) {
	b.Helper()
	id := pipeline.WorkTask(chunk)
	row := map[string]any{
		"status": status, "generation": 4, "stages": 2, "accepted": accepted, "bodies": []int{4, 4}[:accepted],
		"allowed": 30, "max_tries": 48, "attempts": 3, "losses": 2, "deferrals": 5, "ended_by": "claim-4",
		"reason": pipeline.Fail(pipeline.Lost, "worker w3 died").At("stage-2", ""),
	}
	b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: id}, row))
	for stage := 1; stage <= accepted; stage++ {
		body := pipeline.StageBody{Stage: stage, Chunk: chunk}
		for _, call := range b.d.Stages[stage-1].Calls {
			body.Cells = append(body.Cells, pipeline.Cell{Chunk: chunk, Call: call.ID, State: pipeline.CellAnswered})
		}
		if stage == bad {
			body.Cells[0].State = pipeline.CellFailed
			body.Cells[0].Failure = pipeline.Fail(pipeline.Refused, "the content filter refused chunk %d", chunk)
		}
		b.must(b.store.PutItem(b.Context(), jobID, pipeline.BodyKey(id, stage, 4), pipeline.Encode(body)))
	}
}

func (b *bench) task(chunk int) pipeline.Task {
	b.Helper()
	row, err := b.store.Task(b.Context(), pipeline.Ref{Job: jobID, ID: pipeline.WorkTask(chunk)})
	b.must(err)
	return row
}

func (b *bench) job() pipeline.Job {
	b.Helper()
	job, err := b.store.Job(b.Context(), jobID)
	b.must(err)
	return job
}

func (b *bench) setJob(edit func(*pipeline.Job)) {
	b.Helper()
	next := b.job()
	edit(&next)
	_, err := b.store.SetJob(b.Context(), b.job(), next)
	b.must(err)
}

// history writes three attempts of chunk 2: lost (both enders wrote), deferred, failed.
func (b *bench) history() {
	b.Helper()
	task := pipeline.WorkTask(2)
	put := func(r pipeline.Record, tries ...pipeline.Try) {
		r.Task, r.ClaimedAt, r.EndedAt = task, b.clock.Now(), b.clock.Now().Add(41_200*time.Millisecond)
		b.must(b.store.PutItem(b.Context(), jobID, pipeline.RecordKey(task, r.Generation, r.Ender), pipeline.Encode(r)))
		if len(tries) > 0 {
			j := pipeline.Journal{Task: task, Generation: r.Generation, Worker: r.Worker, Page: 1, Tries: tries}
			b.must(b.store.PutItem(b.Context(), jobID, pipeline.JournalKey(task, r.Generation, 1), pipeline.Encode(j)))
		}
	}
	try := func(call string, n int, f pipeline.Failure) pipeline.Try {
		return pipeline.Try{Call: call, Number: n, At: b.clock.Now(), Millis: 812, Failure: f, Usage: pipeline.Usage{Input: 2050, Output: 210}, Cost: 6_930_000}
	}
	put(pipeline.Record{
		Generation: 1, Attempt: 1, Ender: pipeline.ExpiredBy, Worker: "w1", Outcome: pipeline.Died, Status: pipeline.TaskPending, Counted: true,
		Failure: pipeline.Fail(pipeline.Lost, "worker w1 died").At("stage-2", ""), Tries: 2, Unnamed: 5, Cost: 13_860_000,
		Failures: map[pipeline.Kind]int{pipeline.Throttled: 1},
	}, try("s2c1", 1, pipeline.Fail(pipeline.Throttled, "429: too many tokens this minute")), try("s2c1", 2, pipeline.Failure{}))
	put(pipeline.Record{Generation: 1, Attempt: 1, Ender: "claim-1", Worker: "w1", Outcome: pipeline.FailedNow, Failure: pipeline.Fail(pipeline.Ambiguous, "cut stream")})
	put(pipeline.Record{Generation: 2, Attempt: 2, Ender: "claim-2", Previous: pipeline.ExpiredBy, Worker: "w2", Outcome: pipeline.Deferral, Status: pipeline.TaskPending, Failure: pipeline.Fail(pipeline.Quota, "the daily quota is used up")})
	long := pipeline.Fail(pipeline.Malformed, "the answer is no JSON: %s", strings.Repeat("unexpected end of input, ", 9))
	long.Detail = strings.Repeat("x", 250)
	put(pipeline.Record{Generation: 4, Attempt: 3, Ender: "claim-4", Previous: "claim-2", Worker: "w3", Outcome: pipeline.FailedNow, Status: pipeline.TaskAbandoned, Counted: true, Failure: long, Tries: 1},
		try(strings.Repeat("a-very-long-call-name-", 3), 3, long))
}

func TestWhy(t *testing.T) {
	t.Run("every attempt is there once, and which ender's record counts", func(t *testing.T) {
		b := newBench(t)
		b.history()
		s, err := triage.New(b.cfg).Why(t.Context(), jobID, pipeline.WorkTask(2))
		b.must(err)
		var got []string
		for _, a := range s.Attempts {
			got = append(got, fmt.Sprintf("%d %s by %s, %d tries, %d unnamed, %d others", a.Generation, a.Record.Outcome, a.Record.Ender, len(a.Tries), a.Unnamed, len(a.Others)))
		}
		want := []string{
			"1 lost by expired, 2 tries, 5 unnamed, 1 others",
			"2 deferred by claim-2, 0 tries, 0 unnamed, 0 others",
			"4 failed by claim-4, 1 tries, 0 unnamed, 0 others",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if s.Sums.Tries != 3 || s.Sums.Unnamed != 5 || s.Sums.Cost != 13_860_000 || s.Chunk == nil {
			t.Errorf("got sums %+v and chunk %v", s.Sums, s.Chunk)
		}
	})
	t.Run("the text tells the tiers apart, gives every reason, and fits its columns", func(t *testing.T) {
		b := newBench(t)
		b.history()
		s, err := triage.New(b.cfg).Why(t.Context(), jobID, pipeline.WorkTask(2))
		b.must(err)
		text := s.Text()
		for _, want := range []string{
			"TIER TWO  attempt 1, generation 1, worker w1", "lost -> pending, counted", "deferred -> pending, not counted",
			"TIER ONE  2 tries", "throttled", "429: too many tokens", "5 more tries known by number only", "2,050>210", "12. Liability",
			"also ended by worker w1, which does not count", "abandoned, 1 of 2 stages accepted", "30 of 48 tries allowed",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the text does not say %q:\n%s", want, text)
			}
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > triage.Width {
				t.Errorf("a line has %d columns: %s", n, line)
			}
		}
		if body, err := json.Marshal(s); err != nil || !json.Valid(body) {
			t.Errorf("it is no JSON: %v", err)
		}
	})
	t.Run("an attempt that runs is told from one without a record", func(t *testing.T) {
		b := newBench(t)
		b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: pipeline.WorkTask(2)}, map[string]any{"status": "claimed", "generation": 5, "claimed_by": "w9", "stages": 2}))
		s, err := triage.New(b.cfg).Why(t.Context(), jobID, pipeline.WorkTask(2))
		b.must(err)
		if len(s.Attempts) != 1 || !s.Attempts[0].Running || !strings.Contains(s.Text(), "worker w9: it runs") {
			t.Errorf("got %+v", s.Attempts)
		}
	})
	t.Run("a job's story groups what is missing by its reason", func(t *testing.T) {
		b := newBench(t)
		s, err := triage.New(b.cfg).WhyJob(t.Context(), jobID)
		b.must(err)
		if len(s.Gaps) != 1 || s.Gaps[0].Kind != pipeline.Refused || len(s.Tasks) != 1 {
			t.Errorf("got gaps %+v and tasks %+v", s.Gaps, s.Tasks)
		}
		r := pipeline.Result{Counts: pipeline.Counts{Cells: 12, Answered: 8, Failed: 2, NotAsked: 2}, Missing: []pipeline.Cell{
			{Chunk: 1, Call: "s2c1", Failure: pipeline.Fail(pipeline.Lost, "worker died 3 times")},
			{Chunk: 1, Call: "s1c1", Failure: pipeline.Fail(pipeline.Refused, "refused chunk 1")},
			{Chunk: 2, Call: "s1c1", Failure: pipeline.Fail(pipeline.Refused, "refused chunk 2")},
		}}
		b.must(b.store.PutBlob(t.Context(), "result", pipeline.Encode(r)))
		b.setJob(func(j *pipeline.Job) { j.Result = "result" })
		s, err = triage.New(b.cfg).WhyJob(t.Context(), jobID)
		b.must(err)
		if len(s.Gaps) != 2 || s.Gaps[0].Cells != 2 || s.Gaps[0].Kind != pipeline.Refused || len(s.Gaps[0].Tasks) != 2 {
			t.Errorf("got %+v, want the two refusals as one gap first", s.Gaps)
		}
		if !strings.Contains(s.Text(), "8 of 12 cells answered") {
			t.Errorf("the text does not say how much was answered:\n%s", s.Text())
		}
	})
}

func TestRedrive(t *testing.T) {
	t.Run("all that is missing goes on from the stage before the first missing cell", func(t *testing.T) {
		b := newBench(t)
		b.clock.Advance(time.Hour)
		got, err := triage.New(b.cfg).Redrive(t.Context(), jobID)
		b.must(err)
		want := []triage.RedrivenTask{
			{Task: pipeline.WorkTask(1), Accepted: 1, Calls: 2, Tries: 24, Cost: 24_000},
			{Task: pipeline.WorkTask(2), Accepted: 1, Calls: 2, Tries: 24, Cost: 24_000},
		}
		if fmt.Sprint(got.Tasks) != fmt.Sprint(want) || got.Cost != 48_000 || len(got.Skipped) != 0 {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		for chunk := 1; chunk <= 2; chunk++ {
			row := b.task(chunk)
			if row.Status != pipeline.TaskPending || row.Generation != 5 || row.Accepted != 1 || row.Attempts != 0 || row.MaxTries != 72 || row.Allowed != 30 {
				t.Errorf("chunk %d: got %+v", chunk, row)
			}
		}
		if job := b.job(); job.Status != pipeline.JobRunning || job.Epoch != 3 || job.EndedAt != 0 || job.Deadline != b.clock.Now().Add(24*time.Hour) {
			t.Errorf("got job %+v, want running in epoch 3 with a new deadline", job)
		}
		if budget, _ := b.store.Budget(t.Context(), jobID); budget.Ceiling != 1_048_000 {
			t.Errorf("got ceiling %d, want it raised by 48000", budget.Ceiling)
		}
		if visible, _, _ := b.work.Depth(t.Context()); visible != 2 {
			t.Errorf("got %d bells, want 2", visible)
		}
		if b.task(0).Status != pipeline.TaskDone {
			t.Error("a sound task was redriven")
		}
	})
	t.Run("the ceiling rises no further than a person allows", func(t *testing.T) {
		for most, want := range map[pipeline.Money][3]pipeline.Money{ // the ceiling after, and what each of two tasks adds
			1_030_000: {1_030_000, 24_000, 6_000},
			1_000_000: {1_000_000, 0, 0},
			900_000:   {1_000_000, 0, 0},
			2_000_000: {1_048_000, 24_000, 24_000},
		} {
			b := newBench(t)
			got, err := triage.New(b.cfg).RedriveWithin(t.Context(), jobID, most)
			b.must(err)
			budget, err := b.store.Budget(t.Context(), jobID)
			b.must(err)
			if budget.Ceiling != want[0] || got.Tasks[0].Cost != want[1] || got.Tasks[1].Cost != want[2] {
				t.Errorf("within %d: got ceiling %d of %+v, want %v", most, budget.Ceiling, got.Tasks, want)
			}
		}
	})
	t.Run("a preview shows the same and changes nothing", func(t *testing.T) {
		b := newBench(t)
		want, job := b.task(2), b.job()
		got, err := triage.New(b.cfg).Preview(t.Context(), jobID, pipeline.WorkTask(2))
		b.must(err)
		if got.Cost != 24_000 || got.Tries != 24 || fmt.Sprint(b.task(2)) != fmt.Sprint(want) || b.job() != job {
			t.Errorf("got %+v; the row is %+v", got, b.task(2))
		}
	})
	t.Run("a second redrive finds nothing to do", func(t *testing.T) {
		b := newBench(t)
		tr := triage.New(b.cfg)
		_, err := tr.Redrive(t.Context(), jobID)
		b.must(err)
		if _, err := tr.Redrive(t.Context(), jobID); !errors.Is(err, triage.ErrRefused) {
			t.Errorf("got %v, want a refusal", err)
		}
		if budget, _ := b.store.Budget(t.Context(), jobID); budget.Ceiling != 1_048_000 {
			t.Errorf("got ceiling %d: the second redrive raised it again", budget.Ceiling)
		}
	})
	t.Run("a paused job stays paused", func(t *testing.T) {
		b := newBench(t)
		b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobPaused })
		_, err := triage.New(b.cfg).Redrive(t.Context(), jobID, pipeline.WorkTask(2))
		b.must(err)
		if got := b.job().Status; got != pipeline.JobPaused {
			t.Errorf("got %s, want paused", got)
		}
	})
	t.Run("a redrive that cannot help is refused and says what does", func(t *testing.T) {
		for _, c := range []struct {
			edit func(b *bench)
			task pipeline.TaskID
			want string
		}{
			{func(b *bench) { b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobCancelled }) }, "", "submit the document again"},
			{func(b *bench) { b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobCancelling }) }, "", "submit the document again"},
			{func(b *bench) { b.setJob(func(j *pipeline.Job) { j.Status = pipeline.JobCompleted }) }, "", "nothing is missing"},
			{func(b *bench) {
				b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: pipeline.SplitTask}, map[string]any{"status": "abandoned"}))
			}, "", "its split is abandoned"},
			{func(*bench) {}, pipeline.SplitTask, "a split is not"},
			{func(*bench) {}, pipeline.FinalizeTask(1), "not found"},
			{func(*bench) {}, pipeline.WorkTask(0), "every cell of it has its answer"},
			{func(*bench) {}, pipeline.WorkTask(9), "not found"},
		} {
			b := newBench(t)
			c.edit(b)
			before := b.job()
			var tasks []pipeline.TaskID
			if c.task != "" {
				tasks = append(tasks, c.task)
			}
			_, err := triage.New(b.cfg).Redrive(t.Context(), jobID, tasks...)
			if !errors.Is(err, triage.ErrRefused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a refusal that says %q", err, c.want)
			}
			if b.job() != before {
				t.Errorf("%s: the job was changed", c.want)
			}
		}
	})
	t.Run("a conflict is tried again, and a transaction whose answer was lost is recognised", func(t *testing.T) {
		for name, around := range map[string]pipelinetest.Around{
			"conflict": func() pipelinetest.Around {
				left := 2
				return func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
					if op.Name == "Redrive" && left > 0 {
						left--
						return pipeline.ErrConflict
					}
					return do(ctx)
				}
			}(),
			"lost answer": pipelinetest.LoseAnswers(1, "Redrive"),
		} {
			b := newBench(t)
			cfg := b.cfg
			cfg.Store = pipelinetest.Wrap(b.store, around)
			if _, err := triage.New(cfg).Redrive(t.Context(), jobID, pipeline.WorkTask(2)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if job, row := b.job(), b.task(2); job.Epoch != 2 || row.Generation != 5 || row.MaxTries != 72 {
				t.Errorf("%s: got epoch %d, generation %d, %d tries; want one redrive", name, job.Epoch, row.Generation, row.MaxTries)
			}
		}
	})
}

func TestCaseX06DeadLetters(t *testing.T) {
	t.Run("each task is there once, held against its row, and reading them changes nothing", func(t *testing.T) {
		b := newBench(t)
		b.must(b.store.PutRaw(pipeline.Ref{Job: jobID, ID: pipeline.WorkTask(0)}, map[string]any{"status": "pending"}))
		bury := func(id pipeline.TaskID, native bool) {
			letter := pipeline.DeadLetter{Body: pipeline.Encode(pipeline.Message{Job: jobID, Task: id}), Native: native, SentAt: b.clock.Now()}
			b.must(b.work.Bury(t.Context(), letter))
		}
		bury(pipeline.WorkTask(0), true)
		bury(pipeline.WorkTask(2), false)
		b.clock.Advance(time.Minute)
		bury(pipeline.WorkTask(2), true)
		bury(pipeline.WorkTask(7), true)
		b.must(b.control.Bury(t.Context(), pipeline.DeadLetter{Body: []byte("{"), Reason: pipeline.Fail(pipeline.Invalid, "no JSON"), SentAt: b.clock.Now()}))
		for range 2 {
			letters, err := triage.New(b.cfg).DeadLetters(t.Context())
			b.must(err)
			got := map[string]string{}
			for _, l := range letters {
				got[string(l.Task)] = fmt.Sprintf("%d %v %s", l.Letters, l.Stale, l.Meaning)
			}
			if len(letters) != 4 {
				t.Errorf("got %d lines, want each of 4 tasks once", len(letters))
			}
			for task, want := range map[pipeline.TaskID]string{
				pipeline.WorkTask(0): "1 true the row is still pending",
				pipeline.WorkTask(2): "2 false abandoned: lost in stage stage-2: worker w3 died",
				pipeline.WorkTask(7): "1 true there is no such row",
				"":                   "1 false not a message of ours: no JSON",
			} {
				if got[string(task)] != want {
					t.Errorf("%s: got %q, want %q", task, got[string(task)], want)
				}
			}
		}
	})
}

func TestRedrivesThatMeet(t *testing.T) {
	b := newBench(t)
	b.row(2, "abandoned", 0, 0) // twice as much to do as chunk 1
	met := false
	meet := func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
		if op.Name == "Redrive" && !met {
			met = true
			_, err := triage.New(b.cfg).Redrive(t.Context(), jobID, pipeline.WorkTask(2))
			b.must(err)
		}
		return do(ctx)
	}
	cfg := b.cfg
	cfg.Store = pipelinetest.Wrap(b.store, meet)
	_, err := triage.New(cfg).Redrive(t.Context(), jobID, pipeline.WorkTask(1))
	b.must(err)
	if job := b.job(); job.Epoch != 3 || !met {
		t.Errorf("got epoch %d, met %v, want two redrives", job.Epoch, met)
	}
	if budget, _ := b.store.Budget(t.Context(), jobID); budget.Ceiling != 1_072_000 {
		t.Errorf("got ceiling %d, want it raised by what each needs, 24000 and 48000", budget.Ceiling)
	}
}
