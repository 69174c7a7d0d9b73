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

// ByPerson says that a person's command did it.
func (e Event) ByPerson() bool { return strings.HasPrefix(e.Who, string(person)) }

// History is all events of a world.
type History struct {
	Events []Event
}

// Hash tells histories apart. Of tries that one cancel aborts nobody knows which comes back first, and it is no matter:
// events count in the order in which they began.
func (h History) Hash() uint64 {
	sum := digest(14695981039346656037)
	for _, e := range h.Events {
		sum.word(uint64(e.At))
		sum.text(e.Who)
		sum.text(e.Op)
		sum.text(e.On)
		sum.text(string(e.Fault))
		sum.text(e.Err)
		sum.text(e.Note)
		if r := e.Row; r != nil {
			sum.text(string(r.Status))
			sum.word(uint64(r.Generation)<<32 | uint64(r.Attempts)<<16 | uint64(r.Deferrals)<<8 | uint64(r.Accepted))
			sum.word(uint64(r.DueAt))
		}
	}
	return uint64(sum)
}

const prime = 1099511628211

type digest uint64

func (d *digest) text(s string) {
	for i := range len(s) {
		*d = (*d ^ digest(s[i])) * prime
	}
	*d *= prime
}

func (d *digest) word(n uint64) { *d = (*d ^ digest(mix(n))) * prime }

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
