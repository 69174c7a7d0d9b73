package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// errThrottled is a call that the store did not take.
var errThrottled = fmt.Errorf("throttled by the simulation: %w", pipeline.ErrBusy)

// perform does a released call, with its fault, and writes it into the history.
func (w *World) perform(ctx context.Context, p *process, x *waiter, do func(context.Context, *waiter) error) error {
	e := w.begin(p, x)
	err := w.faulty(ctx, p, x, do)
	if errors.Is(err, pipeline.ErrBusy) || errors.Is(err, pipeline.ErrConflict) {
		w.audit.Trouble(p.name, w.trueTime(), x.fault == LateWrite)
		if x.name == "PutReply" {
			w.audit.Unsaved(p.name)
		}
	}
	if err != nil {
		e.Err = cut(err.Error())
	}
	w.finish(e)
	return err
}

// faulty is the call with what the fault makes of it.
func (w *World) faulty(ctx context.Context, p *process, x *waiter, do func(context.Context, *waiter) error) error {
	switch x.fault {
	case KillBefore:
		w.crash(p)
		return pipelinetest.ErrKilled
	case Throttle, ThrottleRead:
		return errThrottled
	case Conflict:
		return fmt.Errorf("by the simulation: %w", pipeline.ErrConflict)
	case LoseWrite:
		return pipelinetest.ErrLost
	case LateWrite:
		late := w.between(x, 100*time.Millisecond, 40*time.Second)
		table := w.tables
		w.later(late, "late "+x.name, x.on, func() {
			if table == w.tables { // else it was on its way to a table that is no more
				_ = do(context.WithoutCancel(ctx), x)
			}
		})
		return pipelinetest.ErrLost
	case FreezeBefore:
		w.freeze(p, x)
		if w.thawed(p, x); p.isDead() {
			return pipelinetest.ErrKilled
		}
	case FreezeAfter, Freeze:
		w.freeze(p, x)
	}
	if w.storeDown(x) {
		return errThrottled
	}
	err := do(ctx, x)
	switch x.fault {
	case KillAfter:
		w.crash(p)
		return pipelinetest.ErrKilled
	case LoseReply:
		if !errors.Is(err, context.Canceled) {
			return pipelinetest.ErrLost
		}
	}
	if p.frozen > w.sched.time() { // it does not see the answer before it is woken
		w.thawed(p, x)
	}
	return err
}

// freeze stops a process for longer than its claims last.
func (w *World) freeze(p *process, x *waiter) {
	p.frozen = w.sched.time() + w.between(x, p.policy.ClaimTTL+p.policy.MaxSkew, 2*p.policy.ClaimTTL+40*time.Second)
	w.audit.Frozen(p.name, epoch.Add(p.frozen))
}

// thawed waits until the process is woken, or dead.
func (w *World) thawed(p *process, x *waiter) {
	y := w.sched.add(&waiter{p: p, name: "woken at " + x.name, on: x.on, timer: true, due: p.frozen})
	<-y.wake
}

// storeDown says that the store answers nobody.
func (w *World) storeDown(x *waiter) bool {
	return w.sched.time() < w.storeUntil && x.name != "Complete" && !isQueueOp(x.name)
}

func isQueueOp(name string) bool {
	switch name {
	case "Send", "Receive", "Delete", "Delay", "Bury", "Depth", "DeadLetters":
		return true
	}
	return false
}

// crash kills a process; another takes its place a while later.
func (w *World) crash(p *process) {
	p.kill()
	if p.role == worker && w.Spec.supervised() {
		w.later(w.Spec.respawn()/2, "exited", p.name, func() { w.people.tell(w, p.name) })
	}
	w.replace(p)
}

// replace starts another process of the same kind, and of the policy that is deployed now.
func (w *World) replace(p *process) {
	if p.role == person { // whoever gave the command looks what came of it, and gives it again
		if p != w.desk { // whoever gave that one does not mind
			return
		}
		w.desk = w.start(person, w.policy)
		w.later(w.Spec.respawn(), "look", "what came of a command", func() { w.people.look(w) })
		return
	}
	w.later(w.Spec.respawn(), "start", string(p.role), func() {
		if !w.over {
			w.start(p.role, w.policy)
		}
	})
}

// later does something at a virtual time, as a step of the world's own.
func (w *World) later(d time.Duration, name, on string, do func()) {
	w.sched.add(&waiter{name: name, on: on, timer: true, due: w.sched.time() + d, fire: func() {
		e := w.begin(nil, &waiter{name: name, on: on})
		do()
		w.finish(e)
	}})
}

func cut(s string) string {
	if len(s) > 160 {
		return s[:160] + "..."
	}
	return s
}
