package function_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/config"
	"holdfast/pkg/function"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestFunctions(t *testing.T) {
	in(t, "a whole job by functions only, and what it logs", func(s *stack) {
		job := s.submit(8)
		s.whole(s.runs(job.ID, time.Hour))
		calls := s.model.count()
		if calls != 8*6 {
			s.Errorf("got %d calls, want each of 48 once", calls)
		}
		if paid, _ := s.metric("PaidCalls"); paid != calls {
			s.Errorf("got %d paid calls in the metrics, want %d", paid, calls)
		}
		if cells, _ := s.metric("CellsFinished"); cells != calls {
			s.Errorf("got %d finished cells in the metrics, want %d", cells, calls)
		}
		if bytes := len(s.log.String()) + len(s.metrics.String()); bytes > 200*calls {
			s.Errorf("got %d bytes of log for %d calls, want at most 200 a call", bytes, calls)
		}
	}, func(s *stack) { s.model.takes = time.Second })
	in(t, "a model so slow that no attempt ends in its time: no event times out, nothing is lost or asked twice", func(s *stack) {
		job := s.submit(3)
		s.whole(s.runs(job.ID, 20*time.Hour))
		if s.model.count() != 3*40 || s.model.aborted != 0 {
			s.Errorf("got %d calls, %d aborted, want each of 120 once", s.model.count(), s.model.aborted)
		}
		if limit := config.Timeout(config.Work, s.policy); s.longest < s.policy.AttemptTimeout || s.longest > limit-10*time.Second {
			s.Errorf("the longest event took %v, want more than an attempt and well below %v", s.longest, limit)
		}
	}, func(s *stack) { s.model.takes = 90 * time.Second }, oneAtATime)
	in(t, "a model that throttles everything for an hour: deferrals, then the whole", func(s *stack) {
		began := s.clock.Mono()
		s.model.react = func(int, pipeline.Request) error {
			if s.clock.Mono()-began < time.Hour {
				return refuse(pipeline.Throttled)
			}
			return nil
		}
		s.whole(s.runs(s.submit(4).ID, 12*time.Hour))
		if n, _ := s.metric("TasksAbandoned"); n != 0 {
			s.Errorf("got %d abandoned", n)
		}
	})
	in(t, "a model that is down for an hour, and a breaker: the same", func(s *stack) {
		began := s.clock.Mono()
		s.model.react = func(int, pipeline.Request) error {
			if s.clock.Mono()-began < time.Hour {
				return refuse(pipeline.Unavailable)
			}
			return nil
		}
		s.whole(s.runs(s.submit(4).ID, 12*time.Hour))
	})
	in(t, "a model that never answers: the task is abandoned in its attempts, never a time-out", func(s *stack) {
		job := s.runs(s.submit(1).ID, 20*time.Hour)
		if job.Status != pipeline.JobPartial && job.Status != pipeline.JobFailed {
			s.Errorf("the job is %s", job.Status)
		}
	}, func(s *stack) { s.model.takes = 30 * time.Hour })
}

func TestPoison(t *testing.T) {
	in(t, "a chunk that kills its process each time is given up at its cap, with every reason; its neighbours are done", func(s *stack) {
		s.model.react = func(_ int, r pipeline.Request) error {
			if strings.Contains(r.Shared, "part 3.5") {
				s.dead.Store(true)
				return context.Canceled
			}
			return nil
		}
		job := s.runs(s.submit(5).ID, 3*time.Hour)
		if job.Status != pipeline.JobPartial {
			s.Errorf("the job is %s (%s), want partial", job.Status, job.Reason)
		}
		rows, err := pipeline.AllTasks(s.ctx, s.back.Store, job.ID)
		s.must(err)
		var abandoned []pipeline.Task
		for _, row := range rows {
			if row.Status == pipeline.TaskAbandoned {
				abandoned = append(abandoned, row)
			} else if row.Status != pipeline.TaskDone {
				s.Errorf("%s is %s", row.ID, row.Status)
			}
		}
		if len(abandoned) != 1 || abandoned[0].Reason.Kind != pipeline.Lost || abandoned[0].Generation != int64(s.policy.MaxAttempts) {
			s.Fatalf("got %+v, want the poison alone, after %d attempts", abandoned, s.policy.MaxAttempts)
		}
		letters, _, err := s.work.DeadLetters(s.ctx, "")
		s.must(err)
		if len(letters) != 1 || len(letters[0].Context) != s.policy.MaxAttempts {
			s.Errorf("got %+v, want one dead letter with the record of each attempt", letters)
		}
		if n, _ := s.metric("TasksAbandoned"); n != 1 {
			s.Errorf("got %d abandoned in the metrics, want 1: that is what the alarm counts", n)
		}
	})
}

