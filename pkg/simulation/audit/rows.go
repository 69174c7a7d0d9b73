package audit

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"holdfast/pkg/pipeline"
)

// Op is what a write of a row is meant to do.
type Op string

// The writes.
const (
	Put        Op = "put"
	Claim      Op = "claim"
	Renew      Op = "renew"
	Checkpoint Op = "checkpoint"
	EndClaim   Op = "end"
	Expire     Op = "expire"
	Ring       Op = "ring"
	Postpone   Op = "postpone"
	Unpark     Op = "unpark"
	Close      Op = "close"
	Bury       Op = "bury"
	Redrive    Op = "redrive"
	Set        Op = "set"
)

// Write is one write of a task's row, whatever came of it.
type Write struct {
	Op      Op
	By      string
	At      pipeline.Instant // true time
	Local   pipeline.Instant // by the writer's clock
	Policy  *pipeline.Policy // the writer's
	Ref     pipeline.Ref
	ClaimID string         // that it is made under
	Seen    *pipeline.Task // that it is made on; nil if it is made under a claim
	Exited  string         // the worker whose exit the writer has waited for
	Before  *pipeline.Task
	After   *pipeline.Task
	Err     error
}

// Row looks at one write of a row.
func (a *Auditor) Row(w Write) {
	a.step++
	id := w.Ref.String()
	if w.Err != nil || w.Before == nil || w.After == nil {
		a.outside(w)
		return
	}
	a.mayRing(w)
	b, n := w.Before, w.After
	known := a.rows[w.Ref]
	if known == nil {
		a.check("P2", id, a.restored, "a row that nobody put is written")
		known = a.adopt(*b)
	}
	if !a.check("P5", id, reflect.DeepEqual(*b, known.Task), "the row changed beside the writes that were seen: it was %s, generation %d, due %s; now %s, generation %d, due %s",
		known.Status, known.Generation, known.DueAt, b.Status, b.Generation, b.DueAt) {
		return
	}
	a.everyWrite(w, b, n)
	a.seen(w, b)
	switch w.Op {
	case Claim:
		a.claimed(w, known, b, n)
	case Renew:
		a.renewed(w, known, b, n)
	case Checkpoint:
		a.accepted(w, known, b, n)
	case EndClaim:
		a.ended(w, known, b, n)
	case Expire:
		a.expired(w, known, b, n)
	case Ring:
		a.rung(w, known, b, n)
	case Postpone:
		a.postponed(w, b, n)
	case Unpark:
		a.unparked(w, known, b, n)
	case Close:
		a.closed(w, b, n)
	case Bury:
		a.buried(w, b, n)
	case Redrive:
		a.redriven(w, known, b, n)
	case Put:
		a.check("P5", id, reflect.DeepEqual(b, n), "a row that was there was put again")
	}
	known.Task = *n
	known.Bodies = slices.Clone(n.Bodies)
	a.index(w.Ref.DueShard(), w.At)
}

// outside looks at writes that were refused, and at rows that appear or vanish.
func (a *Auditor) outside(w Write) {
	id := w.Ref.String()
	switch {
	case w.Before == nil && w.After == nil:
	case w.Before == nil:
		if a.check("P2", id, w.Op == Put, "%s brought a row to life that was not there", w.Op) {
			a.adopt(*w.After)
			a.born(w.After)
			a.mayRing(w)
			a.index(w.Ref.DueShard(), w.At)
		}
	case w.After == nil:
		a.check("P1", id, false, "%s removed the row", w.Op)
	default:
		a.check("P5", id, reflect.DeepEqual(w.Before, w.After), "%s was refused (%v) and changed the row all the same", w.Op, w.Err)
		a.refused(w)
	}
}

// born looks at a new row.
func (a *Auditor) born(t *pipeline.Task) {
	id := t.Ref.String()
	a.check("P10", id, t.Status.Ended() || t.DueAt != 0, "the row is born without a time at which the reaper looks at it")
	if j := a.jobs[t.Job]; j != nil && t.ID.Kind() == pipeline.TaskWork {
		shown := j.Tries * a.cfg.Definition.Calls()
		a.check("P3", id, t.MaxTries <= shown, "the row may have %d tries; %d were shown before the job began", t.MaxTries, shown)
		a.check("P9", id, j.Status != pipeline.JobPlanned || t.Status != pipeline.TaskPending, "the row may be claimed, and its job is only planned")
	}
	a.check("P2", id, t.Accepted == 0 && t.Attempts == 0 && t.Deferrals == 0, "the row is born with %d attempts, %d deferrals and %d stages accepted", t.Attempts, t.Deferrals, t.Accepted)
}

