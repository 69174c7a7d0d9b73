// Package smoke is a canary for a stack: small documents with the offline model, in the stack's own tables, queues and
// bucket, meet what breaks systems like this one. Workers race for the same chunks, one is killed, a chunk kills whoever
// takes it, a job is cancelled; and each promise is looked up in what is stored, not assumed.
//
// It may decide what is tried, and whether what came of it keeps the promise. It may not touch a job that is not its own,
// nor ask a model that costs anything: its jobs name the offline model, and a worker with another cannot take them. What
// it makes it removes.
package smoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// Tenant is whose the canary's jobs are.
const Tenant = "holdfast-smoke"

// Times of a canary.
const (
	// deadline is after how long a job of a canary that was killed itself is ended by the stack's reaper.
	deadline = time.Hour
	// takenWithin is how long a message may lie before nobody seems to take it: a lost bell is rung again after a minute.
	takenWithin = 90 * time.Second
	// lookEvery is how often the canary looks at what it waits for.
	lookEvery = 250 * time.Millisecond
)

// ErrNotNow says that the canary did not begin, and why.
var ErrNotNow = errors.New("the canary did not begin")

// Config is all that a canary needs.
type Config struct {
	Backend    *wiring.Backend
	Policy     pipeline.Policy // the stack's
	Clock      pipeline.Clock
	Definition pipeline.Definition // what its documents follow
	Text       string              // what they say, some chunks of it
	Poison     string              // the text that kills a worker of its own
	// Model is the offline model. It must cost nothing.
	Model func(worker string, pace time.Duration) pipeline.Model
	// Start starts a process of its own, which does what [Work] does with these orders.
	Start    func(ctx context.Context, orders Orders) (Process, error)
	Say      func(Line) // told of each line as it is known
	Nonce    string     // what no other canary of this stack has
	Patience time.Duration
	Beside   bool // go on although somebody else's jobs are open
}

// Verdict is what a line says.
type Verdict string

// The verdicts.
const (
	Held   Verdict = "held"
	Broken Verdict = "BROKEN"
	Note   Verdict = "note"
)

// Line is one thing that held, or did not.
type Line struct {
	Check   string        `json:"check"`
	Verdict Verdict       `json:"verdict"`
	Text    string        `json:"text"`
	At      time.Duration `json:"at"` // since the canary began
}

// Report is how it went.
type Report struct {
	Lines    []Line        `json:"lines"`
	Foreign  string        `json:"foreign,omitempty"` // what the stack's workers have in the offline model's place; "" if they have it
	Stopped  bool          `json:"stopped"`           // before everything was tried
	Took     time.Duration `json:"took"`
	Left     int           `json:"left"`     // jobs that could not be removed
	Attempts int           `json:"attempts"` // by the stack's own workers
	Busy     time.Duration `json:"busy"`     // of those
	Calls    int           `json:"calls"`    // that they asked
}

// Held says that everything was tried, and every promise kept.
func (r Report) Held() bool {
	for _, line := range r.Lines {
		if line.Verdict == Broken {
			return false
		}
	}
	return len(r.Lines) > 0 && !r.Stopped
}

// canary is one run.
type canary struct {
	cfg    Config
	system *wiring.System // over the stack's own queues
	mute   *wiring.System // over none: nobody hears what it rings, but dead letters go to the stack's queue
	began  time.Duration
	check  string
	jobs   []pipeline.Job
	names  int
	victim *victim // of the kill, until what became of its job is checked
	nobody bool    // no worker of the stack takes anything
	report Report
}

// Run is one canary. Once drain is done it tries nothing more, and removes what it made; once ctx is done it drops even
// that. Its error says why it did not begin; what did not hold is in the report.
func Run(ctx, drain context.Context, cfg Config) (Report, error) {
	c := &canary{cfg: cfg, began: cfg.Clock.Mono()}
	p := cfg.Policy
	p.JobDeadline = min(p.JobDeadline, deadline)
	c.cfg.Policy = p
	c.system = wiring.New(cfg.Backend, wiring.Config{Tenant: Tenant, Worker: c.name(), Policy: p, Clock: cfg.Clock})
	c.mute = c.over(c.name(), c.deafTo(c.doorbell()), nil)
	if info := cfg.Model("", 0).Info(); !info.Free {
		return c.report, fmt.Errorf("%w: its model %s costs money", ErrNotNow, info.Name)
	}
	if err := c.free(drain); err != nil {
		return c.report, fmt.Errorf("%w: %w", ErrNotNow, err)
	}
	for _, check := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"stack", c.stack},
		{"claim race", c.race},
		{"killed worker", c.kill},
		{"poison", c.poison},
		{"cancel", c.cancel},
		{"killed worker", c.killed}, // the reaper has had its time
	} {
		c.check = check.name
		err := check.do(drain)
		if drain.Err() != nil {
			c.report.Stopped = true
			c.note("stopped: what was not tried is not known to hold")
			break
		}
		if err != nil {
			c.broken("%v", err)
		}
		if c.nobody = errors.Is(err, errNobody); c.nobody {
			break // the rest would wait for the same
		}
	}
	c.check = "clean"
	c.clean(ctx)
	c.report.Took = cfg.Clock.Mono() - c.began
	return c.report, nil
}

// name is a worker's name that no other has.
func (c *canary) name() string {
	c.names++
	return fmt.Sprintf("smoke-%s-%d", c.cfg.Nonce, c.names)
}

func (c *canary) line(v Verdict, format string, args ...any) {
	line := Line{Check: c.check, Verdict: v, Text: fmt.Sprintf(format, args...), At: c.cfg.Clock.Mono() - c.began}
	c.report.Lines = append(c.report.Lines, line)
	if c.cfg.Say != nil {
		c.cfg.Say(line)
	}
}

func (c *canary) broken(format string, args ...any) { c.line(Broken, format, args...) }
func (c *canary) note(format string, args ...any)   { c.line(Note, format, args...) }

// holds says that a promise was kept, or was not: what is said must be true of both.
func (c *canary) holds(kept bool, format string, args ...any) {
	if kept {
		c.line(Held, format, args...)
		return
	}
	c.broken(format, args...)
}

// free says that the canary may begin: no job of another is open, and nothing of an earlier one is at work.
func (c *canary) free(ctx context.Context) error {
	if _, err := c.cfg.Backend.Blobs.Blob(ctx, pipeline.SourceKey("none")); err != nil && !errors.Is(err, pipeline.ErrNotFound) {
		return fmt.Errorf("read the bucket (another name than STACK-blobs is given by --bucket): %w", err)
	}
	if skew := c.cfg.Backend.Skew; skew != nil && skew().Abs() > c.cfg.Policy.MaxSkew/2 {
		return fmt.Errorf("this machine's clock differs from the store's by %v, and its workers would claim nothing: set it right", skew())
	}
	for cursor := ""; ; {
		open, next, err := c.cfg.Backend.Store.OpenJobs(ctx, cursor)
		if err != nil {
			return fmt.Errorf("look for open jobs: %w", err)
		}
		for _, job := range open {
			switch {
			case job.Tenant == Tenant:
				return fmt.Errorf("job %s of another canary is %s: it is at work, or was killed; then it ends by itself at %s, or now with: holdfast cancel %s --tenant %s", job.ID, job.Status, job.Deadline, job.ID, Tenant)
			case !c.cfg.Beside:
				return fmt.Errorf("job %s of tenant %s is %s, and the canary would share its workers: wait for its end, or say --beside", job.ID, job.Tenant, job.Status)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return c.forgetEarlier(ctx)
}
