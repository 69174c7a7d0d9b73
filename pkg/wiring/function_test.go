package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

const handID = "hand@1"

var errNo = errors.New("it does not work")

func TestFunctions(t *testing.T) {
	run := func(name string, test func(w *world, h *hand), edits ...func(w *world)) {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) { test(w, newHand(w)) }, edits...)
		})
	}
	run("every line that holds more than white space is worked on once, and its answer is stored", func(w *world, h *hand) {
		w.start("worker", nil, h.in)
		job := w.list("\n one \n\n\ntwo\n \t\nthree")
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		r := w.result(job.ID)
		for n, want := range []string{"done  one ", "done two", "done three"} {
			if got := w.answer(job.ID, n); got.Text != want || got.Model != handID {
				w.Errorf("item %d: got %q by %s, want %q", n, got.Text, got.Model, want)
			}
		}
		if ran, _ := h.count(); ran != 3 || r.Counts.Cells != 3 || r.Spend.Tries != 3 {
			w.Errorf("ran %d times, counts %+v, %d tries", ran, r.Counts, r.Spend.Tries)
		}
		w.quiet()
	})
	run("what fails for good fails alone: not again, its neighbours go on", func(w *world, h *hand) {
		h.does["bad"] = fails(pipeline.GiveUp(errNo))
		w.start("worker", nil, h.in)
		job := w.list("one\nbad\ntwo\n")
		w.ends(job.ID, time.Minute, pipeline.JobPartial)
		r := w.result(job.ID)
		if h.of("bad") != 1 || r.Counts.Answered != 2 || r.Counts.Failed != 1 || r.Missing[0].Failure.Kind != pipeline.Invalid || r.Missing[0].Failure.Cause != errNo.Error() {
			w.Errorf("run %d times, counts %+v, missing %+v", h.of("bad"), r.Counts, r.Missing)
		}
	})
	run("a worker whose policy allows more: an item is tried as often as was said when it was submitted, and no more", func(w *world, h *hand) {
		h.does["bad"] = fails(pipeline.TryAgain(errNo))
		job := w.list("bad\n")
		w.start("worker", nil, h.in, func(cfg *wiring.Config) { cfg.Policy.MaxAttempts = 30 })
		w.ends(job.ID, 23*time.Hour, pipeline.JobPartial)
		plan, err := w.desk.Submitter.Plan(w.ctx, job.ID)
		w.must(err)
		if plan.PerTry != 12 || h.of("bad") != plan.PerTry {
			w.Errorf("tried %d times, the plan said %d", h.of("bad"), plan.PerTry)
		}
	})
	long := func(d *pipeline.Definition) { d.TryTimeout = 110 * time.Second }
	run("a deploy while an item takes almost all of its time: it is finished, and not begun again", func(w *world, h *hand) {
		h.takes = 105 * time.Second
		p := w.start("worker-0", nil, h.in)
		job := w.list("one\n", long)
		time.Sleep(time.Second)
		p.drain()
		<-p.done
		w.start("worker-1", nil, h.in)
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		if h.of("one") != 1 {
			w.Errorf("run %d times, want once", h.of("one"))
		}
	})
	run("deploys that leave it no time use up its tries, and are named as what did", func(w *world, h *hand) {
		h.takes = 105 * time.Second
		job := w.list("one\n", long)
		for n := range 13 {
			p := w.start(fmt.Sprint("worker-", n), nil, h.in, func(cfg *wiring.Config) { cfg.Grace = time.Second })
			time.Sleep(time.Minute)
			p.drain()
			<-p.done
		}
		w.start("last", nil, h.in)
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		if h.of("one") != 12 {
			w.Errorf("run %d times, want 12", h.of("one"))
		}
		if f := w.result(job.ID).Missing[0].Failure; f.Kind != pipeline.Exhausted || !strings.Contains(f.Cause, "of 12 tries, by how their attempts ended: 12 shutdown") {
			w.Errorf("got %s", f)
		}
	})
	run("what always fails is given up after three attempts with every reason, and the queue is quiet", func(w *world, h *hand) {
		h.does["bad"] = fails(errNo)
		h.does["panics"] = func(context.Context, pipeline.WorkItem) error { panic("oh") }
		w.start("worker", nil, h.in)
		job := w.list("one\nbad\npanics\ntwo\n")
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		w.abandoned(h, job.ID, 1, "bad", pipeline.Broken, 3)
		w.abandoned(h, job.ID, 2, "panics", pipeline.Broken, 3)
		time.Sleep(24 * time.Hour)
		if ran, _ := h.count(); ran != 8 {
			w.Errorf("ran %d times, want 8", ran)
		}
		w.quiet()
		w.sound(job.ID)
	})
	run("what may pass is tried again in the attempt, then the attempt counts: twelve times in all", func(w *world, h *hand) {
		h.does["flaky"] = func(_ context.Context, item pipeline.WorkItem) error {
			if item.Try < 3 {
				return pipeline.TryAgain(errNo)
			}
			return nil
		}
		h.does["never"] = fails(pipeline.TryAgain(errNo))
		w.start("worker", nil, h.in)
		job := w.list("flaky\nnever\none\n")
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		w.abandoned(h, job.ID, 1, "never", pipeline.Unavailable, 12)
		if row, _, _ := w.story(job.ID, 1); row.Allowed != 12 {
			w.Errorf("%d tries were allowed, want 12: each ran, and none was given back", row.Allowed)
		}
		if h.of("flaky") != 3 || w.result(job.ID).Counts.Answered != 2 {
			w.Errorf("the flaky one was run %d times, want 3 and an answer", h.of("flaky"))
		}
	})
	run("what is everybody's uses up no attempt, however long it lasts", func(w *world, h *hand) {
		until := w.clock.Now().Add(5 * time.Hour)
		h.does["down"] = func(context.Context, pipeline.WorkItem) error {
			if w.clock.Now() < until {
				return pipeline.ComeLater(errNo, time.Minute)
			}
			return nil
		}
		w.start("worker", nil, h.in)
		job := w.list("one\ndown\n")
		w.ends(job.ID, 10*time.Hour, pipeline.JobCompleted)
		row, counted, free := w.story(job.ID, 1)
		if len(counted) > 0 || len(free) < 10 || row.Attempts != 1 {
			w.Errorf("%d attempts counted, %d not, %d in the row", len(counted), len(free), row.Attempts)
		}
	})
	run("what hangs is stopped at its time, counted, and given up", func(w *world, h *hand) {
		h.does["hangs"] = func(ctx context.Context, _ pipeline.WorkItem) error {
			<-ctx.Done()
			return fmt.Errorf("a wrapped %w", ctx.Err())
		}
		w.start("worker", nil, h.in)
		job := w.list("one\nhangs\n", func(d *pipeline.Definition) { d.TryTimeout = 10 * time.Second })
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		w.abandoned(h, job.ID, 1, "hangs", pipeline.TimedOut, 3)
		if f := w.result(job.ID).Missing[0].Failure; !strings.Contains(f.Cause, "10s") {
			w.Errorf("the reason is %q, want the time in it", f.Cause)
		}
	})
	run("an item that kills its worker is counted at the claim and given up, its neighbours are done", func(w *world, h *hand) {
		for n := range 5 {
			var p *process
			p = w.start(fmt.Sprint("worker-", n), nil, func(cfg *wiring.Config) {
				cfg.Functions = map[string]pipeline.Function{handID: func(ctx context.Context, item pipeline.WorkItem) (pipeline.Output, error) {
					if item.Text == "poison" {
						h.mu.Lock()
						h.runs = append(h.runs, item)
						h.mu.Unlock()
						p.freeze()
						<-ctx.Done()
					}
					return h.work(ctx, item)
				}}
			})
		}
		job := w.list("one\ntwo\npoison\nthree\nfour\n")
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		w.abandoned(h, job.ID, 2, "poison", pipeline.Lost, 3)
		if r := w.result(job.ID); r.Counts.Answered != 4 {
			w.Errorf("got the counts %+v, want the neighbours answered", r.Counts)
		}
		last := int64(0)
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, run := range h.runs {
			if run.Text != "poison" {
				continue
			}
			if run.Generation <= last {
				w.Errorf("attempt %d has generation %d after %d: it fences nothing", run.Attempt, run.Generation, last)
			}
			last = run.Generation
		}
	})
	run("a lower cap that is deployed stops what goes round, without another run", func(w *world, h *hand) {
		h.does["bad"] = fails(errNo)
		high := w.policy
		high.MaxAttempts, high.MaxReceives = 1000, 1001
		w.start("old", nil, h.in, func(cfg *wiring.Config) { cfg.Policy = high })
		job := w.list("bad\none\n")
		for h.of("bad") < 5 {
			time.Sleep(time.Second)
		}
		w.all[0].kill()
		w.start("new", nil, h.in)
		w.ends(job.ID, 2*time.Hour, pipeline.JobPartial)
		row, counted, _ := w.story(job.ID, 0)
		if h.of("bad") != 5 || row.Status != pipeline.TaskAbandoned || len(counted) != 5 {
			w.Errorf("run %d times, %s, %v counted; want 5, and each with its reason", h.of("bad"), row.Status, counted)
		}
		w.quiet()
	})
	run("an answer that is stored is never worked for again: not by the next run, nor for the same line", func(w *world, h *hand) {
		w.start("worker", nil, h.in)
		w.ends(w.list("one\ntwo\none\n").ID, time.Minute, pipeline.JobCompleted)
		job := w.list("two\nthree\none\n")
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		if h.of("one") != 1 || h.of("two") != 1 || h.of("three") != 1 {
			w.Errorf("ran %d, %d, %d times, want once each", h.of("one"), h.of("two"), h.of("three"))
		}
		if r := w.result(job.ID); r.Counts.Reused != 2 {
			w.Errorf("got the counts %+v, want two reused", r.Counts)
		}
	})
	run("a redrive runs what is missing and nothing else", func(w *world, h *hand) {
		h.does["bad"], h.does["worse"] = fails(errNo), fails(pipeline.GiveUp(errNo))
		w.start("worker", nil, h.in)
		job := w.list("one\nbad\nworse\n")
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		h.mu.Lock()
		clear(h.does)
		h.mu.Unlock()
		_, err := w.desk.Triage.Redrive(w.ctx, job.ID)
		w.must(err)
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
		if h.of("one") != 1 || h.of("bad") != 4 || h.of("worse") != 2 {
			w.Errorf("ran %d, %d, %d times, want 1, 4, 2", h.of("one"), h.of("bad"), h.of("worse"))
		}
	})
	run("a cancel stops what runs within two seconds, and nothing more starts", func(w *world, h *hand) {
		h.takes = time.Minute
		w.start("worker", nil, h.in)
		job := w.list(strings.Repeat("x\n", 3) + "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
		time.Sleep(5 * time.Second)
		if begun, over := h.count(); begun == 0 || over > 0 {
			w.Fatalf("%d runs, %d over", begun, over)
		}
		_, err := w.desk.Submitter.Cancel(w.ctx, job.ID, "enough")
		w.must(err)
		time.Sleep(2 * time.Second)
		begun, over := h.count()
		if over != begun {
			w.Errorf("two seconds after the cancel %d of %d runs go on", begun-over, begun)
		}
		w.ends(job.ID, time.Minute, pipeline.JobCancelled)
		if now, _ := h.count(); now != begun {
			w.Errorf("%d runs began after the cancel", now-begun)
		}
	})
	run("a worker without the handler leaves the work to those who have it, and says so once", func(w *world, h *hand) {
		var said strings.Builder
		w.start("other", nil, func(cfg *wiring.Config) { cfg.Log = slog.New(slog.NewTextHandler(&said, nil)) })
		job := w.list("one\ntwo\nthree\n")
		time.Sleep(20 * time.Minute)
		for n := range 3 {
			if row, counted, free := w.story(job.ID, n); row.Generation != 0 || len(counted)+len(free) > 0 {
				w.Errorf("item %d: generation %d, counted %v, not %v; want it never claimed", n, row.Generation, counted, free)
			}
		}
		const left = "a job is left to others"
		if log := said.String(); strings.Count(log, left) != 1 || !strings.Contains(log, "needs="+handID) || !strings.Contains(log, string(job.ID)) {
			w.Errorf("the log says %q", log)
		}
		w.start("worker", nil, h.in)
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		if ran, _ := h.count(); ran != 3 {
			w.Errorf("ran %d times, want 3", ran)
		}
		time.Sleep(time.Hour) // bells that were rung meanwhile find the work done
		w.quiet()
	})
	run("a worker whose queue cannot leave it what is another's uses up no attempt and says what is missing", func(w *world, h *hand) {
		choosy := w.back.Queues.Work
		w.back.Queues.Work = struct{ pipeline.Queue }{choosy}
		w.start("other", nil)
		job := w.list("one\n")
		time.Sleep(20 * time.Minute)
		row, counted, free := w.story(job.ID, 0)
		if len(counted) > 0 || len(free) == 0 || row.Reason.Kind != pipeline.Rejected || !strings.Contains(row.Reason.Cause, handID) || !strings.Contains(row.Reason.Cause, "scripted@1") {
			w.Errorf("counted %v, not %v, reason %q", counted, free, row.Reason)
		}
		w.all[0].kill()
		w.start("worker", nil, h.in)
		w.ends(job.ID, time.Hour, pipeline.JobCompleted)
	})
	run("a worker that has a model and handlers works for the jobs of each", func(w *world, h *hand) {
		w.start("worker", nil, func(cfg *wiring.Config) { cfg.Functions = map[string]pipeline.Function{handID: h.work} })
		lines, document := w.list("one\ntwo\n"), w.submit(text(chunks))
		w.ends(lines.ID, time.Minute, pipeline.JobCompleted)
		w.ends(document.ID, time.Minute, pipeline.JobCompleted)
		w.complete(document.ID, chunks)
	})
	run("a handler with stages of its own", func(w *world, h *hand) {
		own := &ownStages{}
		w.start("worker", nil, func(cfg *wiring.Config) {
			cfg.Handlers = map[string]func(*wiring.Backend) pipeline.Handler{handID: func(*wiring.Backend) pipeline.Handler { return own }}
		})
		job := w.list("one\ntwo\n")
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		if r := w.result(job.ID); r.Counts.Answered != 2 {
			w.Errorf("got the counts %+v", r.Counts)
		}
	})
}

