package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
)

// Fault is one fault of a history: its kind, and at which event.
type Fault struct {
	N    int
	Kind Kind
}

func (f Fault) String() string { return fmt.Sprintf("%d:%s", f.N, f.Kind) }

// ParseFaults reads what a failure prints: "12:killed after the write; 40:message lost".
func ParseFaults(text string) ([]Fault, error) {
	all := []Fault{}
	for part := range strings.SplitSeq(text, ";") {
		number, kind, found := strings.Cut(strings.TrimSpace(part), ":")
		if strings.TrimSpace(part) == "" {
			continue
		}
		n, err := strconv.Atoi(number)
		if !found || err != nil || !slices.Contains(Kinds(), Kind(kind)) {
			return nil, fmt.Errorf("fault %q: want event:kind, with one of the kinds of package simulation", part)
		}
		all = append(all, Fault{n, Kind(kind)})
	}
	return all, nil
}

// peace is when faults end, so that what is left must end well.
const peace = 45 * time.Minute

// faults are what goes wrong in a world.
type faults struct {
	rates    map[Kind]float64 // of the kinds that are on
	fired    []Fault
	counts   map[Kind]int
	calls    map[Kind]map[string]int // at which calls each happened, by their names
	survey   map[Kind][]int
	looks    int
	deploys  int
	due      [pipeline.DueShards][]pipeline.Task // what the index showed last
	open     []pipeline.Job
	snapshot *memory.Snapshot
}

// begin draws which kinds are on in this world, each with its rate: a few, most often.
func (f *faults) begin(w *World) {
	f.rates, f.counts, f.calls = map[Kind]float64{}, map[Kind]int{}, map[Kind]map[string]int{}
	if w.Spec.Survey {
		f.survey = map[Kind][]int{}
	}
	share := []uint64{3, 6, 12}[w.Spec.of("swarm", 3)] // of 24
	for _, t := range traits {
		if !w.Spec.Faults || w.Spec.Fixed != nil || w.draw("on "+string(t.kind), 0)%24 >= share {
			continue
		}
		rate := 1.0
		if len(t.rate) > 0 {
			rate = t.rate[w.draw("rate "+string(t.kind), 0)%uint64(len(t.rate))]
		}
		f.rates[t.kind] = rate
	}
	for _, fixed := range w.Spec.Fixed {
		if fixed.N < 0 {
			f.rates[fixed.Kind] = 1 // of those that happen when something begins
		}
	}
}

// on says that a kind which happens when something begins is on.
func (f *faults) on(kind Kind) bool { return f.rates[kind] > 0 }

// illness is a fault that lasts: it happens to every call of a name until its time is over.
type illness struct {
	kind  Kind
	name  string
	until time.Duration
}

// lasts says that a fault of one call may go on to happen to the calls after it.
func (k Kind) lasts() bool {
	switch k {
	case LoseReply, LoseWrite, Throttle, ThrottleRead:
		return true
	}
	return false
}

// fallIll makes one in four of the faults that may last do so; one in four of these for longer than anybody tries to
// write the same.
func (w *World) fallIll(kind Kind, x *waiter) {
	draw := w.draw("ill", w.events())
	if !kind.lasts() || draw%4 != 0 {
		return
	}
	most := 25 * time.Second
	if draw/4%4 == 0 {
		most = 4 * time.Minute
	}
	x.p.ill = illness{kind, x.name, w.sched.time() + w.between(x, time.Second, most)}
}

// at decides what goes wrong at a call that is about to be released.
func (f *faults) at(w *World, x *waiter) {
	n := w.events()
	if x.p != nil && !x.timer && x.p.ill.name == x.name && w.sched.time() < x.p.ill.until {
		x.fault = x.p.ill.kind
		return
	}
	for _, t := range traits {
		if t.born || !t.at(x) {
			continue
		}
		if f.survey != nil {
			f.survey[t.kind] = append(f.survey[t.kind], n)
		}
		if f.happens(w, t, n) {
			f.fire(w, t.kind, x)
			return
		}
	}
}

