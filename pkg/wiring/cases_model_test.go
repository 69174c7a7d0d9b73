package wiring_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// always fails every try with the failure that the function tells, as long as it tells one.
func always(kind pipeline.Kind, after time.Duration) func(int, pipeline.Request) error {
	return func(int, pipeline.Request) error {
		return &pipeline.ModelError{Failure: pipeline.Fail(kind, "scripted"), RetryAfter: after}
	}
}

// A provider that asks everybody to wait: nobody comes early, nobody is given up, and they do not come back together.
func TestCaseM01RetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		over  time.Duration // of the storm
		most  int           // tries during it
	}{
		"20 seconds, for ten minutes":         {20 * time.Second, 10 * time.Minute, 400},
		"15 minutes, for an hour":             {15 * time.Minute, time.Hour, 200},
		"no word of a wait, for ten minutes":  {0, 10 * time.Minute, 20 * 2 * 4 * 5}, // calls of a stage x tries x rounds, which double from 30 s
		"30,000 years, then it works":         {1 << 62, time.Minute, 100},
		"a time that has passed, for an hour": {-time.Hour, time.Hour, 1200},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				over := w.clock.Now().Add(c.over)
				var mu sync.Mutex
				told := map[pipeline.ReplyKey]pipeline.Instant{}
				storm := 0
				var back []pipeline.Instant
				w.model.react = func(_ int, r pipeline.Request) error {
					mu.Lock()
					defer mu.Unlock()
					now := w.clock.Now()
					asked := now.Add(-w.model.takes)
					if until := told[r.Key]; until > asked {
						t.Errorf("asked again %v before the time that was told", until.Sub(asked))
					}
					if asked >= over {
						back = append(back, asked)
						return nil
					}
					storm++
					if c.after > 0 && c.after < 20*time.Hour {
						told[r.Key] = now.Add(c.after)
					}
					return &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Throttled, "slow down"), RetryAfter: c.after}
				}
				for n := range 4 {
					w.start(fmt.Sprint("worker-", n), nil, func(cfg *wiring.Config) { cfg.Jitter, cfg.Poll = nil, 10*time.Second })
				}
				job := w.submit(text(20))
				within := 10*time.Hour + c.over
				if c.after > w.policy.JobDeadline {
					time.Sleep(2 * time.Hour)
					for _, row := range w.rows(job.ID) {
						if row.Status == pipeline.TaskAbandoned || row.ReadyAt > w.clock.Now().Add(30*time.Hour) {
							t.Errorf("%s is %s, ready at %s", row.ID, row.Status, row.ReadyAt)
						}
					}
					_, err := w.desk.Submitter.Cancel(w.ctx, job.ID, "enough")
					w.must(err)
					w.ends(job.ID, time.Minute, pipeline.JobCancelled)
				} else {
					w.ends(job.ID, within, pipeline.JobCompleted)
					w.complete(job.ID, 20)
					for _, row := range w.rows(job.ID) {
						if row.Attempts > 1 || row.Losses > 0 {
							t.Errorf("%s: attempt %d, %d losses: being throttled was counted", row.ID, row.Attempts, row.Losses)
						}
					}
				}
				if storm > c.most {
					t.Errorf("asked %d times during the storm, want at most %d", storm, c.most)
				}
				together := map[pipeline.Instant]int{}
				for _, at := range back {
					together[at]++
				}
				for at, n := range together {
					if n > 16 { // four workers of four in flight
						t.Errorf("%d calls came back at %s", n, at)
					}
				}
			})
		})
	}
}

