package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/pkg/pipeline"
)

// Sizes of the timeline, in its own units; the page scales it.
const (
	chartWidth  = 1000
	chartLeft   = 64 // room for names
	chartRight  = 12
	tierOne     = 110 // height of the tries
	laneHeight  = 12
	buckets     = 150
	mostLanes   = 120  // then only those in trouble are drawn
	mostDots    = 1500 // of failed tries
	chartTop    = 20
	chartMiddle = 34
)

// timeline is the tries (tier one) over the attempts (tier two), on one axis of time.
type timeline struct {
	Width, Height int
	Bars          []shape // tries by the time they ended
	Lanes         []lane
	Dots          []shape // tries that failed, on the lane of their task
	Ticks         []tick
	Kinds         []kindCount // that tries failed with
	Tries         int
	Attempts      int
	Peak          int // tries in the fullest bar
	TierOneTop    int
	TierTwoTop    int
	Left          int
	Right         int
	Bottom        int
	LanesLeftOut  int
}

type shape struct {
	X, Y, W, H float64
	Class      string
	Title      string
}

type lane struct {
	Name  string
	Y     float64
	Bars  []shape
	LineY float64
}

type tick struct {
	X    float64
	Text string
}

type kindCount struct {
	Kind  pipeline.Kind
	Count int
}

// scale puts instants on the axis.
type scale struct{ from, to pipeline.Instant }

func (s scale) x(i pipeline.Instant) float64 {
	share := float64(i-s.from) / float64(max(1, s.to-s.from))
	return chartLeft + min(1, max(0, share))*(chartWidth-chartLeft-chartRight)
}

func (s scale) grow(i pipeline.Instant) scale {
	if i == 0 {
		return s
	}
	if s.from == 0 || i < s.from {
		s.from = i
	}
	s.to = max(s.to, i)
	return s
}

// chart draws the timeline; ok is false if nothing is known of any attempt.
func (d Data) chart() (t timeline, ok bool) {
	var s scale
	for _, r := range d.Result.Attempts {
		s = s.grow(r.ClaimedAt).grow(r.EndedAt)
	}
	for _, j := range d.Journals {
		for _, try := range j.Tries {
			s = s.grow(try.At).grow(ended(try))
		}
	}
	if s.from == 0 {
		return t, false
	}
	t = timeline{Width: chartWidth, TierOneTop: chartTop, TierTwoTop: chartTop + tierOne + chartMiddle, Left: chartLeft, Right: chartWidth - chartRight}
	rows := d.lanes(s, &t)
	d.tries(s, &t, rows)
	t.Height = t.TierTwoTop + len(t.Lanes)*laneHeight + 26
	t.Bottom = t.Height - 22
	t.ticks(s)
	return t, true
}

func ended(try pipeline.Try) pipeline.Instant {
	return try.At.Add(time.Duration(try.Millis) * time.Millisecond)
}

// lanes draws a line for each task, its attempts as bars on it, and returns where each is.
func (d Data) lanes(s scale, t *timeline) map[pipeline.TaskID]float64 {
	byTask := map[pipeline.TaskID][]pipeline.Record{}
	var order []pipeline.TaskID
	for _, r := range d.Result.Attempts {
		if byTask[r.Task] == nil {
			order = append(order, r.Task)
		}
		byTask[r.Task] = append(byTask[r.Task], r)
		t.Attempts++
	}
	if len(order) > mostLanes {
		quiet := func(id pipeline.TaskID) bool {
			return len(byTask[id]) == 1 && byTask[id][0].Outcome == pipeline.Succeeded
		}
		all := len(order)
		order = slices.DeleteFunc(order, quiet)
		order = order[:min(len(order), mostLanes)]
		t.LanesLeftOut = all - len(order)
	}
	rows := map[pipeline.TaskID]float64{}
	for i, id := range order {
		y := float64(t.TierTwoTop + i*laneHeight)
		rows[id] = y + laneHeight/2
		l := lane{Name: d.laneName(id), Y: y + laneHeight - 3, LineY: y + laneHeight/2}
		for _, r := range byTask[id] {
			x := s.x(r.ClaimedAt)
			l.Bars = append(l.Bars, shape{
				X: x, Y: y + 1.5, W: max(2, s.x(r.EndedAt)-x), H: laneHeight - 3, Class: "o-" + string(r.Outcome),
				Title: fmt.Sprintf("%s, attempt %d by %s: %s, %s tries%s", id, r.Attempt, r.Worker, r.Outcome, pipeline.Count(r.Tries+r.Unnamed), because(r.Failure)),
			})
		}
		t.Lanes = append(t.Lanes, l)
	}
	return rows
}

func because(f pipeline.Failure) string {
	if f.None() {
		return ""
	}
	return ", " + f.String()
}

func (d Data) laneName(id pipeline.TaskID) string {
	if id.Kind() == pipeline.TaskWork {
		return fmt.Sprintf("%s %d", d.part(), id.Number())
	}
	return string(id.Kind())
}

// tries draws how many ended when, those that failed on top, and each that failed on its task's lane.
func (d Data) tries(s scale, t *timeline, rows map[pipeline.TaskID]float64) {
	type bucket struct{ good, bad int }
	all := make([]bucket, buckets)
	kinds := map[pipeline.Kind]int{}
	for _, j := range d.Journals {
		for _, try := range j.Tries {
			t.Tries++
			x := s.x(ended(try))
			i := min(buckets-1, int((x-chartLeft)/(chartWidth-chartLeft-chartRight)*buckets))
			if try.Failure.None() {
				all[i].good++
				continue
			}
			all[i].bad++
			kinds[try.Failure.Kind]++
			if y, drawn := rows[j.Task]; drawn && len(t.Dots) < mostDots {
				t.Dots = append(t.Dots, shape{X: x, Y: y, Class: "k-" + string(try.Failure.Kind), Title: fmt.Sprintf("%s, %s, try %d: %s", j.Task, try.Call, try.Number, try.Failure)})
			}
		}
	}
	for _, b := range all {
		t.Peak = max(t.Peak, b.good+b.bad)
	}
	width := float64(chartWidth-chartLeft-chartRight) / buckets
	for i, b := range all {
		unit := float64(tierOne) / float64(max(1, t.Peak))
		x, base := chartLeft+float64(i)*width, float64(t.TierOneTop+tierOne)
		if b.good > 0 {
			t.Bars = append(t.Bars, shape{X: x, Y: base - float64(b.good)*unit, W: width - 0.8, H: float64(b.good) * unit, Class: "good", Title: fmt.Sprintf("%d answered", b.good)})
		}
		if b.bad > 0 {
			t.Bars = append(t.Bars, shape{X: x, Y: base - float64(b.good+b.bad)*unit, W: width - 0.8, H: float64(b.bad) * unit, Class: "bad", Title: fmt.Sprintf("%d failed", b.bad)})
		}
	}
	for kind, n := range kinds {
		t.Kinds = append(t.Kinds, kindCount{kind, n})
	}
	slices.SortFunc(t.Kinds, func(a, b kindCount) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind)) })
}

// ticks are the times on the axis, from the beginning, at round distances.
func (t *timeline) ticks(s scale) {
	whole := s.to.Sub(s.from)
	step := time.Second
	for _, candidate := range []time.Duration{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 6 * 3600, 12 * 3600, 24 * 3600} {
		step = candidate * time.Second
		if whole/step <= 10 {
			break
		}
	}
	for at := time.Duration(0); at <= whole && len(t.Ticks) < 40; at += step {
		t.Ticks = append(t.Ticks, tick{X: s.x(s.from.Add(at)), Text: at.String()})
	}
}
