package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
)

// people are the commands of persons. Each runs on a goroutine of its own, through the ports of the desk, which park
// like everybody's.
type people struct {
	mu   sync.Mutex
	busy int
	wg   pipeline.Group
	ends context.CancelFunc
	ctx  context.Context
	late int // commands that will be given at their time
}

// begin submits the document.
func (h *people) begin(w *World) {
	h.ctx, h.ends = context.WithCancel(w.ctx)
	hold := w.faults.on(HoldJob)
	if hold {
		w.faults.fire(w, HoldJob, nil)
	}
	w.later(0, "submit", "the document", func() {
		h.do(func(ctx context.Context) error {
			job, err := w.submit(ctx, 0, hold)
			if err != nil || !hold {
				return err
			}
			return h.start(ctx, w, job.ID)
		})
	})
	h.mind(w)
}

// mindful is how often a person looks whether a job waits for somebody.
const mindful = 15 * time.Minute

// mind looks now and then if a job is paused, planned or gone with the table it was in, and nobody is about to do
// anything about it: what waits for a person for ever is nobody's mistake.
func (h *people) mind(w *World) {
	w.later(mindful, "mind", "the jobs", func() {
		h.look(w)
		if w.sched.time() < maxTime/2 {
			h.mind(w)
		}
	})
}

// look sees to what waits for a person.
func (h *people) look(w *World) {
	if !h.done() {
		return
	}
	if len(w.jobs) == 0 {
		h.do(func(ctx context.Context) error { _, err := w.submit(ctx, 0, false); return err })
	}
	for _, id := range w.jobs {
		h.care(w, id)
	}
}

func (h *people) care(w *World, id pipeline.JobID) {
	job, err := w.store.Job(w.ctx, id)
	switch {
	case err != nil && id == w.first():
		h.do(func(ctx context.Context) error { _, err := w.submit(ctx, 0, false); return err })
	case job.Status == pipeline.JobPaused:
		h.do(func(ctx context.Context) error { return h.resume(ctx, w, id) })
	case job.Status == pipeline.JobPlanned:
		h.do(func(ctx context.Context) error { return h.start(ctx, w, id) })
	}
}

// told lets the auditor look at what a person is told of a command.
func (w *World) told(command func() (pipeline.Job, error)) error {
	began := w.trueTime()
	job, err := command()
	if err == nil {
		w.audit.Told(job, began)
	}
	return err
}

