package simulation

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/simulation/audit"
)

// The tenants: whose document a world is about, and another.
const (
	tenant      = "tenant"
	otherTenant = "other"
)

// World is one run of a Spec.
type World struct {
	Spec Spec

	ctx           context.Context
	sched         scheduler
	store         *memory.Store
	control, work *memory.Queue
	visibility    time.Duration
	audit         *audit.Auditor
	desk          *process
	processes     []*process
	count         map[role]int
	policy        pipeline.Policy // what is deployed now
	past          sync.Mutex      // of the next two: tries that one cancel aborts end together
	history       History
	current       *Event // being performed

	storeUntil, stormUntil, outageUntil time.Duration
	over                                bool
	disturbed                           bool
	stepped                             time.Duration // machine time at the last step
	tables                              int           // how often an older one was put back
	jobs                                []pipeline.JobID
	faults                              faults
	people                              people
}

// Outcome is what came of a world.
type Outcome struct {
	Spec      Spec
	History   History
	Broken    *audit.Violation // nil if every promise was kept
	Fired     []Fault
	Calls     map[Kind]map[string]int // at which calls, by their names, each kind happened
	Checked   map[string]int          // how often each promise was checked
	End       string                  // how jobs and rows stood at the end, for counting distinct ones
	Virtual   time.Duration
	ForcedAt  map[Kind][]int // with Spec.Survey: the events at which a kind could be forced
	Disturbed bool           // the machine stalled: the same seed may have another history
}

// limits of a world: what exceeds them is a loop without a number that ends it, or a row that is stuck.
const (
	maxEvents = 60_000
	maxTime   = 40 * time.Hour
)

// Run runs one world to its end, or to the first promise that is broken.
func Run(t *testing.T, spec Spec) (out Outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		out = newWorld(t.Context(), spec).run()
	})
	clean(len(out.History.Events))
	return out
}

func newWorld(ctx context.Context, spec Spec) *World {
	w := &World{Spec: spec, ctx: ctx, count: map[role]int{}, policy: spec.Policy(0)}
	clock := worldClock{&w.sched}
	w.visibility = w.policy.Visibility()
	queueConfig := memory.QueueConfig{Visibility: w.visibility, MaxReceives: w.policy.MaxReceives, Now: clock.Now}
	w.store, w.control, w.work = memory.New(), memory.NewQueue(queueConfig), memory.NewQueue(queueConfig)
	w.store.PageBytes = spec.page()
	w.audit = audit.New(audit.Config{
		Store: w.store, Definition: spec.definition(), Now: clock.Now, Shared: spec.model().TokensPerMinute > 0, Punctual: spec.slowness() == 0,
	})
	w.faults.begin(w)
	return w
}

// run lets one after the other go on until the world is over, or a promise is broken.
func (w *World) run() Outcome {
	defer w.end()
	w.populate()
	for {
		w.settle()
		may := w.sched.eligible()
		if w.isOver(may) {
			return w.outcome()
		}
		if t, ok := w.sched.next(); ok && (len(may) == 0 || w.slow(t)) {
			w.sched.advance(t)
			continue
		}
		x := w.choose(may)
		w.faults.at(w, x)
		if w.sched.has(x) { // a fault may have killed its process
			w.sched.release(x)
		}
	}
}

// populate starts everybody, and lets a person submit the document.
func (w *World) populate() {
	w.desk = w.start(person, w.policy)
	for range w.Spec.Workers {
		w.start(worker, w.policy)
	}
	for range w.Spec.Reapers {
		w.start(reaper, w.policy)
	}
	w.people.begin(w)
	w.stepped = realTime()
}

// settle waits until everybody has parked or is blocked, and looks whether the machine stalled meanwhile.
func (w *World) settle() {
	synctest.Wait()
	runtime.Gosched() // nobody else can run: each step begins with a time slice of its own
	now := realTime()
	w.disturbed = w.disturbed || now-w.stepped > stall
	w.stepped = now
}

// isOver says that nothing more is to happen, and lets the auditor look at how it stands then: a promise is broken,
// everything has ended, or it never will. may are those who may go on.
func (w *World) isOver(may []*waiter) bool {
	if w.audit.Broken() != nil {
		return true
	}
	if w.events() > maxEvents || w.sched.time() > maxTime {
		w.audit.Stuck(fmt.Sprintf("after %d events and %v of virtual time (%s)", w.events(), w.sched.time(), w.waitsFor()))
		return true
	}
	if len(may) > 0 {
		return false
	}
	if w.quiet() {
		w.audit.End(w.trueTime(), w.letters())
		return true
	}
	if _, ok := w.sched.next(); !ok {
		w.audit.Stuck("nobody waits for anything any more")
		return true
	}
	return false
}