// oneAtATime lets a process have one call in flight, and a chunk forty.
func oneAtATime(s *stack) {
	s.inFlight, s.calls = "1", 20
	s.stages = 2
}

func TestEvents(t *testing.T) {
	in(t, "one bad record does not fail its neighbours", func(s *stack) {
		good := s.row(0, func(r *pipeline.Task) { r.Accepted, r.Bodies = 3, []int64{1, 1, 1} }) // its work is done: the claim finds that out
		s.must(s.back.Queues.Ring(s.ctx, good))
		s.work.SendRaw([]byte("not ours"))
		s.work.SendRaw([]byte(`{"job": "0123456789-1", "task": "walk#00001"}`))
		missing := pipelinetest.NewRow("9999999999-1", pipeline.WorkTask(0))
		s.must(s.back.Queues.Ring(s.ctx, missing))
		held := s.row(1)
		_, err := s.back.Store.Claim(s.ctx, pipelinetest.ClaimOf(held, "other", s.clock.Now()))
		s.must(err)
		s.must(s.back.Queues.Ring(s.ctx, held))
		deliveries, err := s.work.Receive(s.ctx, 10, 0)
		s.must(err)
		answer, err := s.invoke(config.Work, s.process(config.Work).HandleQueue, sqsEvent(deliveries), config.Timeout(config.Work, s.policy))
		s.must(err)
		back := s.settle(s.work, deliveries, answer)
		if len(deliveries) != 5 || len(back) != 1 {
			s.Fatalf("got %v of %d back: want the held one alone", back, len(deliveries))
		}
		letters, _, err := s.work.DeadLetters(s.ctx, "")
		s.must(err)
		if len(letters) != 2 || letters[0].Reason.Kind != pipeline.Invalid || letters[0].Receives != 1 {
			s.Errorf("got %v, want both that are not ours, with the reason and how often they came", letters)
		}
		s.wait(s.policy.AttemptTimeout - time.Second)
		if visible, _, _ := s.work.Depth(s.ctx); visible != 0 {
			s.Error("the held one came back before that attempt must be over")
		}
		s.wait(2 * time.Second)
		if visible, _, _ := s.work.Depth(s.ctx); visible != 1 {
			s.Error("the held one did not come back when that attempt must be over")
		}
	})
	in(t, "what stays is named byte by byte as AWS wants it, and every id is one of the event's", func(s *stack) { // S-05
		done := func(r *pipeline.Task) { r.Accepted, r.Bodies = 3, []int64{1, 1, 1} }
		s.must(s.back.Queues.Ring(s.ctx, s.row(0, done)))
		held := s.row(1)
		_, err := s.back.Store.Claim(s.ctx, pipelinetest.ClaimOf(held, "other", s.clock.Now()))
		s.must(err)
		s.must(s.back.Queues.Ring(s.ctx, held))
		s.must(s.back.Queues.Ring(s.ctx, s.row(2, done)))
		s.around = func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if strings.Contains(op.On, "work#00002") {
				panic("a bug")
			}
			return do(ctx)
		}
		answer := func(edit func(*events.SQSEvent)) string {
			deliveries, err := s.work.Receive(s.ctx, 10, 0)
			s.must(err)
			event := sqsEvent(deliveries)
			edit(&event)
			answer, err := s.invoke(config.Work, s.process(config.Work).HandleQueue, event, config.Timeout(config.Work, s.policy))
			s.must(err)
			s.settle(s.work, deliveries, answer)
			return string(answer)
		}
		as := func(*events.SQSEvent) {}
		if got := answer(as); got != `{"batchItemFailures":[{"itemIdentifier":"m-1"},{"itemIdentifier":"m-2"}]}` && got != `{"batchItemFailures":[{"itemIdentifier":"m-2"},{"itemIdentifier":"m-1"}]}` {
			s.Errorf("got %s, want the held one and the one that panicked", got)
		}
		s.must(s.back.Queues.Ring(s.ctx, s.row(3, done)))
		if got := answer(as); got != `{"batchItemFailures":[]}` {
			s.Errorf("got %s, want an empty list when all are done", got)
		}
		s.must(s.back.Queues.Ring(s.ctx, held))
		s.must(s.back.Queues.Ring(s.ctx, s.row(4, done)))
		if got := answer(func(e *events.SQSEvent) { e.Records[1].MessageId = e.Records[0].MessageId }); got != `{"batchItemFailures":[{"itemIdentifier":"m-0"}]}` {
			s.Errorf("got %s, want the id that two records share", got)
		}
		if n := s.model.count(); n != 0 {
			s.Errorf("got %d calls for what was done before", n)
		}
	})
	in(t, "a dead letter that cannot be sent: the message stays", func(s *stack) {
		s.work.SendRaw([]byte("not ours"))
		s.back.Queues.Work = buryless{s.work}
		if handed, back := s.feed(config.Work, s.work); handed != 1 || len(back) != 1 {
			s.Errorf("got %v of %d back, want it", back, handed)
		}
	})
	in(t, "a time-out that is too short for the policy: nothing is claimed, and it says what to set", func(s *stack) {
		s.must(s.back.Queues.Ring(s.ctx, s.row(0)))
		deliveries, err := s.work.Receive(s.ctx, 1, 0)
		s.must(err)
		_, err = s.invoke(config.Work, s.process(config.Work).HandleQueue, sqsEvent(deliveries), time.Minute)
		if err == nil || !strings.Contains(err.Error(), "time-out to at least "+s.policy.FunctionTimeout().String()) {
			s.Errorf("got %v, want what to set", err)
		}
		if row, _ := s.back.Store.Task(s.ctx, pipeline.Ref{Job: "0123456789-1", ID: pipeline.WorkTask(0)}); row.Generation != 0 {
			s.Error("it was claimed")
		}
	})
	in(t, "a process that is asked to end releases what it holds at once", func(s *stack) {
		job := s.submit(1)
		s.feed(config.Control, s.control)
		deliveries, err := s.work.Receive(s.ctx, 1, 0)
		s.must(err)
		p := s.process(config.Work)
		time.AfterFunc(3*time.Second, func() { p.Terminate(300 * time.Millisecond) })
		began := s.clock.Mono()
		answer, err := s.invoke(config.Work, p.HandleQueue, sqsEvent(deliveries), config.Timeout(config.Work, s.policy))
		s.must(err)
		if took := s.clock.Mono() - began; took < 3*time.Second || took > 3500*time.Millisecond {
			s.Errorf("it took %v to end, want 3.3 s", took)
		}
		row, err := s.back.Store.Task(s.ctx, pipeline.Ref{Job: job.ID, ID: pipeline.WorkTask(0)})
		s.must(err)
		if row.Status != pipeline.TaskPending || row.Attempts != 0 || row.Reason.Kind != pipeline.Shutdown || row.DueAt > s.clock.Now() {
			s.Errorf("got %s, %d attempts, %s, due %s, want it released and due", row.Status, row.Attempts, row.Reason, row.DueAt)
		}
		if back := s.settle(s.work, deliveries, answer); len(back) != 0 {
			s.Errorf("got %v back, want the reaper to ring it", back)
		}
	}, func(s *stack) { s.model.takes = 50 * time.Second })
	in(t, "a policy that no function has the time for is refused", func(s *stack) {
		s.policy.AttemptTimeout = 14 * time.Minute
		_, err := function.New(s.env(config.Work), function.Parts{Backend: s.back, Model: s.model, Clock: s.clock})
		if err == nil || !strings.Contains(err.Error(), config.PolicyVar) {
			s.Errorf("got %v, want the setting named", err)
		}
	})
}