// everyWrite is what holds of every write that landed.
func (a *Auditor) everyWrite(w Write, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.check("P5", id, !b.Status.Ended() || w.Op == Redrive || w.Op == Bury || w.Op == Postpone || w.Op == Put || n.Status == b.Status && n.Generation == b.Generation,
		"%s by %s changed a row that had ended: %s -> %s", w.Op, w.By, b.Status, n.Status)
	a.check("P2", id, n.Generation >= b.Generation, "the generation went back from %d to %d", b.Generation, n.Generation)
	a.check("P2", id, n.Generation == b.Generation || (n.Generation == b.Generation+1 && (w.Op == Claim || w.Op == Redrive)), "%s raised the generation from %d to %d", w.Op, b.Generation, n.Generation)
	a.check("P7", id, n.Ring == b.Ring || (n.Ring == b.Ring+1 && w.Op == Ring), "%s set the ring number from %d to %d", w.Op, b.Ring, n.Ring)
	a.check("P2", id, n.Accepted == b.Accepted || w.Op == Checkpoint || w.Op == Redrive, "%s moved the accepted stage from %d to %d", w.Op, b.Accepted, n.Accepted)
	a.check("P3", id, n.Allowed <= n.MaxTries, "%d tries are allowed, the cap is %d", n.Allowed, n.MaxTries)
	a.check("P3", id, n.MaxTries == b.MaxTries || w.Op == Redrive, "%s changed the cap of tries from %d to %d", w.Op, b.MaxTries, n.MaxTries)
	a.check("P3", id, n.Allowed >= b.Allowed || w.Op == EndClaim, "%s lowered the tries allowed from %d to %d", w.Op, b.Allowed, n.Allowed)
	a.check("P4", id, !n.Buried || n.Status == pipeline.TaskAbandoned, "it is %s after %s, and marked as if a dead letter had said why it was given up", n.Status, w.Op)
	a.check("P7", id, n.Deferrals <= max(w.Policy.MaxDeferrals, b.Deferrals), "%d deferrals, the policy allows %d", n.Deferrals, w.Policy.MaxDeferrals)
	a.check("P7", id, n.Attempts <= max(w.Policy.MaxAttempts, b.Attempts), "%d attempts, the policy allows %d", n.Attempts, w.Policy.MaxAttempts)
	if !n.Status.Ended() || n.Status == pipeline.TaskAbandoned && !n.Buried {
		a.check("P10", id, n.DueAt != 0, "the row is %s after %s, and no time is set at which the reaper looks at it", n.Status, w.Op)
		most := max(w.Local, w.At, n.ExpiresAt, n.ReadyAt).Add(w.Policy.RingLimit + w.Policy.MaxSkew + time.Second)
		a.check("P10", id, n.DueAt <= most || n.DueAt == b.DueAt, "the reaper is to look at the row only at %s, after %s at %s", n.DueAt, w.Op, w.At)
		longest := w.At.Add(w.Policy.JobDeadline + w.Policy.DeferralLimit)
		a.check("P10", id, n.ReadyAt <= longest || n.ReadyAt == b.ReadyAt, "the row is ready only at %s, after %s at %s", n.ReadyAt, w.Op, w.At)
	}
}

// seen: who does not hold a row changes it only as it was seen: nobody has claimed, rung, ended or moved it since.
func (a *Auditor) seen(w Write, b *pipeline.Task) {
	s := w.Seen
	if s == nil {
		return
	}
	same := s.Status == b.Status && s.Generation == b.Generation
	if w.Op != Expire && w.Op != Redrive { // renewals move the one, and bells do not matter to the other
		same = same && s.Rings == b.Rings && s.DueAt == b.DueAt
	}
	a.check("P5", w.Ref.String(), same, "%s by %s is made on a row that was %s at generation %d, ring %d, due %s; it is %s at %d, %d, %s",
		w.Op, w.By, s.Status, s.Generation, s.Rings, s.DueAt, b.Status, b.Generation, b.Rings, b.DueAt)
}

