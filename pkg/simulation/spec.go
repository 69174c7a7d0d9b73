package simulation

import (
	"fmt"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// Spec is all that a world is made from: equal Specs have equal histories.
type Spec struct {
	Seed    uint64
	Chunks  int
	Stages  int
	Calls   int // of each stage
	Workers int
	Reapers int

	Faults bool    // by the rates that the seed draws
	Fixed  []Fault // these and no others, whatever Faults says
	Calm   int     // from this event on everybody goes on in the order of arrival; -1: never
	Survey bool    // note at which events each kind could be forced
}

// NewSpec is the world of a seed as it is unless something else is asked for: 3 chunks, 4 calls each, 3 workers.
func NewSpec(seed uint64) Spec {
	return Spec{Seed: seed, Chunks: 3, Stages: 2, Calls: 2, Workers: 3, Reapers: 1, Faults: true, Calm: -1}
}

// of is one of n, by the seed.
func (s Spec) of(what string, n int) int {
	h := s.Seed
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * prime
	}
	return int(mix(mix(h)) % uint64(n))
}

// Policy is the nth that is deployed in this world. Every number of it is valid; some differ from deploy to deploy.
func (s Spec) Policy(n int) pipeline.Policy {
	p := pipeline.DefaultPolicy()
	p.JobDeadline = []time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour}[s.of("deadline", 4)]
	p.DeferralLimit = 10 * time.Minute
	p.MaxDeferrals = []int{4, 7, 16, 45}[s.of("deadline", 4)] // the fewest that outlast the deadline
	p.MaxTries = 2 + s.of("tries", 3)
	p.MaxAttempts = 2 + s.of("attempts", 2)
	p.DeadLetterRetention = 24 * time.Hour
	if n > 0 {
		p.MaxAttempts = 2 + (s.of("attempts", 2)+s.of(fmt.Sprint("deployed", n), 2))%2
		p.ClaimTTL = []time.Duration{20 * time.Second, 30 * time.Second}[s.of(fmt.Sprint("ttl", n), 2)]
		if s.of(fmt.Sprint("fewer deferrals", n), 3) == 0 { // than the jobs that are there may need until their deadlines
			p.JobDeadline, p.MaxDeferrals = 5*time.Minute, 4
		}
	}
	return p
}

// model is what the jobs ask for.
func (s Spec) model() pipeline.ModelInfo {
	m := pipeline.ModelInfo{Name: "scripted", Version: "1", Price: pipeline.Price{Input: 3000, Output: 15000}, ContextTokens: 100_000, MaxOutput: 4000}
	if s.of("quota", 4) == 0 {
		m.TokensPerMinute = 20_000
	}
	return m
}

// definition is what is asked about each chunk: a line of the document.
func (s Spec) definition() pipeline.Definition {
	return pipelinetest.NewDefinition(s.Stages, s.Calls, func(d *pipeline.Definition) {
		d.Tolerance = 1
		for n := 1; n < len(d.Stages) && s.gated(); n++ { // the last call of a stage, where the first of the stage before found something
			calls := d.Stages[n].Calls
			calls[len(calls)-1].Gate = &pipeline.Gate{Call: d.Stages[n-1].Calls[0].ID, Min: 0.5}
		}
		d.Chunking = pipeline.Chunking{Lines: true, MaxChunks: 100}
	})
}

// unreadable says that what is submitted is no document: binary data.
func (s Spec) unreadable() bool { return s.Faults && s.of("unreadable", 30) == 0 }

// document has a line for each chunk; drafts of it differ in their last one.
func (s Spec) document(draft int) string {
	var b strings.Builder
	for n := range s.Chunks {
		word := "pay"
		if s.unreadable() {
			word = "\x00"
		}
		if n == s.Chunks-1 && draft > 0 {
			word = fmt.Sprintf("pay in draft %d", draft)
		}
		fmt.Fprintf(&b, "Clause %d: the party shall %s what is due.\n", n, word)
	}
	return b.String()
}

// gated says that a call is asked only where another found something.
func (s Spec) gated() bool { return s.of("gated", 4) == 0 }

// page is how large the store's pages are, in bytes: in one world of four each has one entry.
func (s Spec) page() int {
	return []int{1, pipeline.MaxPage, pipeline.MaxPage, pipeline.MaxPage}[s.of("page", 4)]
}

// supervised says that somebody waits for the exit of workers, and says so.
func (s Spec) supervised() bool { return s.of("supervised", 4) == 0 }

// inFlight is how many tries a worker sends at once.
func (s Spec) inFlight() int { return []int{1, 2, 4, 4}[s.of("in flight", 4)] }

func (s Spec) poll() time.Duration { return 5 * time.Minute }

func (s Spec) sweep() time.Duration {
	return []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}[s.of("sweep", 4)]
}

func (s Spec) respawn() time.Duration {
	return []time.Duration{200 * time.Millisecond, 15 * time.Second, 3 * time.Minute}[s.of("respawn", 3)]
}

// slowness is of how many steps in a thousand time goes on although somebody could.
func (s Spec) slowness() uint64 { return []uint64{0, 20, 150}[s.of("slowness", 3)] }

func (s Spec) longestCall() time.Duration {
	return []time.Duration{200 * time.Millisecond, 3 * time.Second, 12 * time.Second}[s.of("call", 3)]
}

// maxCost is a ceiling below the worst case in some worlds.
func (s Spec) maxCost() pipeline.Money {
	return []pipeline.Money{0, 0, 0, 40_000_000, 90_000_000}[s.of("ceiling", 5)]
}

// skewOf is how far a new process's clock is off: nothing, within what the policy allows, or far beyond, which it knows.
func (w *World) skewOf(p *process) time.Duration {
	if !w.faults.on(ClockSkew) {
		return 0
	}
	n := w.draw("skew "+p.name, 0)
	half := int64(p.policy.MaxSkew / 2)
	if n%8 == 0 && p.role == worker && w.Spec.Workers > 1 && !w.someFarOff() {
		w.faults.fire(w, ClockSkew, nil)
		return time.Hour
	}
	w.faults.fire(w, ClockSkew, nil)
	return time.Duration(int64(n>>8) % half * (1 - 2*int64(n>>7&1))).Round(time.Millisecond)
}

// someFarOff says that a worker's clock is so far off that it claims nothing: there is at most one.
func (w *World) someFarOff() bool {
	for _, p := range w.processes {
		if p.skew > time.Minute && p.running() {
			return true
		}
	}
	return false
}