func TestSchedule(t *testing.T) {
	lost := func(s *stack) pipeline.Task {
		row := s.row(0)
		_, err := s.back.Store.Claim(s.ctx, pipelinetest.ClaimOf(row, "dead", s.clock.Now()))
		s.must(err)
		s.wait(s.policy.ClaimTTL + s.policy.MaxSkew + time.Second)
		return row
	}
	in(t, "a sweep expires, rings, and says that it went through", func(s *stack) {
		lost(s)
		s.must(s.reap())
		if visible, _, _ := s.work.Depth(s.ctx); visible != 1 {
			s.Error("no bell was sent")
		}
		if n, _ := s.metric("Sweeps"); n != 1 {
			s.Errorf("got %d sweeps in the metrics, want 1", n)
		}
	})
	in(t, "a sweep that fails is no sign of life", func(s *stack) {
		if err := s.reap(); err == nil || !strings.Contains(err.Error(), "no such table") {
			s.Errorf("got %v, want the cause", err)
		}
		if _, written := s.metric("Sweeps"); written {
			s.Error("it was counted")
		}
	}, func(s *stack) {
		s.around = func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Due" {
				return refuse("no such table")
			}
			return do(ctx)
		}
	})
	in(t, "a sweep with more than it has time for ends in time, and the next goes on", func(s *stack) {
		job := s.submit(200)
		s.feed(config.Control, s.control)
		s.wait(2 * time.Minute)
		for range 12 {
			s.must(s.reap())
		}
		rung := map[pipeline.TaskID]bool{}
		rows, err := pipeline.AllTasks(s.ctx, s.back.Store, job.ID)
		s.must(err)
		for _, row := range rows {
			if row.Ring > 0 {
				rung[row.ID] = true
			}
		}
		if len(rung) != 200 || s.longest < 20*time.Second {
			s.Errorf("got %d rung, the longest sweep took %v", len(rung), s.longest)
		}
	}, func(s *stack) {
		s.around = func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Ring" {
				time.Sleep(500 * time.Millisecond)
			}
			return do(ctx)
		}
	})
	in(t, "rows that are rung and never claimed are counted", func(s *stack) {
		s.row(0, func(r *pipeline.Task) { r.Rings = s.policy.MaxRings })
		s.wait(2 * time.Minute)
		s.must(s.reap())
		if n, _ := s.metric("Unclaimable"); n != 1 {
			s.Errorf("got %d, want 1", n)
		}
	})
	in(t, "an event without time sweeps nothing, and says what to set", func(s *stack) {
		_, err := s.invoke(config.Reap, s.process(config.Reap).HandleSchedule, map[string]any{}, 5*time.Second)
		if err == nil || !strings.Contains(err.Error(), config.ReapTimeout.String()) {
			s.Errorf("got %v, want what to set", err)
		}
	})
}

// buryless is a queue whose dead-letter queue is down.
type buryless struct{ pipeline.Queue }

func (buryless) Bury(context.Context, pipeline.DeadLetter) error { return pipeline.ErrBusy }

func TestTheLogNamesTheProcess(t *testing.T) {
	in(t, "in every line", func(s *stack) {
		s.whole(s.runs(s.submit(1).ID, time.Hour))
		lines := slices.Collect(strings.Lines(s.log.String()))
		for _, line := range lines {
			if !strings.Contains(line, `"process":"`) {
				s.Errorf("got %s", line)
			}
		}
		if len(lines) == 0 {
			s.Error("nothing was logged")
		}
	})
}