// choose takes one of those who may go on: whoever the seed says, or once the world is calm whoever came first.
func (w *World) choose(may []*waiter) *waiter {
	n := w.events()
	if w.Spec.Calm >= 0 && n >= w.Spec.Calm {
		first := may[0]
		for _, x := range may {
			if x.seq < first.seq {
				first = x
			}
		}
		return first
	}
	return may[w.draw("choose", n)%uint64(len(may))]
}

// slow lets time go on to t although somebody could go on now: calls take their time.
func (w *World) slow(t time.Duration) bool {
	n := w.events()
	if w.Spec.Calm >= 0 && n >= w.Spec.Calm || t-w.sched.time() > 5*time.Second {
		return false
	}
	w.faults.looks++
	return w.draw("slow", n*1000+w.faults.looks%1000)%1000 < w.Spec.slowness()
}

// draw is a number that depends on nothing but the seed, what it is for, and when.
func (w *World) draw(what string, n int) uint64 {
	h := w.Spec.Seed
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * prime
	}
	return mix(mix(h) ^ uint64(n))
}

// between is a time that depends on the call's place in the history.
func (w *World) between(x *waiter, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	h := w.draw("between "+x.name+x.on, w.events())
	return least + time.Duration(h%uint64(most-least)).Round(time.Millisecond)
}

// jitter is every process's: in [0,1).
func (w *World) jitter() float64 {
	return float64(w.draw("jitter", w.events())%1000) / 1000
}

func (w *World) trueTime() pipeline.Instant { return epoch.Add(w.sched.time()) }

// events is how many there are so far.
func (w *World) events() int {
	w.past.Lock()
	defer w.past.Unlock()
	return len(w.history.Events)
}

// performed is the event that is being performed; nil if there is none.
func (w *World) performed() *Event {
	w.past.Lock()
	defer w.past.Unlock()
	return w.current
}

// begin opens an event; what the call finds out is noted in it.
func (w *World) begin(p *process, x *waiter) *Event {
	w.past.Lock()
	defer w.past.Unlock()
	e := &Event{N: len(w.history.Events), At: w.sched.time(), Who: "world", Op: x.name, On: x.on, Write: x.write, Fault: x.fault}
	if p != nil {
		e.Who = p.name
	}
	w.history.Events = append(w.history.Events, *e)
	w.current = e
	return e
}

// finish closes it. Events that take time, as a try does, are closed after others that began later.
func (w *World) finish(e *Event) {
	w.past.Lock()
	defer w.past.Unlock()
	w.history.Events[e.N] = *e
	if w.current == e {
		w.current = nil
	}
}

// note adds words to the event that is being performed.
func (w *World) note(format string, args ...any) {
	w.past.Lock()
	defer w.past.Unlock()
	if w.current != nil {
		w.current.Note = fmt.Sprintf(format, args...)
	}
}

// quiet says that all is over: every job and row has ended, nobody has anything left to do, and no message is left.
func (w *World) quiet() bool {
	if !w.people.done() || w.faults.pending() || !w.audit.AllEnded() {
		return false
	}
	for _, q := range []*memory.Queue{w.control, w.work} {
		visible, inFlight, _ := q.Depth(w.ctx)
		if visible+inFlight > 0 {
			return false
		}
	}
	return true
}

// waitsFor is what a world that does not end still waits for.
func (w *World) waitsFor() string {
	var parts []string
	if !w.people.done() {
		parts = append(parts, "a person's command")
	}
	if w.faults.pending() {
		parts = append(parts, "a fault")
	}
	for name, q := range map[string]*memory.Queue{pipeline.ControlQueue: w.control, pipeline.WorkQueue: w.work} {
		if visible, inFlight, _ := q.Depth(w.ctx); visible+inFlight > 0 {
			parts = append(parts, fmt.Sprintf("%d messages visible and %d in flight on %s", visible, inFlight, name))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (w *World) letters() (all []pipeline.DeadLetter) {
	for _, q := range []*memory.Queue{w.control, w.work} {
		for cursor := ""; ; {
			page, next, err := q.DeadLetters(w.ctx, cursor)
			all = append(all, page...)
			if cursor = next; err != nil || next == "" {
				break
			}
		}
	}
	return all
}

// end kills everybody, so that nothing is left of the world.
func (w *World) end() {
	w.over = true
	for _, p := range w.processes {
		p.kill()
	}
	w.people.stop()
	synctest.Wait()
}

func (w *World) outcome() Outcome {
	return Outcome{
		Spec: w.Spec, History: w.history, Broken: w.audit.Broken(), Fired: w.faults.fired, Calls: w.faults.calls, Checked: w.audit.Checked(),
		End: w.audit.EndState(), Virtual: w.sched.time(), ForcedAt: w.faults.survey, Disturbed: w.disturbed,
	}
}
