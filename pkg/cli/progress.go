package cli

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
	"holdfast/pkg/work"
)

// progress is how far a job is, from its rows, and from the events of this run's workers.
type progress struct {
	view.Progress
	AsOf     pipeline.Instant // when it was read, if the store had no time since; 0 = now
	Live     bool             // the events of this run's workers are counted: Tries, Failures, Reused and Deaths are known
	Tries    int
	Failures map[pipeline.Kind]int
	Reused   int
	Cost     pipeline.Money // by the store; with the events, the larger of the two
	Deaths   int
}

// progressOf reads a job's rows. definition is the job's: it never changes, so whoever looks again and again reads it
// once.
func progressOf(ctx context.Context, s *wiring.System, job pipeline.Job, definition pipeline.Definition) (progress, error) {
	p, err := view.ProgressOf(ctx, s, job, definition)
	return progress{Progress: p}, err
}

// tally counts the events of this run's workers.
type tally struct {
	mu       sync.Mutex
	job      pipeline.JobID // whose events count: workers work on every open job of the store
	tries    int
	failures map[pipeline.Kind]int
	answers  map[pipeline.TaskID]int // of the stage that runs
	reused   int
	deaths   int
	cost     pipeline.Money
}

func (t *tally) add(e work.Event) {
	if e.Job != "" && e.Job != t.job {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures == nil {
		t.failures, t.answers = map[pipeline.Kind]int{}, map[pipeline.TaskID]int{}
	}
	switch e.What {
	case "try":
		t.tries++
		t.cost += e.Cost
		if e.Kind != "" {
			t.failures[e.Kind]++
		}
	case "answer":
		t.answers[e.Task]++
	case "reuse":
		t.answers[e.Task]++
		t.reused++
	case "claim", "stage", "end":
		t.answers[e.Task] = 0
	case "death":
		t.deaths++
	}
}

// over adds what the events tell to what the store tells: it hears of money when a stage is accepted, and knows also
// what others spent.
func (t *tally) over(p *progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.Live, p.Tries, p.Reused, p.Deaths = true, t.tries, t.reused, t.deaths
	p.Cost = max(p.Cost, t.cost)
	p.Setbacks = slices.DeleteFunc(slices.Clone(p.Setbacks), func(b pipeline.Setback) bool { return b.Unserved }) // this run's own workers serve it
	p.Failures = map[pipeline.Kind]int{}
	for kind, n := range t.failures {
		p.Failures[kind] = n
	}
	for task := range p.Running {
		p.Done += t.answers[task]
	}
	p.Done = min(p.Done, p.Cells)
}

// progressLines are the progress in lines of at most width columns, if that is at all possible.
func progressLines(p progress, model pipeline.ModelInfo, now pipeline.Instant, since time.Duration, width int) []string {
	cells := fmt.Sprintf(" %s of %s cells, %d of %d chunks, %s, %.0fs", pipeline.Count(p.Done), pipeline.Count(p.Cells), p.Ended, p.Chunks, p.Job.Status, since.Seconds())
	if model.Handler {
		cells = fmt.Sprintf(" %s of %s items done, %s ended, %s, %.0fs", pipeline.Count(p.Done), pipeline.Count(p.Cells), pipeline.Count(p.Ended), p.Job.Status, since.Seconds())
	}
	lines := []string{bar(p.Done, p.Cells, width-len(cells)) + cells}
	rows := fmt.Sprintf("%s, %s", pipeline.CountOf(p.Claimed, "claim", "claims"), pipeline.CountOf(p.Deferrals, "deferral", "deferrals"))
	if p.Live {
		lines = append(lines, pipeline.CountOf(p.Tries, "try", "tries")+kinds(p.Failures))
		rows += fmt.Sprintf(", %s by stored replies%s", pipeline.CountOf(p.Reused, "answer", "answers"), died(p.Deaths))
	}
	lines = append(lines, rows, "spend "+spendNote(p.Cost, model))
	if p.AsOf != 0 {
		lines = append(lines, fmt.Sprintf("%.0f s old: the store is busy", now.Sub(p.AsOf).Seconds()))
	}
	if len(p.Setbacks) > 0 {
		lines = append(lines, "held back: "+oneLine(p.Setbacks[0].Text(now)))
	}
	if len(p.Unclaimable) > 0 {
		lines = append(lines, fmt.Sprintf("unclaimable (rung and never claimed): %v", p.Unclaimable))
	}
	return lines
}

func died(deaths int) string {
	if deaths == 0 {
		return ""
	}
	return ", " + pipeline.CountOf(deaths, "worker died", "workers died")
}

// spendNote is money at a model's price, and whether any is really spent.
func spendNote(cost pipeline.Money, m pipeline.ModelInfo) string {
	if m.Free && !m.Handler {
		return fmt.Sprintf("%s at %s's price (offline: $0)", cost, m.PricedAs)
	}
	return cost.String()
}

// bar is as wide as there is room, within reason.
func bar(done, all, room int) string {
	width := max(6, min(24, room-2))
	filled := 0
	if all > 0 {
		filled = width * done / all
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", width-filled) + "]"
}

// kinds lists counts by failure kind, the most frequent first.
func kinds(failures map[pipeline.Kind]int) string {
	if len(failures) == 0 {
		return ""
	}
	names := make([]pipeline.Kind, 0, len(failures))
	for kind := range failures {
		names = append(names, kind)
	}
	sort.Slice(names, func(i, j int) bool {
		if failures[names[i]] != failures[names[j]] {
			return failures[names[i]] > failures[names[j]]
		}
		return names[i] < names[j]
	})
	parts := make([]string, len(names))
	for i, kind := range names {
		parts[i] = fmt.Sprintf("%s %d", kind, failures[kind])
	}
	return ", failed: " + strings.Join(parts, ", ")
}

// oneLine folds all white space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