// claimed looks at a claim.
func (a *Auditor) claimed(w Write, known *row, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.check("P2", id, b.Status == pipeline.TaskPending, "%s claimed a row that is %s (by %s until %s)", w.By, b.Status, b.ClaimedBy, b.ExpiresAt)
	a.check("P2", id, n.Status == pipeline.TaskClaimed && n.ClaimedBy == w.By && n.ClaimID == w.ClaimID, "the claim of %s shows %s by %s", w.By, n.ClaimID, n.ClaimedBy)
	a.check("P2", id, n.Generation == b.Generation+1, "the claim did not raise the generation %d", b.Generation)
	_, used := a.claimIDs[w.ClaimID]
	a.check("P2", id, !used, "claim %s claimed twice", w.ClaimID)
	a.check("P7", id, n.Attempts == b.Attempts+1, "the attempt was not counted at its claim: %d -> %d", b.Attempts, n.Attempts)
	a.check("P7", id, b.Attempts < w.Policy.MaxAttempts, "claimed after %d attempts, the policy of %s allows %d", b.Attempts, w.By, w.Policy.MaxAttempts)
	a.check("P7", id, b.ReadyAt <= w.Local.Add(w.Policy.MaxSkew), "claimed at %s, ready at %s", w.Local, b.ReadyAt)
	a.check("P10", id, n.ExpiresAt > b.ReadyAt && n.ExpiresAt.Sub(w.Local) <= w.Policy.ClaimTTL+w.Policy.MaxSkew, "a claim until %s, made at %s", n.ExpiresAt, w.Local)
	a.check("P7", id, n.Deferrals == b.Deferrals && n.Losses == b.Losses, "the claim changed deferrals %d -> %d, losses %d -> %d", b.Deferrals, n.Deferrals, b.Losses, n.Losses)
	if b.Losses >= 2 {
		other := a.holdsOther(w)
		a.check("P6", id, other == "", "a row lost %d times was claimed by %s, which works on %s too", b.Losses, w.By, other)
	}
	a.check("P6", id, n.Answers == 0, "the claim begins with %d answers, which an attempt before it got", n.Answers)
	a.check("P7", id, n.Rings == 0, "%d rings are counted since the claim", n.Rings)
	a.claimIDs[w.ClaimID] = w.Ref
	known.claims = append(known.claims, claim{id: w.ClaimID, by: w.By, generation: n.Generation, at: w.At, kept: w.At, step: a.step, allowed: n.Allowed})
	known.rings = nil
}

// holdsOther is another row that the worker works on: renewed or claimed lately.
func (a *Auditor) holdsOther(w Write) string {
	for _, ref := range a.order {
		r := a.rows[ref]
		if ref == w.Ref || r.Status != pipeline.TaskClaimed || r.ClaimedBy != w.By || len(r.claims) == 0 {
			continue
		}
		if last := r.claims[len(r.claims)-1]; w.At.Sub(last.kept) < w.Policy.RenewEvery/2 && !a.worker(w.By).late && len(a.worker(w.By).trouble) == 0 {
			return ref.String()
		}
	}
	return ""
}

// holder checks that a write is made by the claim that the row shows.
func (a *Auditor) holder(w Write, known *row, b *pipeline.Task) {
	id := w.Ref.String()
	a.check("P2", id, b.Status == pipeline.TaskClaimed && b.ClaimID == w.ClaimID && (b.ClaimedBy == w.By || a.restored),
		"%s by %s under claim %s, while the row is %s, claimed as %s by %s", w.Op, w.By, w.ClaimID, b.Status, b.ClaimID, b.ClaimedBy)
	if n := len(known.claims); n > 0 && !a.restored {
		last := known.claims[n-1]
		a.check("P2", id, last.id == w.ClaimID && last.ended == "", "%s under claim %s, the last one is %s (%s)", w.Op, w.ClaimID, last.id, last.ended)
	}
}

func (a *Auditor) renewed(w Write, known *row, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.holder(w, known, b)
	a.check("P10", id, n.ExpiresAt > b.ExpiresAt, "a renewal shortened the claim: %s -> %s", b.ExpiresAt, n.ExpiresAt)
	a.check("P10", id, n.ExpiresAt.Sub(max(w.Local, b.ExpiresAt)) <= w.Policy.ClaimTTL+w.Policy.MaxSkew, "a renewal at %s until %s", w.Local, n.ExpiresAt)
	a.check("P7", id, n.Status == b.Status && n.Attempts == b.Attempts && n.Deferrals == b.Deferrals && n.Losses == b.Losses, "a renewal changed the counters")
	if len(known.claims) > 0 {
		known.claims[len(known.claims)-1].kept = w.At
	}
}

