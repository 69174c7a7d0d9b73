package smoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// Orders is what a worker process of the canary's own does.
type Orders struct {
	Job      pipeline.JobID
	Worker   string
	Own      bool          // under the canary's own model name: see [Own]
	Pace     time.Duration // mean time of an answer
	InFlight int           // calls at once
	Claims   int           // chunks at once; 0 = all that a document has
}

// Process is a worker process of the canary's own.
type Process interface {
	Kill() error                         // SIGKILL
	Stop()                               // asks it to drain
	Exited() <-chan struct{}             // closed once nothing of it can come any more
	Killed() bool                        // it has exited, by SIGKILL
	Failed() error                       // what it said when it ended by itself otherwise than well; nil while it runs
	Asked() ([]pipeline.ReplyKey, error) // what it began to ask, also after its end
}

// mostClaims is how many chunks a document of the canary's has at most.
const mostClaims = 16

// newSystem is the steps over a stack, with other queues.
func (s Setup) newSystem(queues pipeline.Queues, model pipeline.Model, o Orders) *wiring.System {
	return wiring.New(s.own(queues), wiring.Config{
		Tenant: Tenant, Worker: o.Worker, Policy: s.Policy, Clock: s.Clock, Model: model, InFlight: o.InFlight, Claims: cmp.Or(o.Claims, mostClaims), Poll: time.Second,
	})
}

// Work starts a job and works on its chunks until none is open, or drain is done. It takes nothing from the stack's
// queues, so it keeps no message from the stack's workers, and none is left when it is killed.
func Work(ctx, drain context.Context, s Setup, model pipeline.Model, o Orders) error {
	if o.Own {
		model = Own(model)
	}
	system := s.newSystem(s.queues(bells{s.Backend.Queues.Work, s.doorbell()}), model, o)
	drain, stop := context.WithCancel(drain)
	defer stop()
	var group pipeline.Group
	group.Go(func() { system.Worker().Run(ctx, drain) })
	err := lead(drain, system, o.Job)
	stop()
	group.Wait()
	return err
}

// lead starts a job and rings its rows, to the system's own worker, whenever they may be claimed, until none is open.
func lead(ctx context.Context, s *wiring.System, id pipeline.JobID) error {
	if _, err := s.Submitter.Start(ctx, id); err != nil && !errors.Is(err, submit.ErrStands) && ctx.Err() == nil {
		return err
	}
	rung := map[pipeline.Ref]int64{} // the generation after the one that was rung
	for s.Clock().Sleep(ctx, lookEvery) == nil {
		rows, err := workRows(ctx, s, id)
		if errors.Is(err, pipeline.ErrBusy) {
			continue
		}
		if err != nil {
			return ifNotOver(ctx, err)
		}
		open := 0
		for _, row := range rows {
			if row.Status.Ended() {
				continue
			}
			open++
			if row.Status != pipeline.TaskPending || row.ReadyAt > s.Clock().Now() || rung[row.Ref] > row.Generation {
				continue
			}
			if err := s.Backend.Queues.Ring(ctx, row); err != nil {
				return ifNotOver(ctx, err)
			}
			rung[row.Ref] = row.Generation + 1
		}
		if open == 0 {
			return nil
		}
	}
	return nil
}

// ifNotOver is the error, unless it only says that the time is over.
func ifNotOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// workRows are the rows of a job's chunks.
func workRows(ctx context.Context, s *wiring.System, id pipeline.JobID) ([]pipeline.Task, error) {
	all, err := pipeline.AllTasks(ctx, s.Backend.Store, id)
	if err != nil {
		return nil, fmt.Errorf("read the rows of job %s: %w", id, err)
	}
	var rows []pipeline.Task
	for _, row := range all {
		if row.ID.Kind() == pipeline.TaskWork {
			rows = append(rows, row)
		}
	}
	return rows, nil
}
