package work

import (
	"context"
	"errors"

	"holdfast/pkg/pipeline"
)

// run lets the handler work under the claim and returns how it ended. It returns when the handler has.
func (a *attempt) run(ctx context.Context) pipeline.Ending {
	handler := a.w.cfg.Handlers[a.claim.ID.Kind()]
	if handler == nil {
		return ending(pipeline.Fail(pipeline.Rejected, "this worker has no handler for %s tasks; start one that has", a.claim.ID.Kind()))
	}
	work, drop := context.WithCancelCause(ctx)
	defer drop(nil)
	aside, over := context.WithCancel(context.WithoutCancel(ctx))
	var group pipeline.Group
	group.Go(func() { a.keep(aside) })
	group.Go(func() { a.overrun(aside) })
	group.Go(func() { a.dropper(aside, drop) })

	result := make(chan pipeline.Ending, 1)
	group.Go(func() { result <- a.guard(work, handler) })
	var e pipeline.Ending
	select {
	case e = <-result:
	case <-a.hung(aside, work, &group):
		a.w.cfg.Stuck(a.claim.Ref)
		e = <-result
	}
	over()
	group.Wait()
	return e
}

// guard runs the handler; a panic is a failed attempt with the place where it happened.
func (a *attempt) guard(ctx context.Context, handler pipeline.Handler) (e pipeline.Ending) {
	defer func() {
		if r := recover(); r != nil {
			f := pipeline.Fail(pipeline.Broken, "the handler panicked: %v", r)
			f.Detail = pipeline.Place()
			e = ending(f)
		}
	}()
	return handler.Handle(ctx, a)
}

// overrun stops new tries when the attempt's time is over; those in flight may finish.
func (a *attempt) overrun(ctx context.Context) {
	if a.w.clock.Sleep(ctx, a.w.cfg.Policy.AttemptTimeout) == nil {
		a.halt(pipeline.ErrTimedOut)
	}
}

// dropper aborts what is in flight when the job is cancelled, and a while after anything else stopped the attempt:
// answers in flight were paid for, so they get the time that the longest try may take.
func (a *attempt) dropper(ctx context.Context, drop context.CancelCauseFunc) {
	for {
		job, _, changed := a.reading.last()
		if err := jobStops(job, a.claim.ID.Kind(), a.w.clock.Now()); err != nil {
			a.halt(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.drain.Done():
			a.halt(pipeline.ErrDraining)
		case <-a.stopped:
		case <-changed:
			continue
		}
		break
	}
	if !errors.Is(a.Stop(), pipeline.ErrCancelled) && a.sleepUnlessCancelled(ctx) != nil {
		return
	}
	drop(a.Stop())
}

// sleepUnlessCancelled waits for the time of the longest try, or until the job is cancelled.
func (a *attempt) sleepUnlessCancelled(ctx context.Context) error {
	wait, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	cancelled := false
	group.Go(func() {
		for {
			job, _, changed := a.reading.last()
			if errors.Is(jobStops(job, a.claim.ID.Kind(), a.w.clock.Now()), pipeline.ErrCancelled) {
				cancelled = true
				stop()
				return
			}
			select {
			case <-wait.Done():
				return
			case <-changed:
			}
		}
	})
	err := a.w.clock.Sleep(wait, a.w.cfg.Policy.LongestTry())
	stop()
	group.Wait()
	if cancelled {
		return nil
	}
	return err
}

// hung is closed when the handler ignores that its work was dropped.
func (a *attempt) hung(ctx, work context.Context, group *pipeline.Group) <-chan struct{} {
	hung := make(chan struct{})
	group.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-work.Done():
		}
		if a.w.clock.Sleep(ctx, a.w.cfg.Policy.ClaimTTL) == nil {
			close(hung)
		}
	})
	return hung
}

func ending(f pipeline.Failure) pipeline.Ending { return pipeline.EndingOf(f, 0) }

// stopEnding is the ending that a stop leads to.
func (a *attempt) stopEnding(stop error) pipeline.Ending {
	return ending(pipeline.StopFailure(stop, a.Job()))
}

func failWith(kind pipeline.Kind, doing string, err error) pipeline.Ending {
	return ending(pipeline.Fail(kind, "%s: %v", doing, err))
}