// start starts a held job, once it is split.
func (h *people) start(ctx context.Context, w *World, id pipeline.JobID) error {
	for range 200 {
		err := w.told(func() (pipeline.Job, error) { return w.desk.system.Submitter.Start(ctx, id) })
		if err == nil || h.ctx.Err() != nil {
			return err
		}
		if err := (clock{w.desk}).Sleep(ctx, 5*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// submit gives a document in, again and again while the store does not answer.
func (w *World) submit(ctx context.Context, draft int, hold bool) (pipeline.Job, error) {
	return w.submitAt(ctx, func() *process { return w.desk }, draft, hold)
}

func (w *World) submitAt(ctx context.Context, desk func() *process, draft int, hold bool) (pipeline.Job, error) {
	var job pipeline.Job
	var err error
	began := w.trueTime()
	for range 50 {
		job, _, err = desk().system.Submitter.Submit(ctx, submit.Submission{
			Name: fmt.Sprintf("contract-%d.txt", draft), Source: []byte(w.Spec.document(draft)), Definition: w.Spec.definition(),
			Model: w.Spec.model(), MaxCost: w.Spec.maxCost(), Hold: hold,
		})
		if err == nil {
			w.audit.Submitted(job, began)
		}
		if err == nil || ctx.Err() != nil {
			return job, err
		}
		if err := (clock{desk()}).Sleep(ctx, 10*time.Second); err != nil {
			return job, err
		}
	}
	return job, err
}

// act lets a person do something about the first job, now.
func (h *people) act(w *World, kind Kind, x *waiter) {
	id := w.first()
	desk := w.desk.system
	if id == "" && kind != SubmitMore && kind != SubmitDraft {
		return
	}
	switch kind {
	case CancelJob:
		h.do(func(ctx context.Context) error {
			return w.told(func() (pipeline.Job, error) { return desk.Submitter.Cancel(ctx, id, "enough") })
		})
	case PauseJob:
		h.pause(w, x, id, 2)
	case RedriveJob:
		h.sometime(w, x, "redrive", func(ctx context.Context) error {
			_, err := desk.Triage.Redrive(ctx, id)
			return err
		})
	case SubmitMore:
		h.sometime(w, x, "submit again", func(ctx context.Context) error { _, err := w.submit(ctx, 0, false); return err })
	case SubmitElsewhere:
		guest := w.startFor(otherTenant, person, w.policy)
		h.sometime(w, x, "submit elsewhere", func(ctx context.Context) error {
			_, err := w.submitAt(ctx, func() *process { return guest }, 0, false)
			return err
		})
	case SubmitDraft:
		h.do(func(ctx context.Context) error { _, err := w.submit(ctx, 1, false); return err })
	}
}

// pause pauses a job, resumes it later, and soon after changes its mind again, a number of times.
func (h *people) pause(w *World, x *waiter, id pipeline.JobID, again int) {
	submitter := w.desk.system.Submitter
	h.do(func(ctx context.Context) error {
		return w.told(func() (pipeline.Job, error) { return submitter.Pause(ctx, id) })
	})
	h.later(1)
	w.later(w.between(x, time.Second, 20*time.Minute), "resume", string(id), func() {
		h.later(-1)
		h.do(func(ctx context.Context) error { return h.resume(ctx, w, id) })
		if again == 0 || w.draw("pause again", w.events())%2 == 0 {
			return
		}
		h.later(1)
		w.later(w.between(x, time.Second, 90*time.Second), "pause", string(id), func() {
			h.later(-1)
			h.pause(w, x, id, again-1)
		})
	})
}

// sometime runs a command: at once, or within half an hour, when much may have ended.
func (h *people) sometime(w *World, x *waiter, what string, command func(ctx context.Context) error) {
	after := w.between(x, 0, 30*time.Minute)
	if after/time.Millisecond%2 == 0 {
		after = 0
	}
	h.later(1)
	w.later(after, what, string(w.first()), func() {
		h.later(-1)
		h.do(command)
	})
}

// tell tells that a worker of this machine has exited. Who cannot be told now learns it from its claims.
func (h *people) tell(w *World, name string) {
	reaper := w.desk.system.Reaper
	h.do(func(ctx context.Context) error {
		_, err := reaper.Exited(ctx, name)
		return err
	})
}

// resume resumes until it has worked: a job that is paused for ever is nobody's mistake.
func (h *people) resume(ctx context.Context, w *World, id pipeline.JobID) error {
	for range 50 {
		err := w.told(func() (pipeline.Job, error) { return w.desk.system.Submitter.Resume(ctx, id) })
		job, read := w.store.Job(w.ctx, id)
		if err == nil || read == nil && job.Status != pipeline.JobPaused {
			return err
		}
		if err := (clock{w.desk}).Sleep(ctx, 10*time.Second); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) first() pipeline.JobID {
	if len(w.jobs) == 0 {
		return ""
	}
	return w.jobs[0]
}

// do runs a command.
func (h *people) do(command func(ctx context.Context) error) {
	h.count(1)
	h.wg.Go(func() {
		defer h.count(-1)
		_ = command(h.ctx) // who is told that it cannot be done leaves it at that
	})
}

func (h *people) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy += n
}

func (h *people) later(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late += n
}

// done says that no command runs and none will be given.
func (h *people) done() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy == 0 && h.late == 0
}

func (h *people) stop() { h.ends() }