func (a *Auditor) rung(w Write, known *row, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.check("P7", id, b.Status == pipeline.TaskPending, "a row that is %s was rung", b.Status)
	a.check("P7", id, n.Ring == b.Ring+1, "a ring did not raise the ring number")
	a.check("P7", id, b.Attempts < w.Policy.MaxAttempts, "a row whose %d attempts are used up was rung by %s, whose policy allows %d", b.Attempts, w.By, w.Policy.MaxAttempts)
	a.check("P7", id, n.Status == b.Status && n.Attempts == b.Attempts && n.Generation == b.Generation, "a ring changed more than the ring")
	if n := len(known.claims); n > 0 && known.claims[n-1].by == w.By && b.Reason.Kind == pipeline.Shutdown {
		// Who is asked to stop rings what it leaves, once, whoever has rung it since.
		last := &known.claims[n-1]
		a.check("P7", id, !last.rung, "%s rings twice what it left when it was asked to stop", w.By)
		last.rung = true
		known.rings = append(known.rings, w.At)
		return
	}
	// Once rung, nobody rings a row again before it is due, and each ring puts the next off for twice as long.
	k, skews := len(known.rings), 2*w.Policy.MaxSkew
	from := known.pendingAt
	if k > 0 {
		from = b.DueAt
		a.check("P7", id, w.Local >= b.DueAt.Add(-skews), "ring %d since it became pending at %s, due at %s", k+1, w.Local, b.DueAt)
	}
	least := growing(w.Policy.RingDelay, w.Policy.RingLimit, k) - skews
	a.check("P7", id, n.DueAt.Sub(from) >= least, "ring %d since it became pending puts the next off by %v, at least %v is promised", k+1, n.DueAt.Sub(from), least)
	known.rings = append(known.rings, w.At)
}

// growing is a wait that doubles up to its limit.
func growing(first, limit time.Duration, n int) time.Duration {
	for range min(n, 40) {
		first *= 2
	}
	return min(first, limit)
}

func (a *Auditor) postponed(w Write, b, n *pipeline.Task) {
	same := *n
	same.DueAt = b.DueAt
	a.check("P5", w.Ref.String(), reflect.DeepEqual(same, *b), "a postponement changed more than the time")
}

func (a *Auditor) unparked(w Write, known *row, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.check("P5", id, b.Status == pipeline.TaskParked && n.Status == pipeline.TaskPending, "unparked: %s -> %s", b.Status, n.Status)
	a.check("P7", id, n.Attempts == b.Attempts && n.Deferrals == b.Deferrals && n.Losses == b.Losses, "unparking changed the counters")
	if j := a.jobs[w.Ref.Job]; j != nil && !a.restored {
		stands := j.paused != 0 && w.At.Sub(j.paused) > 2*time.Minute
		a.check("P9", id, !stands, "unparked although its job is paused since %s", j.paused)
	}
	known.rings, known.pendingAt = nil, w.At
}

func (a *Auditor) buried(w Write, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.check("P5", id, b.Status == pipeline.TaskAbandoned && n.Status == b.Status && n.Generation == b.Generation, "buried while %s", b.Status)
	a.check("P4", id, a.letters[w.Ref] > 0 || a.restored, "marked as buried without a dead letter")
}

func (a *Auditor) redriven(w Write, known *row, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.check("P5", id, b.Status.Ended(), "redriven while %s", b.Status)
	a.check("P5", id, n.Status == pipeline.TaskPending && n.Generation == b.Generation+1, "a redrive left it %s at generation %d", n.Status, n.Generation)
	a.check("P7", id, n.Attempts == 0 && n.Deferrals == 0 && n.Losses == 0 && n.Rings == 0, "a redrive left %d attempts, %d deferrals, %d losses, %d rings", n.Attempts, n.Deferrals, n.Losses, n.Rings)
	a.check("P3", id, n.MaxTries > b.MaxTries && n.Allowed == b.Allowed, "a redrive raised the cap of tries from %d to %d, allowed %d -> %d", b.MaxTries, n.MaxTries, b.Allowed, n.Allowed)
	a.check("P8", id, n.Accepted <= b.Accepted, "a redrive accepted a stage")
	a.mayPay(b)
	known.rings, known.pendingAt = nil, w.At
	delete(a.letters, w.Ref)
}

// item reads an item past everybody's ports.
func (a *Auditor) item(job pipeline.JobID, key string) ([]byte, bool) {
	body, err := a.cfg.Store.Item(a.ctx, job, key)
	return body, !errors.Is(err, pipeline.ErrNotFound)
}
