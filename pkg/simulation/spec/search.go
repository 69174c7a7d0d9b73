package spec

import (
	"fmt"
	"hash/maphash"
	"time"
)

// Step is one transition of a model.
type Step[S comparable] struct {
	To    S
	Says  Says
	Who   Actor
	Bad   string // a promise that the step itself breaks
	Write Write  // what it asked of the store, if anything; for replays
	Lands bool   // and whether the store did it
}

// Actor is whose step it is. Each actor but the first two is fair: if it can take a step for ever, it takes one.
type Actor uint8

// The actors.
const (
	Fault   Actor = iota // happens at most as often as the bounds say; a run that waits for one is not fair
	Keeping              // what may go on for ever without anything coming of it: renewing a claim
	Worker0              // the worker of that number; the next ones are the others
	_
	_
	Reaper
	Time    // a tick of the clock
	Ready   // ready_at passes
	Due     // due_at passes
	Bell0   // the message in that slot is visible again
	_       //
	Person  // resumes what was paused
	Actors0 // the actors of the job's model count from here
)

// maxActors is how many actors a set of them has room for.
const maxActors = 32

// Model is a system of states and steps.
type Model[S comparable] interface {
	Start() S
	// Next appends every step from s.
	Next(s *S, to []Step[S]) []Step[S]
	// Check says which promise is broken by s, or by coming there from before; "" if none.
	Check(before, s *S) string
	// Over says that what the model is about has ended.
	Over(s *S) bool
	// Show is the state for people.
	Show(s *S) string
	// Fair says that actors are told apart, so that [Fair] may be asked.
	Fair() bool
}

// Report is what a search found.
type Report struct {
	States, Steps, Depth int
	Took                 time.Duration
	Complete             bool // every reachable state was seen
	Broken               string
	Trace                []string // the shortest history to it
}

// Held says that the search saw every state and nothing was broken.
func (r Report) Held() bool { return r.Complete && r.Broken == "" }

func (r Report) String() string {
	s := fmt.Sprintf("%d states, %d steps, depth %d, %.1f s", r.States, r.Steps, r.Depth, r.Took.Seconds())
	if !r.Complete && r.Broken == "" {
		s += ", NOT COMPLETE: raise the limit"
	}
	if r.Broken != "" {
		s += "\nBROKEN: " + r.Broken
		for i, line := range r.Trace {
			s += fmt.Sprintf("\n  %2d  %s", i+1, line)
		}
	}
	return s
}

// graph is the states in the order in which they were found, and the steps between them.
type graph[S comparable] struct {
	model  Model[S]
	seed   maphash.Seed
	states []S
	parent []int32
	depth  []uint16
	table  []int32 // state+1 by hash, open addressing
	from   []int   // steps of state i: from[i] to from[i+1]
	to     []int32
	who    []Actor
}

// Search sees every state that the model can reach, at most limit of them, and stops at the first that breaks a promise:
// breadth first, so that the history it prints is a shortest one. If none does, it looks for a fair run without an end.
func Search[S comparable](m Model[S], limit int) Report {
	began := time.Now()
	g := &graph[S]{model: m, seed: maphash.MakeSeed(), table: make([]int32, 1<<16)}
	r := g.explore(limit)
	r.States, r.Steps = len(g.states), len(g.to)
	if n := len(g.depth); n > 0 {
		r.Depth = int(g.depth[n-1])
	}
	if r.Complete && r.Broken == "" && m.Fair() {
		r.Broken, r.Trace = Fair(g)
	}
	r.Took = time.Since(began)
	return r
}

func (g *graph[S]) explore(limit int) Report {
	g.add(g.model.Start(), -1)
	var steps []Step[S]
	for i := 0; i < len(g.states); i++ {
		g.from = append(g.from, len(g.to))
		before := g.states[i]
		steps = g.model.Next(&before, steps[:0])
		for n := range steps {
			step := &steps[n]
			bad := step.Bad
			if bad == "" {
				bad = g.model.Check(&before, &step.To)
			}
			if bad != "" {
				trace := append(g.trace(i), step.Says.String(), "then "+g.model.Show(&step.To))
				return Report{Broken: bad, Trace: trace}
			}
			to, known := g.find(step.To)
			if !known {
				if len(g.states) >= limit {
					return Report{}
				}
				to = g.add(step.To, int32(i))
			}
			if step.Who != Fault {
				g.to, g.who = append(g.to, to), append(g.who, step.Who)
			}
		}
	}
	g.from = append(g.from, len(g.to))
	return Report{Complete: true}
}

func (g *graph[S]) find(s S) (int32, bool) {
	mask := uint64(len(g.table) - 1)
	for at := maphash.Comparable(g.seed, s) & mask; g.table[at] != 0; at = (at + 1) & mask {
		if g.states[g.table[at]-1] == s {
			return g.table[at] - 1, true
		}
	}
	return 0, false
}

func (g *graph[S]) add(s S, parent int32) int32 {
	if 2*len(g.states) >= len(g.table) {
		g.table = make([]int32, 2*len(g.table))
		for i := range g.states {
			g.place(int32(i))
		}
	}
	n := int32(len(g.states))
	depth := uint16(0)
	if parent >= 0 {
		depth = g.depth[parent] + 1
	}
	g.states, g.parent, g.depth = append(g.states, s), append(g.parent, parent), append(g.depth, depth)
	g.place(n)
	return n
}

func (g *graph[S]) place(n int32) {
	mask := uint64(len(g.table) - 1)
	at := maphash.Comparable(g.seed, g.states[n]) & mask
	for g.table[at] != 0 {
		at = (at + 1) & mask
	}
	g.table[at] = n + 1
}

// trace is the steps from the start to state n. Only here are they put into words.
func (g *graph[S]) trace(n int) []string {
	var path []int32
	for i := int32(n); i >= 0; i = g.parent[i] {
		path = append(path, i)
	}
	var lines []string
	for k := len(path) - 1; k > 0; k-- {
		before := g.states[path[k]]
		for _, step := range g.model.Next(&before, nil) {
			if step.To == g.states[path[k-1]] {
				lines = append(lines, step.Says.String())
				break
			}
		}
	}
	return lines
}
