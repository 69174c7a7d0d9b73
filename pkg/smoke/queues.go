package smoke

import (
	"context"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// bells is the work queue as a worker of the canary's own has it: what is rung there reaches nobody else, and no worker
// of the stack is kept busy by it. Dead letters go to the stack's own queue.
type bells struct {
	pipeline.Queue                // the stack's
	own            pipeline.Queue // this worker's
}

// Send rings the own worker.
func (b bells) Send(ctx context.Context, messages []pipeline.Message) ([]pipeline.Message, error) {
	return b.own.Send(ctx, messages)
}

// Receive waits for what was rung.
func (b bells) Receive(ctx context.Context, limit int, wait time.Duration) ([]pipeline.Delivery, error) {
	return b.own.Receive(ctx, limit, wait)
}

// Delete removes deliveries.
func (b bells) Delete(ctx context.Context, deliveries []pipeline.Delivery) ([]pipeline.Delivery, error) {
	return b.own.Delete(ctx, deliveries)
}

// Delay makes a delivery visible again after a while.
func (b bells) Delay(ctx context.Context, d pipeline.Delivery, after time.Duration) error {
	return b.own.Delay(ctx, d, after)
}

// many is bells that are heard by several workers: each gets every message.
type many struct {
	bells
	all []pipeline.Queue
}

// Send rings all of them.
func (m *many) Send(ctx context.Context, messages []pipeline.Message) ([]pipeline.Message, error) {
	for _, queue := range m.all {
		if failed, err := queue.Send(ctx, messages); err != nil || len(failed) > 0 {
			return failed, err
		}
	}
	return nil, nil
}

// deaf is the stack's control queue as a worker of the canary's own has it: it rings, and takes nothing. Splits and
// finalizes are the stack's.
type deaf struct {
	pipeline.Queue
	clock pipeline.Clock
}

// Receive waits and brings nothing.
func (d deaf) Receive(ctx context.Context, _ int, wait time.Duration) ([]pipeline.Delivery, error) {
	return nil, d.clock.Sleep(ctx, wait)
}

// Setup is what a worker of the canary's own works over.
type Setup struct {
	Backend *wiring.Backend
	Policy  pipeline.Policy
	Clock   pipeline.Clock
}

// doorbell is an empty queue in this process.
func (s Setup) doorbell() pipeline.Queue { return wiring.InMemory(s.Policy, s.Clock).Queues.Work }

// queues are the stack's, but for the work queue.
func (s Setup) queues(work pipeline.Queue) pipeline.Queues {
	return pipeline.Queues{Control: deaf{s.Backend.Queues.Control, s.Clock}, Work: work}
}

// own is the stack's backend with other queues.
func (s Setup) own(queues pipeline.Queues) *wiring.Backend {
	b := *s.Backend
	b.Queues, b.Release = queues, nil
	return &b
}
