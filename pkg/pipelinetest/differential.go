package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"holdfast/pkg/pipeline"
)

// Differential plays one seeded history of all port calls on two empty stores and compares every answer. The history
// is as the world is: rows are seen late, writes come twice, clocks differ. Neither due index may lag.
func Differential(t *testing.T, seed uint64, steps int, a, b Harness) {
	t.Helper()
	if err := differ(t, seed, steps, a, b); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

// differ is the first difference.
func differ(t testing.TB, seed uint64, steps int, a, b Harness) error {
	h := &history{
		Rand: rand.New(rand.NewPCG(seed, 1)),
		t:    t, ctx: t.Context(), a: a, b: b,
		prefix: fmt.Sprintf("differential-%d", seed), now: T0, line: T0,
	}
	for step := range steps {
		h.now += pipeline.Instant(h.IntN(4000))
		m := h.move()
		if err := h.compare(m); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if step%25 == 24 || step == steps-1 {
			if err := h.audit(); err != nil {
				return fmt.Errorf("after step %d, %s: %w", step, m.says, err)
			}
		}
	}
	return nil
}

// history is what the two stores go through.
type history struct {
	*rand.Rand
	t      testing.TB
	ctx    context.Context
	a, b   Harness
	prefix string
	now    pipeline.Instant
	line   pipeline.Instant // now, for the limiter: the calls for it are closer together
	seen   []pipeline.Task  // rows as they were read at some time
	last   move             // for what arrives twice
}

// move is one call.
type move struct {
	says string
	do   func(s pipeline.Store) (any, error)
	raw  func(h Harness) // instead of do: behind the store's back
}

func (h *history) compare(m move) error {
	if m.raw != nil {
		m.raw(h.a)
		m.raw(h.b)
		return nil
	}
	gotA, errA := m.do(h.a.Store)
	gotB, errB := m.do(h.b.Store)
	if a, b := answer(gotA, errA), answer(gotB, errB); a != b {
		return fmt.Errorf("%s differs\n a %s (%v)\n b %s (%v)", m.says, a, errA, b, errB)
	}
	if row, ok := gotA.(pipeline.Task); ok && errA == nil {
		h.seen = append(h.seen, row)
	}
	return nil
}

// audit compares all that stands.
func (h *history) audit() error {
	reads := []move{h.dueMove(), h.openJobsMove(), h.jobsMove(), h.lineMove()}
	for n := range playedJobs {
		job := h.jobID(n)
		reads = append(reads, h.jobMove(job), h.tasksMove(job), h.itemsMove(job), h.findingsMove(job), h.budgetMove(job))
	}
	for _, m := range reads {
		if err := h.compare(m); err != nil {
			return err
		}
	}
	return nil
}

// answer is what a caller learns, as text.
func answer(value any, err error) string {
	old, refused := pipeline.Old(err)
	switch {
	case err == nil:
		return string(pipeline.Encode(value))
	case refused && old == nil:
		return "refused: no row"
	case refused:
		return "refused: " + string(pipeline.Encode(plain(*old)))
	}
	for _, known := range []error{pipeline.ErrNotFound, pipeline.ErrTooLarge, pipeline.ErrBusy, pipeline.ErrConflict, pipeline.ErrCeiling, pipeline.ErrFenced} {
		if errors.Is(err, known) {
			if known == pipeline.ErrCeiling {
				return known.Error() + ": " + string(pipeline.Encode(value))
			}
			return known.Error()
		}
	}
	return "another error"
}

const (
	playedJobs   = 2
	playedTasks  = 4
	playedModels = 2
)

func (h *history) jobID(n int) pipeline.JobID {
	return pipeline.JobID(fmt.Sprintf("%s-%d", h.prefix, n))
}
func (h *history) job() pipeline.JobID { return h.jobID(h.IntN(playedJobs)) }
func (h *history) model() string       { return fmt.Sprintf("%s-model-%d", h.prefix, h.IntN(playedModels)) }

func (h *history) key() string             { return fmt.Sprintf("task#%d#%d", h.IntN(3), h.IntN(3)) }
func (h *history) chance(percent int) bool { return h.IntN(100) < percent }

func (h *history) id() pipeline.TaskID {
	switch n := h.IntN(playedTasks + 2); n {
	case playedTasks:
		return pipeline.SplitTask
	case playedTasks + 1:
		return pipeline.FinalizeTask(1)
	default:
		return pipeline.WorkTask(n)
	}
}

// row is a row as somebody sees it: mostly as it stands, sometimes as it was.
func (h *history) row() pipeline.Task {
	if len(h.seen) > 0 && h.chance(30) {
		return h.seen[h.IntN(len(h.seen))]
	}
	ref := pipeline.Ref{Job: h.job(), ID: h.id()}
	row, err := h.a.Store.Task(h.ctx, ref)
	if err != nil {
		return NewRow(ref.Job, ref.ID)
	}
	h.seen = append(h.seen, row)
	return row
}

// move is what happens next; sometimes the last thing once more.
func (h *history) move() move {
	if h.last.do != nil && h.chance(8) {
		return h.last
	}
	kinds := []func() move{
		h.submitMove, h.setJobMove, h.putMove, h.claimMove, h.claimMove, h.claimMove, h.claimMove, h.renewMove, h.renewMove,
		h.checkpointMove, h.checkpointMove, h.checkpointMove, h.endMove, h.endMove, h.redriveMove, h.expireMove, h.expireMove,
		h.ringMove, h.ringMove, h.postponeMove, h.unparkMove, h.closeMove, h.buriedMove, h.dueMove,
		h.itemMove, h.itemMove, h.replyMove, h.feedMove, h.moneyMove, h.moneyMove, h.slotMove, h.slotMove, h.breakerMove, h.rawMove,
	}
	h.last = kinds[h.IntN(len(kinds))]()
	return h.last
}

func pick[T any](h *history, all ...T) T { return all[h.IntN(len(all))] }
