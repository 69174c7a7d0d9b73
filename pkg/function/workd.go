package function

import (
	"context"
	"time"

	"holdfast/pkg/pipeline"
)

// Times of the polling process.
const (
	metricsEvery = time.Minute
	// sweepTime is the most that one of its own sweeps takes: the next one goes on.
	sweepTime = 30 * time.Second
)

// Run polls both queues until the process is asked to end ([Process.Terminate]). It sweeps for itself meanwhile, so that
// a lost worker is noticed sooner than by the schedule. It returns when every claim was released, at the latest after
// its stop time: what is in flight is dropped while there is still time to write how it ended.
func (p *Process) Run(protection *Protection) {
	rest, stop := context.WithCancel(p.hard)
	defer stop()
	var group pipeline.Group
	group.Go(func() { p.sweeps(p.drain) })
	group.Go(func() { p.metrics(rest) })
	if protection != nil {
		p.busy.listen(protection.wants)
		group.Go(func() { protection.keep(rest) })
	}
	p.worker.Run(p.hard, p.drain)
	stop()
	group.Wait()
	p.write(context.Background())
}

// sweeps sweeps every RenewEvery: a claim that lapsed is not taken much later than it may be.
func (p *Process) sweeps(ctx context.Context) {
	for p.Clock.Sleep(ctx, p.Env.Policy.RenewEvery) == nil {
		if err := p.sweep(ctx, sweepTime); err != nil && ctx.Err() == nil {
			p.Log.WarnContext(ctx, "sweep failed", "error", err)
		}
		p.beat()
	}
}

// metrics writes down what was counted, and that the process lives.
func (p *Process) metrics(ctx context.Context) {
	for p.Clock.Sleep(ctx, metricsEvery) == nil {
		p.write(ctx)
	}
}