// Every layer that tries again, together: what is sent is what one number says, and each sending is in the journal.
func TestCaseM03RetriesDoNotMultiply(t *testing.T) {
	for _, kind := range []pipeline.Kind{pipeline.Ambiguous, pipeline.Broken} {
		t.Run(string(kind), func(t *testing.T) {
			in(t, func(w *world) {
				w.model.react = always(kind, 0)
				w.start("one", nil)
				w.start("two", nil)
				job := w.submit(text(1), func(s *submit.Submission) { s.Definition.Tolerance = 1 })
				w.ends(job.ID, 23*time.Hour, pipeline.JobPartial)
				asked, keys, _ := w.model.count()
				want := w.policy.TryCap(6)
				if kind == pipeline.Broken { // the same again would break again: no tier one
					want = 6 * w.policy.MaxAttempts
				}
				if asked != want || keys != 6 {
					t.Errorf("asked %d times for %d keys, want %d for 6", asked, keys, want)
				}
				h, err := pipeline.ReadHistory(w.ctx, w.back.Store, pipeline.Ref{Job: job.ID, ID: pipeline.WorkTask(0)})
				w.must(err)
				named := 0
				for _, page := range h.Journals {
					for _, try := range page.Tries {
						named++
						if try.Number < 1 || try.Number > w.policy.MaxTries || try.Failure.Kind != kind {
							t.Errorf("got try %d of %s (%s), want one of 1 to %d", try.Number, try.Call, try.Failure, w.policy.MaxTries)
						}
					}
				}
				if named != asked {
					t.Errorf("the journal names %d tries, the model counted %d", named, asked)
				}
				w.sound(job.ID)
			})
		})
	}
}

// An answer that does not fit, and an input that does not: each is asked in at most one other way, and then is missing
// under its own name; nothing goes to tier two, and the neighbours keep what they have.
func TestCaseM04AndM06AnswersAndInputsThatDoNotFit(t *testing.T) {
	for _, kind := range []pipeline.Kind{pipeline.Truncated, pipeline.TooLong, pipeline.Malformed, pipeline.Refused, pipeline.Invalid} {
		t.Run(string(kind), func(t *testing.T) {
			in(t, func(w *world) {
				var mu sync.Mutex
				sent := map[string]int{}
				failing := func(r pipeline.Request) bool {
					return strings.Contains(r.Prompt, "Question 2.2") && strings.Contains(r.Shared, "Clause number 3.")
				}
				m := &answering{model: w.model, answer: func(r pipeline.Request) (pipeline.Response, error) {
					if !failing(r) {
						return pipeline.Response{Text: `{"score": 0.9}`, Stop: pipeline.StopEnd, Usage: pipeline.Usage{Input: r.InputTokens(), Output: 5}}, nil
					}
					mu.Lock()
					sent[fmt.Sprint(r.MaxTokens, len(r.Prompt))]++
					mu.Unlock()
					usage := pipeline.Usage{Input: r.InputTokens(), Output: r.MaxTokens}
					switch kind {
					case pipeline.Truncated:
						return pipeline.Response{Text: `{"sco`, Stop: pipeline.StopMaxTokens, Usage: usage}, nil
					case pipeline.Malformed:
						return pipeline.Response{Text: `{"sco`, Stop: pipeline.StopEnd, Usage: usage}, nil
					}
					return pipeline.Response{}, &pipeline.ModelError{Failure: pipeline.Fail(kind, "scripted")}
				}}
				w.start("worker", nil, func(c *wiring.Config) { c.Model = m })
				job := w.submit(text(chunks))
				w.ends(job.ID, time.Hour, pipeline.JobPartial)
				r := w.result(job.ID)
				if len(r.Missing) != 1 || r.Missing[0].Failure.Kind != kind || r.Missing[0].Chunk != 2 || r.Missing[0].Call != "s2c2" {
					t.Errorf("got %+v missing, want one cell, %s", r.Missing, kind)
				}
				times := 0
				for request, n := range sent {
					times += n
					if n > 1 && kind != pipeline.Malformed {
						t.Errorf("the same request (%s) was sent %d times", request, n)
					}
				}
				most := map[pipeline.Kind]int{pipeline.Truncated: 2, pipeline.TooLong: 2, pipeline.Malformed: 3}[kind]
				if times > max(1, most) {
					t.Errorf("sent %d times, want at most %d", times, max(1, most))
				}
				for _, row := range w.rows(job.ID) {
					if row.Generation > 1 {
						t.Errorf("%s was claimed %d times, want once", row.ID, row.Generation)
					}
				}
			})
		})
	}
}

// answering is a model that answers by a function of the request.
type answering struct {
	*model
	answer func(r pipeline.Request) (pipeline.Response, error)
}

func (m *answering) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	if _, err := m.model.Complete(ctx, r); err != nil {
		return pipeline.Response{}, err
	}
	return m.answer(r)
}