func (f *faults) happens(w *World, t trait, n int) bool {
	if w.Spec.Fixed != nil {
		return slices.Contains(w.Spec.Fixed, Fault{n, t.kind}) && !slices.Contains(f.fired, Fault{n, t.kind}) // once
	}
	rate := f.rates[t.kind]
	if rate == 0 || f.counts[t.kind] >= t.most || w.sched.time() > peace {
		return false
	}
	return float64(w.draw(string(t.kind), n)%1_000_000) < rate*1_000_000 && !slices.Contains(f.fired, Fault{n, t.kind})
}

// fire makes a fault happen: to the call, or to the world beside it.
func (f *faults) fire(w *World, kind Kind, x *waiter) {
	n := w.events()
	if x == nil {
		n = -1
	}
	f.counts[kind]++
	if x != nil || f.counts[kind] == 1 {
		f.fired = append(f.fired, Fault{n, kind})
	}
	if x == nil {
		return
	}
	if f.calls[kind] == nil {
		f.calls[kind] = map[string]int{}
	}
	f.calls[kind][x.name]++
	switch kind {
	case StoreOutage:
		w.storeUntil = w.sched.time() + w.between(x, 500*time.Millisecond, 2*time.Minute)
	case ModelStorm:
		w.stormUntil = w.sched.time() + w.between(x, 2*time.Second, 5*time.Minute)
	case ModelOutage:
		w.outageUntil = w.sched.time() + w.between(x, time.Minute, 40*time.Minute)
	case ClockStep:
		half := x.p.policy.MaxSkew / 2
		if x.p.skew.Abs() <= half {
			x.p.skew = w.between(x, 0, 2*half) - half
		}
	case DeployAll, DeployBeside:
		w.deploy(kind, x)
	case CancelJob, PauseJob, RedriveJob, SubmitMore, SubmitDraft, SubmitElsewhere:
		w.people.act(w, kind, x)
	case Restore:
		w.restoreLater(x)
	default:
		x.fault = kind
		w.fallIll(kind, x)
		return
	}
	w.happened(kind)
}

// happened writes down a fault that is no call's.
func (w *World) happened(kind Kind) {
	e := w.begin(nil, &waiter{name: "fault", on: string(kind), fault: kind})
	w.finish(e)
}

// deploy drains workers and starts others, of another policy: all at once, or one beside the old ones first.
func (w *World) deploy(kind Kind, x *waiter) {
	w.faults.deploys++
	w.policy = w.Spec.Policy(w.faults.deploys)
	var old []*process
	for _, p := range w.processes {
		if p.role == worker && p.running() && !p.drained {
			old = append(old, p)
		}
	}
	swap := func(p *process) {
		if p.running() && !p.drained {
			p.drained = true
			w.audit.Drained(p.name, w.trueTime())
			p.drain()
			w.replace(p)
		}
	}
	for i, p := range old {
		if kind == DeployAll {
			swap(p)
			continue
		}
		w.later(time.Duration(i+1)*w.between(x, 2*time.Second, time.Minute), "drain", p.name, func() { swap(p) })
	}
	if kind == DeployBeside {
		w.later(time.Second, "start", string(worker), func() { w.start(worker, w.policy) })
	}
}

// restoreLater takes a copy of the table now, and puts it back later: as another table, so that everybody starts anew,
// and what was on its way to the old one is lost. Queues and blobs are as they were left.
func (w *World) restoreLater(x *waiter) {
	w.faults.snapshot = w.store.Snapshot()
	w.later(w.between(x, 100*time.Millisecond, 2*time.Minute), "restore", "the table as it was", func() {
		w.store.Restore(w.faults.snapshot)
		w.tables++
		w.faults.due, w.faults.open = [pipeline.DueShards][]pipeline.Task{}, nil
		for _, p := range slices.Clone(w.processes) {
			if p.running() {
				w.crash(p)
			}
		}
		w.audit.Restored()
		w.faults.snapshot = nil
	})
}

// pending says that a fault that was begun is not over.
func (f *faults) pending() bool { return f.snapshot != nil }
