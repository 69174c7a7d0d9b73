package call

import (
	"context"
	"time"

	"holdfast/pkg/pipeline"
)

// pause waits without holding a slot.
func (t *asking) pause(ctx context.Context, wait time.Duration) error {
	if wait > 0 {
		t.unseat()
		t.waited += wait
		if err := t.sleep(ctx, wait); err != nil {
			return err
		}
	}
	if t.seated {
		return nil
	}
	if err := t.c.seat(ctx, t.a); err != nil {
		return err
	}
	t.seated = true
	return nil
}

// sleep waits, but not for an attempt that was stopped.
func (t *asking) sleep(ctx context.Context, wait time.Duration) error {
	return t.unlessStopped(ctx, func(ctx context.Context) error { return t.c.cfg.Clock.Sleep(ctx, wait) })
}

// admit takes capacity from the limiter and waits for it, but not for an attempt that was stopped.
func (t *asking) admit(ctx context.Context) (s slot, err error) {
	err = t.unlessStopped(ctx, func(ctx context.Context) error {
		s, err = t.c.door.admit(ctx, t.request)
		return err
	})
	if err != nil {
		s.refund(ctx, 0)
	}
	return s, err
}

// unlessStopped does what waits, under a context that ends when the attempt is stopped.
func (t *asking) unlessStopped(ctx context.Context, wait func(ctx context.Context) error) error {
	if stopped := t.a.Stop(); stopped != nil { // before anything is asked of the store
		return stopped
	}
	awake, cancel := context.WithCancel(ctx)
	defer cancel()
	var group pipeline.Group
	group.Go(func() {
		select {
		case <-t.a.Stopped():
			cancel()
		case <-awake.Done():
		}
	})
	err := wait(awake)
	cancel()
	group.Wait()
	if stopped := t.a.Stop(); stopped != nil {
		return stopped
	}
	return err
}

// came gives the slot to the next call while what came back is checked and stored, until done, and never waits: what is
// not stored yet is lost with the worker and billed again. So few may give theirs early that little more than what is
// in flight can be lost; the others keep their slot, and a slow store slows the asking down.
func (t *asking) came() (done func()) {
	select {
	case t.c.unsaved <- struct{}{}:
		t.unseat()
		return func() { <-t.c.unsaved }
	default:
		return func() {}
	}
}

func (t *asking) unseat() {
	if t.seated {
		<-t.c.slots
		t.seated = false
	}
}

// busy is a limiter without room: through no fault of the task.
func (t *asking) busy(err error) result {
	if cause := t.a.Stop(); cause != nil {
		return stop(cause)
	}
	return finished(pipeline.Answer{Failure: pipeline.Fail(pipeline.Busy, "the limiter of %s: %v", t.c.info.Name, err), Defers: true})
}
