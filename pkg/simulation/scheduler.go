package simulation

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// waiter is who waits for the scheduler: a parked call of a port, or a timer.
type waiter struct {
	p     *process // nil for the world's own timers
	name  string   // of the call: "Claim"; "sleep" and "timeout" for timers
	on    string   // what it is about
	write bool
	timer bool
	due   time.Duration // of a timer, or of a call that waits for something: when it goes on anyway
	seq   int           // in order of arrival
	ready func() bool   // may it go on before due; nil: at once
	fire  func()        // of a timer that wakes nobody: done by the scheduler
	wake  chan struct{}
	fault Kind // what happens at the call; none if empty
}

// scheduler is virtual time, and whoever waits in it.
type scheduler struct {
	mu      sync.Mutex
	now     time.Duration // since the world began
	seq     int
	waiting []*waiter
	marks   []time.Duration // moments at which something outside may have changed, e.g. a message became visible
}

// add puts a waiter in the line; one of a dead process goes on at once, and finds out.
func (s *scheduler) add(x *waiter) *waiter {
	s.put(x)
	if x.p != nil && x.p.isDead() && s.remove(x) && x.wake != nil {
		close(x.wake)
	}
	return x
}

func (s *scheduler) put(x *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	x.seq = s.seq
	if x.fire == nil {
		x.wake = make(chan struct{})
	}
	s.waiting = append(s.waiting, x)
}

// remove takes a waiter out of the line; false if it was released before.
func (s *scheduler) remove(x *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(x)
}

func (s *scheduler) take(x *waiter) bool {
	i := slices.Index(s.waiting, x)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return true
}

// mark lets time stop at t, to look who may go on.
func (s *scheduler) mark(t time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = append(s.marks, t)
}

// time is virtual time since the world began.
func (s *scheduler) time() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// has says that it still waits.
func (s *scheduler) has(x *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.waiting, x)
}

// eligible are those who may go on now, in an order that does not depend on who arrived first.
func (s *scheduler) eligible() []*waiter {
	s.mu.Lock()
	all := slices.Clone(s.waiting)
	now := s.now
	s.mu.Unlock()
	may := all[:0]
	for _, x := range all {
		switch {
		case x.p != nil && x.p.frozen > now:
		case x.timer && x.due > now:
		case !x.timer && x.ready != nil && x.due > now && !x.ready():
		default:
			may = append(may, x)
		}
	}
	slices.SortFunc(may, func(a, b *waiter) int {
		return cmp.Or(strings.Compare(a.who(), b.who()), strings.Compare(a.name, b.name), strings.Compare(a.on, b.on), cmp.Compare(a.seq, b.seq))
	})
	return may
}

func (x *waiter) who() string {
	if x.p == nil {
		return ""
	}
	return x.p.name
}

// next is the next moment at which somebody may go on: a timer, a call that waited long enough, a thaw, a mark. ok is
// false if there is none.
func (s *scheduler) next() (t time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := func(d time.Duration) {
		if d > s.now && (!ok || d < t) {
			t, ok = d, true
		}
	}
	for _, x := range s.waiting {
		if x.timer || x.ready != nil {
			least(x.due)
		}
		if x.p != nil {
			least(x.p.frozen)
		}
	}
	s.marks = slices.DeleteFunc(s.marks, func(d time.Duration) bool { return d <= s.now })
	for _, d := range s.marks {
		least(d)
	}
	return t, ok
}

func (s *scheduler) advance(t time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = max(s.now, t)
}

// release lets one go on.
func (s *scheduler) release(x *waiter) {
	s.mu.Lock()
	taken := s.take(x)
	s.mu.Unlock()
	switch {
	case !taken:
	case x.fire != nil:
		x.fire()
	default:
		close(x.wake)
	}
}

// drop releases everybody of a process at once: it is dead, and nothing that they do has an effect any more.
func (s *scheduler) drop(p *process) {
	s.mu.Lock()
	var gone []*waiter
	s.waiting = slices.DeleteFunc(s.waiting, func(x *waiter) bool {
		if x.p == p {
			gone = append(gone, x)
		}
		return x.p == p
	})
	s.mu.Unlock()
	for _, x := range gone {
		if x.wake != nil {
			close(x.wake)
		}
	}
}
