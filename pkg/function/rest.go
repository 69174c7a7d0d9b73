package function

import (
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// trustedFor is how long an open connection that nobody used is trusted. Between two events a process is frozen: it does
// not hear that the other side has closed one, and what is sent on it is lost, and looks as if it were billed.
const trustedFor = 30 * time.Second

// rest is when the process last answered an event, and what closes the connections that nobody uses.
type rest struct {
	close []func()

	mu   sync.Mutex
	wall pipeline.Instant
	mono time.Duration // stands still in some freezes, as the wall clock does in a step back
}

// idleClosers are what of a process's parts keeps connections.
func idleClosers(parts Parts) (all []func()) {
	if model, keeps := parts.Model.(interface{ Close() }); keeps {
		all = append(all, model.Close)
	}
	if parts.Backend.CloseIdle != nil {
		all = append(all, parts.Backend.CloseIdle)
	}
	return all
}

// Event begins an event: connections that were left alone for too long are opened anew, and a process that is asked to
// end waits for done.
func (p *Process) Event() (done func()) {
	p.events.Add(1)
	if p.awake() >= trustedFor {
		for _, closeIdle := range p.rest.close {
			closeIdle()
		}
	}
	return func() {
		p.awake()
		p.events.Done()
	}
}

// awake notes that the process is at work, and says for how long it was not.
func (p *Process) awake() (rested time.Duration) {
	p.rest.mu.Lock()
	defer p.rest.mu.Unlock()
	wall, mono := p.Clock.Now(), p.Clock.Mono()
	rested = max(wall.Sub(p.rest.wall), mono-p.rest.mono)
	p.rest.wall, p.rest.mono = wall, mono
	return rested
}
