package simulation

import (
	"fmt"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

// Event is one step of a world.
type Event struct {
	N     int
	At    time.Duration // virtual, since the world began
	Who   string
	Op    string
	On    string
	Write bool
	Fault Kind
	Err   string
	Row   *pipeline.Task // as it stands after a write of one
	Note  string
}

// History is all events of a world, and their hash.
type History struct {
	Events []Event
	hash   uint64
}

// close counts what came of an event, in the order in which that was known.
func (h *History) close(e *Event) {
	h.word(uint64(e.N))
	h.word(uint64(e.At))
	h.text(e.Who)
	h.text(e.Op)
	h.text(e.On)
	h.text(string(e.Fault))
	h.text(e.Err)
	h.text(e.Note)
	if r := e.Row; r != nil {
		h.text(string(r.Status))
		h.word(uint64(r.Generation)<<32 | uint64(r.Attempts)<<16 | uint64(r.Deferrals)<<8 | uint64(r.Accepted))
		h.word(uint64(r.DueAt))
	}
}

// Hash tells histories apart.
func (h History) Hash() uint64 { return h.hash }

const prime = 1099511628211

func (h *History) text(s string) {
	for i := range len(s) {
		h.hash = (h.hash ^ uint64(s[i])) * prime
	}
	h.hash *= prime
}

func (h *History) word(n uint64) { h.hash = (h.hash ^ mix(n)) * prime }

// mix spreads a number over all bits.
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// String is one line for a person.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5d %10.3fs  %-9s %-12s %s", e.N, e.At.Seconds(), e.Who, e.Op, short(e.On))
	if r := e.Row; r != nil {
		fmt.Fprintf(&b, "  -> %s, generation %d, attempts %d", r.Status, r.Generation, r.Attempts)
		if r.Deferrals > 0 || r.Losses > 0 {
			fmt.Fprintf(&b, ", deferrals %d, losses %d", r.Deferrals, r.Losses)
		}
		fmt.Fprintf(&b, ", accepted %d/%d, ring %d", r.Accepted, r.Stages, r.Ring)
		if r.MaxTries > 0 {
			fmt.Fprintf(&b, ", tries %d/%d", r.Allowed, r.MaxTries)
		}
		if !r.Reason.None() && r.Status != pipeline.TaskClaimed {
			fmt.Fprintf(&b, " (%s)", r.Reason)
		}
	}
	if e.Note != "" {
		fmt.Fprintf(&b, "  %s", e.Note)
	}
	if e.Err != "" {
		fmt.Fprintf(&b, "  !! %s", e.Err)
	}
	if e.Fault != "" {
		fmt.Fprintf(&b, "  <== %s", e.Fault)
	}
	return b.String()
}

// short leaves the job out: most worlds have one.
func short(on string) string {
	if job, rest, found := strings.Cut(on, "/"); found && strings.Contains(job, "-") {
		return rest
	}
	return on
}
