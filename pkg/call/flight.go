package call

import (
	"context"

	"holdfast/pkg/pipeline"
)

// flight is a key that this process is asking.
type flight struct {
	over   chan struct{} // closed when it is not asked any more
	answer pipeline.Answer
}

// flight makes this question the one that asks its key, until land is called with what became of it. While another
// question of this process asks the same, it waits for that, without a slot: then the reply is stored, or could not
// be, or it failed and this question asks itself. settled is the answer if there is nothing to ask any more.
func (t *asking) flight(ctx context.Context) (settled *pipeline.Answer, land func(pipeline.Answer)) {
	for {
		other, answered, land := t.c.join(t.q.Request.Key)
		if other == nil {
			if answered {
				if settled = t.stored(ctx); settled != nil {
					land(*settled)
					return settled, nil
				}
			}
			if err := t.pause(ctx, 0); err != nil {
				land(pipeline.Answer{Stop: err})
				return &pipeline.Answer{Stop: err}, nil
			}
			return nil, land
		}
		t.unseat()
		select {
		case <-ctx.Done():
			return &pipeline.Answer{Stop: context.Cause(ctx)}, nil
		case <-t.a.Stopped():
			return &pipeline.Answer{Stop: t.a.Stop()}, nil
		case <-other.over:
		}
		switch {
		case other.answer.Failure.None() && other.answer.Stop == nil:
			return &pipeline.Answer{Reply: other.answer.Reply, Reused: true}, nil
		case other.answer.Failure.Kind == pipeline.StoreFault: // paid for and not kept: nobody pays again now
			return &pipeline.Answer{Failure: other.answer.Failure, Defers: true}, nil
		}
	}
}

// stored is the answer by the reply that was stored since this attempt read what there is; nil if it is gone again. One
// that cannot be read now was paid for: nobody pays again.
func (t *asking) stored(ctx context.Context) *pipeline.Answer {
	key := t.q.Request.Key
	found, err := pipeline.ReadReplies(ctx, t.c.cfg.Replies, t.c.cfg.Blobs, t.c.cfg.Clock, []pipeline.ReplyKey{key})
	if err != nil {
		return &pipeline.Answer{Failure: pipeline.Fail(pipeline.StoreFault, "read the stored reply: %v", err), Defers: true}
	}
	if reply, ok := found[key]; ok {
		return &pipeline.Answer{Reply: reply, Reused: true}
	}
	return nil
}

// answeredRoom is how many keys that were answered lately are known.
const answeredRoom = 50_000

// join makes the caller the one that asks key, until it lands; answered says that this process has stored its reply
// not long ago. Or it returns the flight that the caller would double.
func (c *Caller) join(key pipeline.ReplyKey) (other *flight, answered bool, land func(pipeline.Answer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if flying, found := c.flights[key]; found {
		return flying, false, nil
	}
	mine := &flight{over: make(chan struct{})}
	c.flights[key] = mine
	return nil, c.answered[key], func(answer pipeline.Answer) {
		c.mu.Lock()
		delete(c.flights, key)
		if answer.Failure.None() && answer.Stop == nil {
			if len(c.answered) >= answeredRoom {
				clear(c.answered)
			}
			c.answered[key] = true
		}
		c.mu.Unlock()
		mine.answer = answer
		close(mine.over)
	}
}