// ownStages is a handler that keeps its own checkpoint.
type ownStages struct{}

func (ownStages) Handle(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
	if err := a.MaySend(ctx); err != nil {
		return pipeline.EndingOf(pipeline.StopFailure(err, a.Job()), 0)
	}
	body := pipeline.StageBody{
		Stage: 1, Name: "work", Chunk: a.Claim().ID.Number(), Generation: a.Claim().Generation, Worker: a.Worker(),
		Cells: []pipeline.Cell{{Chunk: a.Claim().ID.Number(), Call: "work", State: pipeline.CellAnswered}},
	}
	if err := a.Checkpoint(ctx, 1, pipeline.Encode(body)); err != nil {
		return pipeline.EndingOf(pipeline.StopFailure(err, a.Job()), 0)
	}
	return pipeline.Ending{Outcome: pipeline.Succeeded}
}

// The most that tries may cost is printed before, and is never exceeded.
func TestFunctionsMoney(t *testing.T) {
	const cent = pipeline.Dollar / 100
	run := func(name string, test func(w *world, h *hand)) {
		t.Run(name, func(t *testing.T) { in(t, func(w *world) { test(w, newHand(w)) }) })
	}
	costing := func(d *pipeline.Definition) { d.TryCost = 3 * cent }
	spent := func(w *world, id pipeline.JobID, most pipeline.Money) {
		w.Helper()
		time.Sleep(time.Hour)
		budget, err := w.back.Store.Budget(w.ctx, id)
		w.must(err)
		if r := w.result(id); budget.Spent != most || r.Spend.Cost != most || len(budget.Open) > 0 {
			w.Errorf("spent %s by the budget, %s by the result, %d open, want %s", budget.Spent, r.Spend.Cost, len(budget.Open), most)
		}
	}
	run("each try costs what it may cost, also one that failed", func(w *world, h *hand) {
		h.does["bad"], h.does["flaky"] = fails(errNo), func(_ context.Context, item pipeline.WorkItem) error {
			if item.Try < 3 {
				return pipeline.TryAgain(errNo)
			}
			return nil
		}
		w.start("worker", nil, h.in)
		job := w.list("one\nbad\nflaky\n", costing)
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		plan, err := w.desk.Submitter.Plan(w.ctx, job.ID)
		w.must(err)
		if plan.Once != 9*cent || plan.Worst != 3*12*3*cent || plan.Ceiling != plan.Worst || plan.PerTry != 12 {
			w.Errorf("got the plan %+v", plan)
		}
		spent(w, job.ID, (1+3+3)*3*cent)
	})
	run("an answer that is stored costs nothing", func(w *world, h *hand) {
		w.start("worker", nil, h.in)
		w.ends(w.list("one\ntwo\n", costing).ID, time.Minute, pipeline.JobCompleted)
		job := w.list("one\ntwo\nthree\n", costing)
		w.ends(job.ID, time.Minute, pipeline.JobCompleted)
		plan, err := w.desk.Submitter.Plan(w.ctx, job.ID)
		w.must(err)
		if plan.Stored != 2 {
			w.Errorf("the plan knows of %d stored answers, want 2", plan.Stored)
		}
		spent(w, job.ID, 3*cent)
	})
	run("what hangs may have cost all of it", func(w *world, h *hand) {
		h.does["hangs"] = func(ctx context.Context, _ pipeline.WorkItem) error {
			<-ctx.Done()
			return ctx.Err()
		}
		w.start("worker", nil, h.in)
		job := w.list("hangs\n", costing)
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		spent(w, job.ID, 3*3*cent)
	})
	run("a ceiling below the worst case: what it does not cover is not run, and says so", func(w *world, h *hand) {
		h.does["bad"] = fails(errNo)
		w.start("worker", nil, h.in)
		d := pipeline.LinesOf(handID)
		d.TryCost = 3 * cent
		job := w.submit("one\ntwo\nbad\nthree\nfour\nfive\n", func(sub *submit.Submission) { sub.Definition, sub.MaxCost = d, 10*cent })
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		if ran, _ := h.count(); ran > 3 {
			w.Errorf("ran %d times at 3 cents each, under a ceiling of 10", ran)
		}
		for _, cell := range w.result(job.ID).Missing {
			if !strings.Contains(cell.Failure.Cause, "ceiling") {
				w.Errorf("item %d is missing because of %s", cell.Chunk, cell.Failure)
			}
		}
		w.sound(job.ID)
	})
	run("a try that cost more than a try may: it is counted in full, and the job ends at once and says so", func(w *world, h *hand) {
		h.costs = pipeline.Dollar
		w.start("first", nil, h.in, func(cfg *wiring.Config) { cfg.InFlight = 1 })
		w.start("second", nil, h.in, func(cfg *wiring.Config) { cfg.InFlight = 1 })
		job := w.list("one\ntwo\nthree\nfour\nfive\nsix\n", costing)
		w.ends(job.ID, time.Minute, pipeline.JobCancelled)
		ran, _ := h.count()
		if ran > 2 {
			w.Errorf("ran %d times, one of each worker may be in flight", ran)
		}
		spent(w, job.ID, pipeline.Money(ran)*pipeline.Dollar)
		const why = "hand@1 said at most $0.03 for a try, and one cost $1.00"
		if stood, err := w.back.Store.Job(w.ctx, job.ID); err != nil || !strings.Contains(stood.Reason.Cause, why) {
			w.Errorf("the job ended because of %q, %v, want %q", stood.Reason.Cause, err, why)
		}
		r := w.result(job.ID)
		for _, cell := range r.Missing {
			if !strings.Contains(cell.Failure.Cause, why) {
				w.Errorf("item %d is missing because of %s", cell.Chunk, cell.Failure)
			}
		}
		if r.Counts.Answered != ran {
			w.Errorf("%d of %d answers that were paid for are kept", r.Counts.Answered, ran)
		}
	})
	run("a failed try that cost more than a try may ends the job too", func(w *world, h *hand) {
		h.costs, h.does["bad"] = pipeline.Dollar, fails(pipeline.TryAgain(errNo))
		w.start("worker", nil, h.in)
		job := w.list("bad\n", costing)
		w.ends(job.ID, time.Minute, pipeline.JobCancelled)
		spent(w, job.ID, pipeline.Dollar)
	})
	run("so does one that was stopped, and told what it had cost", func(w *world, h *hand) {
		h.costs, h.does["hangs"] = pipeline.Dollar, func(ctx context.Context, _ pipeline.WorkItem) error {
			<-ctx.Done()
			return ctx.Err()
		}
		w.start("worker", nil, h.in)
		job := w.list("hangs\n", costing)
		w.ends(job.ID, time.Hour, pipeline.JobCancelled)
		spent(w, job.ID, pipeline.Dollar)
	})
	run("a try cannot cost less than nothing: that is a failure of the handler, and costs what a try may", func(w *world, h *hand) {
		h.costs = -pipeline.Dollar
		w.start("worker", nil, h.in)
		job := w.list("one\n", costing)
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		w.abandoned(h, job.ID, 0, "one", pipeline.Broken, 3)
		spent(w, job.ID, 3*3*cent)
	})
	run("a redrive raises the ceiling by what it may cost", func(w *world, h *hand) {
		h.does["bad"] = fails(errNo)
		w.start("worker", nil, h.in)
		job := w.list("one\nbad\n", costing)
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		redriven, err := w.desk.Triage.Redrive(w.ctx, job.ID)
		w.must(err)
		if redriven.Cost != 12*3*cent {
			w.Errorf("the redrive may cost %s, want %s", redriven.Cost, 12*3*cent)
		}
		w.ends(job.ID, time.Hour, pipeline.JobPartial)
		if h.of("bad") != 6 {
			w.Errorf("run %d times, want 6", h.of("bad"))
		}
		spent(w, job.ID, 7*3*cent)
	})
}
