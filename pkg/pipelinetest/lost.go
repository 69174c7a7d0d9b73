package pipelinetest

import (
	"errors"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

var lostPromises = []promise{
	{"a claim whose answer was lost is recognised, as long as it cannot have expired", lostClaimIsOurs},
	{"a claim that never arrived is made by sending it again", lostWriteIsRepeated},
	{"a renewal whose answer was lost is recognised", lostRenewal},
	{"a stage whose answer was lost is recognised", lostCheckpoint},
	{"an end whose answer was lost is recognised and does not land twice", lostEnd},
	{"a late copy of a claim never claims twice", lateClaim},
	{"a late copy of a renewal never shortens a claim", lateRenewal},
	{"a late copy of an end does not end the next claim", lateEnd},
	{"a ring whose answer was lost is not rung twice by the same sight of the row", lostRing},
}

// loses performs the write, loses its answer, and checks that the caller learned nothing.
func loses(b *bench, op string, do func(s pipeline.Store) error) {
	b.Helper()
	b.fails(do(Lossy(b.Store, 1, op)), pipeline.ErrBusy)
}

func lostClaimIsOurs(t *testing.T, h Harness) {
	b := newBench(t, h)
	p := pipeline.DefaultPolicy()
	w := ClaimOf(b.row(), "A", T0)
	loses(b, "Claim", func(s pipeline.Store) error { _, err := s.Claim(b.ctx, w); return err })
	stands := b.read(w.Ref)
	_, err := h.Store.Claim(b.ctx, w)
	b.refused(err, stands)
	old, _ := pipeline.Old(err)
	if !w.Landed(old, p.ClaimTTL-p.MaxSkew-1, p) {
		t.Error("our own claim is not recognised")
	}
	if w.Landed(old, p.ClaimTTL-p.MaxSkew, p) {
		t.Error("a claim that may have expired meanwhile is taken for ours")
	}
	theirs := w
	theirs.ClaimID = "somebody else's"
	if theirs.Landed(old, 0, p) {
		t.Error("somebody else's claim is taken for ours")
	}
	if stands.Attempts != 1 || stands.Generation != 1 {
		t.Errorf("got attempts %d, generation %d; want 1, 1", stands.Attempts, stands.Generation)
	}
	ended, err := h.Store.End(b.ctx, EndOf(stands, pipeline.Verdict{Status: pipeline.TaskPending}, pipeline.Failure{}, T0))
	b.must(err)
	if w.Landed(&ended, 0, p) {
		t.Error("a claim that has ended is taken for ours")
	}
}

func lostWriteIsRepeated(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.row()
	w := ClaimOf(row, "A", T0)
	lossy := Wrap(h.Store, LoseWrites(1, "Claim"))
	_, err := lossy.Claim(b.ctx, w)
	b.fails(err, pipeline.ErrBusy)
	b.stands(row)
	_, err = lossy.Claim(b.ctx, w)
	b.must(err)
}

func lostRenewal(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.claim(b.row(), "A", T0)
	w := pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: later, Stage: 1, Allowed: 10}
	loses(b, "Renew", func(s pipeline.Store) error { _, err := s.Renew(b.ctx, w); return err })
	_, err := h.Store.Renew(b.ctx, w)
	b.refused(err, b.read(row.Ref))
	old, _ := pipeline.Old(err)
	if old.ClaimID != row.ClaimID || old.Status != pipeline.TaskClaimed || old.ExpiresAt != later || old.Allowed != 10 {
		t.Errorf("the refusal shows %s, want our claim with its new expiry", pipeline.Encode(old))
	}
}

func lostCheckpoint(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.claim(b.row(), "A", T0)
	w := pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: 1}
	loses(b, "Checkpoint", func(s pipeline.Store) error { _, err := s.Checkpoint(b.ctx, w); return err })
	_, err := h.Store.Checkpoint(b.ctx, w)
	b.refused(err, b.read(row.Ref))
	if old, _ := pipeline.Old(err); old.Body(1) != row.Generation {
		t.Errorf("the refusal shows bodies %v, want our generation at stage 1", old.Bodies)
	}
}

func lostEnd(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.claim(b.row(), "A", T0)
	w := EndOf(row, pipeline.Verdict{Status: pipeline.TaskPending, Deferrals: 1}, pipeline.Fail(pipeline.Busy, "no capacity"), T0)
	loses(b, "End", func(s pipeline.Store) error { _, err := s.End(b.ctx, w); return err })
	_, err := h.Store.End(b.ctx, w)
	b.refused(err, b.read(row.Ref))
	old, _ := pipeline.Old(err)
	if old.Generation != row.Generation || old.EndedBy != row.ClaimID || old.Deferrals != 1 || old.Attempts != 0 {
		t.Errorf("the refusal shows %s, want our own end, once", pipeline.Encode(old))
	}
}

func lateClaim(t *testing.T, h Harness) {
	for name, attempts := range map[string]int{"after a counted attempt": 1, "after a refunded one": 0} {
		b := newBench(t, h)
		b.run(name, func(b *bench) {
			row := b.row()
			late := NewLate(1, "Claim")
			slow := Wrap(h.Store, late.Around)
			w := ClaimOf(row, "A", T0)
			_, err := slow.Claim(b.ctx, w)
			b.fails(err, pipeline.ErrBusy)
			claimed, err := slow.Claim(b.ctx, w)
			b.must(err)
			ended, err := slow.End(b.ctx, EndOf(claimed, pipeline.Verdict{Status: pipeline.TaskPending, Attempts: attempts}, pipeline.Failure{}, T0))
			b.must(err)
			for _, err := range late.Release(b.ctx) {
				b.refused(err, ended)
			}
			b.claim(ended, "B", T0)
		})
	}
}

func lateRenewal(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.claim(b.row(), "A", T0)
	late := NewLate(1, "Renew")
	slow := Wrap(h.Store, late.Around)
	w := pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: T0 + 25_000, Answers: 1, Allowed: 10}
	_, err := slow.Renew(b.ctx, w)
	b.fails(err, pipeline.ErrBusy)
	w.Expires, w.Answers, w.Allowed = T0+30_000, 2, 20
	renewed, err := slow.Renew(b.ctx, w)
	b.must(err)
	for _, err := range late.Release(b.ctx) {
		b.refused(err, renewed)
	}
}

func lateEnd(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.claim(b.row(), "A", T0)
	late := NewLate(1, "End")
	slow := Wrap(h.Store, late.Around)
	w := EndOf(row, pipeline.Verdict{Status: pipeline.TaskPending, Attempts: 1}, pipeline.Failure{}, T0)
	_, err := slow.End(b.ctx, w)
	b.fails(err, pipeline.ErrBusy)
	ended, err := slow.End(b.ctx, w)
	b.must(err)
	next := b.claim(ended, "B", T0)
	for _, err := range late.Release(b.ctx) {
		b.refused(err, next)
	}
}

func lostRing(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.row()
	w := pipeline.RingWrite{Seen: row, Due: T0.Add(2 * time.Minute), Count: 1}
	loses(b, "Ring", func(s pipeline.Store) error { _, err := s.Ring(b.ctx, w); return err })
	rung := b.read(row.Ref)
	_, err := h.Store.Ring(b.ctx, w)
	b.refused(err, rung)
	if rung.Ring != 1 || rung.Rings != 1 {
		t.Errorf("got ring %d, rings %d; want 1, 1", rung.Ring, rung.Rings)
	}
	if _, err := h.Store.Claim(b.ctx, ClaimOf(rung, "A", T0)); errors.Is(err, pipeline.ErrFenced) {
		t.Error("a row that was rung cannot be claimed")
	}
}
