package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// weather is what happens to a job from outside: how calls go and when worker processes die. It is drawn from the
// seed, the job, and what it happens to, so two systems that do the same work meet the same.
type weather struct {
	Seed  uint64
	Fail  float64       // share of tries that fail at once: 429, 5xx, a cut connection
	Hang  float64       // share of tries that are never answered
	Takes time.Duration // mean time of an answer; each takes 50 to 150 % of it
	Lives time.Duration // mean life of a worker process; exponential, as accidents are
}

// draw is a number in [0,1) for what is named.
func (w weather) draw(what ...any) float64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, w.Seed) // a hash takes everything
	fmt.Fprint(h, what...)
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// life is how long the nth process in a worker's place lives.
func (w weather) life(job, place, n int) time.Duration {
	d := -math.Log(1-w.draw("life", job, " ", place, " ", n)) * float64(w.Lives)
	return time.Duration(min(d, float64(1000*time.Hour)))
}

// cell names a call about a chunk of a job.
type cell struct{ job, chunk, call int }

// errUnavailable is a try that fails at once.
var errUnavailable = errors.New("503 service unavailable")

// provider answers calls, and is the witness of what it was asked: a system's own books are not used for that.
type provider struct {
	weather weather
	mu      sync.Mutex
	cells   map[cell]*asked
}

// asked is what the provider knows of a call.
type asked struct {
	tries    int
	answered int
	cut      bool // the last try: nobody waited for its answer any more
	repeats  int  // answers after an answer: billed again
	again    int  // tries after one that was cut
}

func newProvider(w weather) *provider { return &provider{weather: w, cells: map[cell]*asked{}} }

// ask is one try.
func (p *provider) ask(ctx context.Context, c cell) error {
	n := p.begin(c)
	if p.weather.draw("fail", c, n) < p.weather.Fail {
		return errUnavailable
	}
	takes := time.Duration((0.5 + p.weather.draw("takes", c, n)) * float64(p.weather.Takes))
	if p.weather.draw("hang", c, n) < p.weather.Hang {
		takes = 1000 * time.Hour
	}
	err := sleep(ctx, takes)
	p.end(c, err == nil)
	return err
}

// sleep lets time pass, real or virtual; the cause of ctx if that ends first.
func sleep(ctx context.Context, d time.Duration) error { return pipeline.NewRealClock().Sleep(ctx, d) }

func (p *provider) begin(c cell) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.cells[c]
	if a == nil {
		a = &asked{}
		p.cells[c] = a
	}
	if a.cut {
		a.again++
	}
	a.cut = false
	a.tries++
	return a.tries
}

func (p *provider) end(c cell, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.cells[c]
	if !answered {
		a.cut = true
		return
	}
	if a.answered > 0 {
		a.repeats++
	}
	a.answered++
}

// bill is what the provider was asked in all.
type bill struct{ Tries, Answers, Repeats, Cut int }

func (p *provider) bill() (b bill) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.cells {
		b.Tries += a.tries
		b.Answers += a.answered
		b.Repeats += a.repeats
		b.Cut += a.again
	}
	return b
}

func (b bill) plus(c bill) bill {
	return bill{b.Tries + c.Tries, b.Answers + c.Answers, b.Repeats + c.Repeats, b.Cut + c.Cut}
}
