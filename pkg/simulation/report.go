package simulation

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Report is what many worlds came to. Reports add up.
type Report struct {
	Worlds  int            `json:"worlds"`
	Points  int            `json:"points,omitempty"` // at which a fault was to be forced, each in a world of its own
	Events  int            `json:"events"`
	Virtual time.Duration  `json:"virtual"`
	Took    time.Duration  `json:"took"` // of processor time
	Fired   map[Kind]int   `json:"fired"`
	Calls   map[Kind]Tally `json:"calls"`  // at which calls each kind happened
	Writes  Tally          `json:"writes"` // that workers and reapers made, by their names
	Orders  Tally          `json:"orders"` // that persons' commands made
	Checked Tally          `json:"checked"`
	Ends    Tally          `json:"ends"`
	Broken  []string       `json:"broken"` // stories
	Stalls  int            `json:"stalls"` // worlds that the machine disturbed
	Stopped bool           `json:"stopped"`
}

// Tally counts by name.
type Tally map[string]int

func (t Tally) add(other map[string]int) {
	for name, n := range other {
		t[name] += n
	}
}

// NewReport is an empty one.
func NewReport() *Report {
	return &Report{Fired: map[Kind]int{}, Calls: map[Kind]Tally{}, Writes: Tally{}, Orders: Tally{}, Checked: Tally{}, Ends: Tally{}}
}

// Count counts a world.
func (r *Report) Count(o Outcome) {
	r.Worlds++
	r.Events += len(o.History.Events)
	r.Virtual += o.Virtual
	if o.Disturbed {
		r.Stalls++
	}
	for _, f := range o.Fired {
		r.Fired[f.Kind]++
	}
	for kind, calls := range o.Calls {
		r.at(kind).add(calls)
	}
	for _, e := range o.History.Events {
		switch {
		case e.Write && e.ByPerson():
			r.Orders[e.Op]++
		case e.Write:
			r.Writes[e.Op]++
		}
	}
	r.Checked.add(o.Checked)
	if len(r.Ends) < maxEnds {
		r.Ends[o.End]++
	}
}

// maxEnds bounds how many end states are told apart.
const maxEnds = 2_000_000

// Add adds another report.
func (r *Report) Add(o *Report) {
	r.Worlds += o.Worlds
	r.Points += o.Points
	r.Events += o.Events
	r.Virtual += o.Virtual
	r.Took += o.Took
	r.Stalls += o.Stalls
	for kind, n := range o.Fired {
		r.Fired[kind] += n
	}
	for kind, calls := range o.Calls {
		r.at(kind).add(calls)
	}
	r.Writes.add(o.Writes)
	r.Orders.add(o.Orders)
	r.Checked.add(o.Checked)
	r.Ends.add(o.Ends)
	r.Broken = append(r.Broken, o.Broken...)
	r.Stopped = r.Stopped || o.Stopped
}

func (r *Report) at(kind Kind) Tally {
	if r.Calls[kind] == nil {
		r.Calls[kind] = Tally{}
	}
	return r.Calls[kind]
}

// Never are the kinds of faults that did not happen once.
func (r *Report) Never() (kinds []Kind) {
	for _, kind := range Kinds() {
		if r.Fired[kind] == 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// AtWrites are the kinds of faults that may happen at each write that was made, by its name.
func (r *Report) AtWrites() map[string][]Kind {
	at := map[string][]Kind{}
	for write := range r.Orders {
		at[write] = AtWrite(write, true)
	}
	for write := range r.Writes {
		at[write] = AtWrite(write, false)
	}
	return at
}

// PrintWrites tells how many faults there were at each of these writes, and of how many of its kinds. It returns every
// kind that did not happen where it may.
func (r *Report) PrintWrites(out io.Writer, at map[string][]Kind) (never []string) {
	fmt.Fprintln(out, "faults at each write:")
	for _, write := range slices.Sorted(maps.Keys(at)) {
		faults, kinds := 0, 0
		for _, kind := range at[write] {
			if n := r.Calls[kind][write]; n > 0 {
				faults, kinds = faults+n, kinds+1
			} else {
				never = append(never, fmt.Sprintf("%s: %s", write, kind))
			}
		}
		fmt.Fprintf(out, "  %8d at %-12s of %d of %d kinds\n", faults, write, kinds, len(at[write]))
	}
	return never
}

// promises are those that the auditor checks.
var promises = []string{"P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10"}

// Unchecked are the promises that were not looked at once.
func (r *Report) Unchecked() (left []string) {
	for _, p := range promises {
		if r.Checked[p] == 0 {
			left = append(left, p)
		}
	}
	return left
}

// Print tells it to a person.
func (r *Report) Print(out io.Writer) {
	seconds := max(r.Took.Seconds(), 0.001)
	worlds := max(1, r.Worlds)
	fmt.Fprintf(out, "%d worlds, %d events (%d a world), %v of virtual time; %.0f worlds a second of one processor; %d different ends\n",
		r.Worlds, r.Events, r.Events/worlds, r.Virtual.Round(time.Hour), float64(r.Worlds)/seconds, len(r.Ends))
	if r.Points > 0 {
		fmt.Fprintf(out, "%d of %d points\n", r.Worlds, r.Points)
	}
	fmt.Fprint(out, "promises checked:")
	for _, p := range promises {
		fmt.Fprintf(out, " %s %d", p, r.Checked[p])
	}
	fmt.Fprintln(out, "\nfaults:")
	kinds := slices.SortedFunc(maps.Keys(r.Fired), func(a, b Kind) int { return r.Fired[b] - r.Fired[a] })
	for _, kind := range kinds {
		fmt.Fprintf(out, "  %8d %s\n", r.Fired[kind], kind)
	}
	for _, story := range r.Broken {
		fmt.Fprintln(out, story)
	}
	if r.Stalls > 0 {
		fmt.Fprintf(out, "%d worlds were disturbed, since the machine stalled: their seeds may have other histories as well\n", r.Stalls)
	}
	if r.Stopped {
		fmt.Fprintln(out, "stopped by the time that was given, not by the number of worlds")
	}
}
