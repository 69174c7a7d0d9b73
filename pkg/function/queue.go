package function

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

// HandleQueue answers one event of a queue: each of its messages on its own. Those that it names in its answer stay in
// the queue and come back at the time that was set for them; the others are deleted by the event source.
//
// Nothing is claimed that there is no time for, and what is claimed is released before the time is over: a slow model
// never becomes a time-out.
func (p *Process) HandleQueue(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	defer p.Event()()
	defer p.telling(ctx)()
	drain, stop, err := p.time(ctx)
	if err != nil {
		return events.SQSEventResponse{}, err
	}
	defer stop()
	work, stopWork := context.WithCancel(ctx)
	defer stopWork()
	defer context.AfterFunc(p.hard, stopWork)()

	deliveries := make([]pipeline.Delivery, len(e.Records))
	ids := map[string]string{}
	for i, m := range e.Records {
		deliveries[i] = p.delivery(m)
		ids[deliveries[i].Receipt] = m.MessageId
	}
	answer := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, d := range p.worker.Batch(work, drain, p.source(), deliveries) {
		answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: ids[d.Receipt]})
	}
	p.Log.LogAttrs(ctx, slog.LevelDebug, "event answered", slog.Int("messages", len(e.Records)), slog.Int("back", len(answer.BatchItemFailures)))
	return answer, nil
}

// time is a context that is done when nothing new may begin: when what is left of the event's time is reserved, or the
// process was asked to end. Its error says what must be set when there is no time at all.
func (p *Process) time(ctx context.Context) (drain context.Context, stop context.CancelFunc, err error) {
	deadline, has := ctx.Deadline()
	if !has {
		drain, stop = context.WithCancel(p.drain)
		return drain, stop, nil
	}
	left := pipeline.At(deadline).Sub(p.Clock.Now())
	use := left - p.Env.Policy.FunctionReserve()
	if use < p.Env.Policy.RenewEvery {
		return nil, nil, fmt.Errorf("this event has %v, and %v of it are reserved for calls in flight and for endings: nothing was claimed. Set the function's time-out to at least %v, as the policy needs it",
			left.Round(time.Millisecond), p.Env.Policy.FunctionReserve(), p.Env.Policy.FunctionTimeout())
	}
	drain, stop = p.Clock.WithTimeout(p.drain, use, pipeline.ErrDraining)
	return drain, stop, nil
}

// delivery is a message of an event as the engine has it. Its receipt counts for as long as the queue keeps it
// invisible.
func (p *Process) delivery(m events.SQSMessage) pipeline.Delivery {
	d := pipeline.Delivery{Body: []byte(m.Body), Receipt: m.ReceiptHandle}
	if receipt := p.System.Backend.Receipt; receipt != nil {
		d.Receipt = receipt(m.ReceiptHandle, p.Clock.Now().Add(p.Env.Policy.FunctionVisibility()))
	}
	d.Receives, _ = strconv.Atoi(m.Attributes["ApproximateReceiveCount"]) // 0 where the event does not say
	sent, _ := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
	d.SentAt = pipeline.Instant(sent)
	return d
}

// source is which of the engine's queues the process is fed from.
func (p *Process) source() int {
	if p.Env.Process == config.Control {
		return 0
	}
	return 1
}

// Terminate is what a process does that was asked to end: it drains, and after the time given it drops what is in
// flight. Claims are released, nothing is lost.
func (p *Process) Terminate(within time.Duration) {
	p.begin()
	if p.Clock.Sleep(p.hard, within) == nil {
		p.drop()
	}
}
