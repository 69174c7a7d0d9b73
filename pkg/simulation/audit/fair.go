package audit

import (
	"time"

	"holdfast/pkg/pipeline"
)

// failing remembers why a call of the claim has no answer yet.
func (a *Auditor) failing(t *Try, at pipeline.Instant, f *pipeline.ModelError) {
	last := a.claimOf(t)
	if last == nil {
		return
	}
	if last.unsettled == nil {
		last.unsettled = map[string]pipeline.Kind{}
	}
	last.unsettled[t.call] = f.Kind
	if f.Kind == pipeline.Quota {
		last.quota = max(last.quota, at.Add(f.RetryAfter))
	}
}

func (a *Auditor) gotAnswer(t *Try) {
	if last := a.claimOf(t); last != nil {
		delete(last.unsettled, t.call)
	}
}

// claimOf is the claim that a try was sent under, if it is the last of its row.
func (a *Auditor) claimOf(t *Try) *claim {
	if t.row == nil || len(t.row.claims) == 0 {
		return nil
	}
	last := &t.row.claims[len(t.row.claims)-1]
	if last.id != t.claim {
		return nil
	}
	return last
}

// givenBack: what was allowed and not sent, or cost nothing, is given back at the end: a cap of tries is for tries.
func (a *Auditor) givenBack(w Write, known *row, n *pipeline.Task) {
	if len(known.claims) == 0 || a.restored || len(a.jobs) > 1 || w.Ref.ID.Kind() != pipeline.TaskWork {
		return
	}
	c := known.claims[len(known.claims)-1]
	sent := 0
	for _, tries := range c.tries {
		sent += tries
	}
	a.check("P6", w.Ref.String(), n.Allowed <= c.allowed+sent-c.free, "%d tries were used when the claim began, %d were sent in it, %d of them free: the row says %d", c.allowed, sent, c.free, n.Allowed)
}

// fairly: an attempt that a throttled call stopped does not count, whatever else it met; what has to wait for a quota
// waits for it; and money that others hold is not a ceiling that was reached.
func (a *Auditor) fairly(w Write, known *row, n *pipeline.Task, r pipeline.Record) {
	if len(known.claims) == 0 || a.restored {
		return
	}
	id, c := w.Ref.String(), known.claims[len(known.claims)-1]
	for call, kind := range c.unsettled {
		if len(a.jobs) > 1 { // whose call it was is not known for sure
			break
		}
		nobodys := kind == pipeline.Throttled || kind == pipeline.Quota
		a.check("P6", id, !nobodys || r.Outcome != pipeline.FailedNow, "an attempt counts as %s, though %s was %s", r.Outcome, call, kind)
	}
	if n.Status == pipeline.TaskPending && r.Failure.Kind == pipeline.Quota && len(a.jobs) == 1 {
		a.check("P7", id, n.ReadyAt >= c.quota.Add(-w.Policy.MaxSkew), "ready at %s, though there is no quota until %s", n.ReadyAt, c.quota)
	}
	if j := a.jobs[w.Ref.Job]; j != nil && n.Status == pipeline.TaskCancelled && j.Status == pipeline.JobRunning {
		late := j.Deadline != 0 && w.Local > j.Deadline.Add(-w.Policy.MaxSkew-time.Second)
		a.check("P6", id, !c.others || late, "stopped (%s) while others held money that they might have given back", r.Failure)
	}
}

// refused remembers that the end of a claim was refused though the row was its own.
func (a *Auditor) refused(w Write) {
	known := a.rows[w.Ref]
	if w.Op != EndClaim || known == nil || len(known.claims) == 0 || w.Before.Status != pipeline.TaskClaimed {
		return
	}
	if last := &known.claims[len(known.claims)-1]; last.id == w.ClaimID && w.Before.ClaimID == w.ClaimID {
		last.refused = w.At
	}
}

// forgotten: who is told that its end does not fit the row ends the row as it is; it does not leave it to lapse.
func (a *Auditor) forgotten(w Write, known *row) {
	if len(known.claims) == 0 || a.restored {
		return
	}
	c := known.claims[len(known.claims)-1]
	holder := a.worker(c.by)
	if c.refused == 0 || holder.dead || holder.late || holder.frozen >= c.refused {
		return
	}
	for _, at := range holder.trouble {
		if at >= c.refused {
			return
		}
	}
	a.check("P6", w.Ref.String(), false, "%s was told at %s that its end does not fit the row, and left its claim to lapse", c.by, c.refused)
}
