package audit

import (
	"time"

	"holdfast/pkg/pipeline"
)

// want is what should become of a row: the design's table, written down once more.
type want struct {
	status    pipeline.TaskStatus
	attempts  int
	deferrals int
	losses    int
	wait      time.Duration // at least, until it is ready again
}

// wants is what an attempt that ended so should leave. late says that the job's deadline was over.
func wants(p *pipeline.Policy, b *pipeline.Task, outcome pipeline.Outcome, kind pipeline.Kind, answers int, late bool) want {
	w := want{status: pipeline.TaskPending, attempts: b.Attempts, deferrals: b.Deferrals, losses: b.Losses}
	back := max(0, b.Attempts-1)
	if outcome == pipeline.Died {
		w.losses++
	}
	again := outcome == pipeline.Deferral || outcome == pipeline.Died && answers > 0 && w.losses <= 2
	switch {
	case b.Accepted >= b.Stages:
		w.status = pipeline.TaskDone
	case outcome == pipeline.Permanent:
		w.status = pipeline.TaskAbandoned
	case outcome == pipeline.Stopped:
		w.status = pipeline.TaskCancelled
	case outcome == pipeline.Parked:
		w.status, w.attempts = pipeline.TaskParked, back
	case outcome == pipeline.Overran && answers > 0:
		w.attempts = back
	case again && b.Deferrals < p.MaxDeferrals && !late:
		w.attempts, w.deferrals = back, b.Deferrals+1
		if outcome == pipeline.Deferral && kind != pipeline.Shutdown {
			w.wait = growing(p.DeferralBackoff, p.DeferralLimit, b.Deferrals)
		}
	case b.Attempts < p.MaxAttempts:
		switch {
		case outcome != pipeline.Died:
			w.wait = growing(p.AttemptBackoff, p.DeferralLimit, b.Attempts-1)
		case w.losses > 2:
			w.wait = growing(p.AttemptBackoff, p.DeferralLimit, w.losses-3)
		}
	default:
		w.status = pipeline.TaskAbandoned
	}
	return w
}

// matches says that the row became what it should.
func (w want) matches(n *pipeline.Task) bool {
	return n.Status == w.status && n.Attempts == w.attempts && n.Deferrals == w.deferrals && n.Losses == w.losses
}

// became compares the row with what it should have become. Whether a deadline was over when a worker looked is not
// always known: it may have read the job shortly before it moved.
func (a *Auditor) became(w Write, b, n *pipeline.Task, r pipeline.Record, known *row) {
	id := w.Ref.String()
	late, unsure := a.late(w, r.EndedAt)
	unsure = unsure || r.Failure.Kind == pipeline.StoreFault // the job may be what could not be read
	first := wants(w.Policy, b, r.Outcome, r.Failure.Kind, r.Answers, late)
	ok := first.matches(n)
	if !ok && unsure {
		first = wants(w.Policy, b, r.Outcome, r.Failure.Kind, r.Answers, !late)
		ok = first.matches(n)
	}
	a.check("P6", id, ok, "%s (%s, %d answers) ended attempt %d, deferral %d, loss %d by %s as %s with attempts %d, deferrals %d, losses %d; want %s with %d, %d, %d",
		r.Outcome, r.Failure, r.Answers, b.Attempts, b.Deferrals, b.Losses, w.Op, n.Status, n.Attempts, n.Deferrals, n.Losses, first.status, first.attempts, first.deferrals, first.losses)
	if n.Status == pipeline.TaskPending {
		from := r.EndedAt
		if w.Op == Expire { // several may have written this record
			from = min(from, b.ExpiresAt)
			if n := len(known.claims); w.Exited != "" && n > 0 { // one of them knew of the exit before the claim lapsed
				from = min(from, known.claims[n-1].kept.Add(-w.Policy.MaxSkew))
			}
		}
		a.check("P7", id, n.ReadyAt >= from.Add(first.wait)-1, "%s is tried again after %v, want at least %v", r.Outcome, n.ReadyAt.Sub(from), first.wait)
	}
	a.check("P4", id, n.Status == pipeline.TaskDone || !n.Reason.None(), "it is %s without a reason", n.Status)
	a.check("P4", id, r.Outcome == pipeline.Succeeded || !r.Failure.None(), "an attempt that ended %s has no failure", r.Outcome)
	known.rings, known.pendingAt = nil, w.At
}

func (a *Auditor) late(w Write, at pipeline.Instant) (late, unsure bool) {
	j := a.jobs[w.Ref.Job]
	if j == nil || j.Deadline == 0 {
		return false, true
	}
	late = at > j.Deadline
	near := at.Sub(j.Deadline).Abs() < 2*time.Minute
	return late, near || w.At.Sub(j.moved) < 2*time.Minute || a.restored || j.deadlines > 1
}

func (a *Auditor) record(w Write, generation int64, ender string) (pipeline.Record, bool) {
	id := w.Ref.String()
	body, found := a.item(w.Ref.Job, pipeline.RecordKey(w.Ref.ID, generation, ender))
	if !a.check("P4", id, found, "attempt %d was ended by %s without a record", generation, ender) {
		return pipeline.Record{}, false
	}
	r, err := pipeline.Decode[pipeline.Record](body, "record")
	a.check("P6", id, r.Failure.Kind != pipeline.Broken || a.restored, "an attempt failed on its own: %s", r.Failure)
	return r, a.check("P4", id, err == nil && r.Generation == generation && r.Task == w.Ref.ID && r.Worker != "", "its record cannot be used: %v %+v", err, r)
}

// ended looks at a worker's end of its claim.
func (a *Auditor) ended(w Write, known *row, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.holder(w, known, b)
	a.endClaim(known, w)
	a.check("P4", id, n.EndedBy == w.ClaimID, "ended by %q, the claim is %s", n.EndedBy, w.ClaimID)
	a.check("P3", id, n.Allowed <= b.Allowed, "an end allowed more tries: %d -> %d", b.Allowed, n.Allowed)
	if !a.restored {
		a.check("P3", id, n.Allowed >= known.charged, "%d tries were sent and charged, the row says %d", known.charged, n.Allowed)
	}
	r, ok := a.record(w, b.Generation, w.ClaimID)
	if !ok {
		return
	}
	a.became(w, b, n, r, known)
	a.accounted(w, known, r)
	a.putOff(w, r)
	a.givenBack(w, known, n)
	a.fairly(w, known, n, r)
	switch n.Status {
	case pipeline.TaskCancelled:
		a.stopped(w, b, r.Failure)
	case pipeline.TaskParked:
		j := a.jobs[w.Ref.Job]
		a.check("P6", id, j == nil || !j.was(pipeline.JobRunning) || w.At.Sub(j.moved) < 5*time.Minute, "parked although its job runs")
	case pipeline.TaskAbandoned:
		a.givenUp(w, b, r)
	}
}

// accounted: the record names every try of the attempt, and what they cost.
func (a *Auditor) accounted(w Write, known *row, r pipeline.Record) {
	if len(known.claims) == 0 || a.restored || len(a.jobs) > 1 || w.Ref.ID.Kind() != pipeline.TaskWork {
		return
	}
	id, c := w.Ref.String(), known.claims[len(known.claims)-1]
	if w.Op == EndClaim {
		a.check("P4", id, r.Tries >= c.back, "%d tries came back in this attempt, its record has %d", c.back, r.Tries)
		named := a.journal(w.Ref, w.Before.Generation)
		a.check("P4", id, named >= c.back, "%d tries came back in this attempt, its journal names %d", c.back, named)
	}
	sent := 0
	for _, n := range c.tries {
		sent += n
	}
	a.check("P4", id, r.Tries <= sent, "%d tries were begun in this attempt, its record names %d", sent, r.Tries)
	a.check("P4", id, r.Tries+r.Unnamed >= c.charged, "%d tries of this attempt were sent, its record has %d and knows %d by number", c.charged, r.Tries, r.Unnamed)
	a.check("P3", id, r.Charged >= c.charged, "%d tries of this attempt are charged, its record says %d", c.charged, r.Charged)
	if w.Op == EndClaim {
		a.check("P3", id, r.Cost >= c.cost, "the tries of this attempt cost %s, its record says %s", c.cost, r.Cost)
	}
}

// journal is how many tries of an attempt are named, each with its call, and its reason if it failed.
func (a *Auditor) journal(ref pipeline.Ref, generation int64) (named int) {
	for page := 0; ; page++ {
		body, found := a.item(ref.Job, pipeline.JournalKey(ref.ID, generation, page))
		if !found {
			return named
		}
		j, err := pipeline.Decode[pipeline.Journal](body, "journal")
		if !a.check("P4", ref.String(), err == nil && j.Task == ref.ID && j.Generation == generation, "the journal of attempt %d cannot be read, or is that of %d: %v", generation, j.Generation, err) {
			return named
		}
		named += len(j.Tries)
		for _, t := range j.Tries {
			a.check("P4", ref.String(), t.Call != "" && (t.Failure.None() || t.Failure.Cause != ""), "a try of %q that failed (%s) does not say why", t.Call, t.Failure.Kind)
		}
	}
}

// givenUp: a task is given up for what is its own fault alone, or after all of its deferrals.
func (a *Auditor) givenUp(w Write, b *pipeline.Task, r pipeline.Record) {
	nobodys := false
	switch r.Failure.Kind {
	case pipeline.Throttled, pipeline.Quota, pipeline.StoreFault, pipeline.Shutdown, pipeline.Busy, pipeline.Paused:
		nobodys = true
	}
	late, unsure := a.late(w, r.EndedAt)
	a.check("P6", w.Ref.String(), !nobodys || b.Deferrals >= w.Policy.MaxDeferrals || late || unsure,
		"abandoned for what was nobody's fault: %s, after %d deferrals", r.Failure, b.Deferrals)
}

// closedFor is how long the failure of a call may stand in the way of others: what it said itself, or the breaker's time,
// and an attempt that met it.
const closedFor = 15 * time.Minute

// putOff: work on a chunk is put off as long as something is in its way, and no longer. What can be: a model that failed
// lately or shares its quota, money that others hold, a store that did not answer.
func (a *Auditor) putOff(w Write, r pipeline.Record) {
	j := a.jobs[w.Ref.Job]
	if r.Failure.Kind != pipeline.Busy || w.Ref.ID.Kind() != pipeline.TaskWork || a.cfg.Shared || a.restored || j == nil || j.ceiling {
		return
	}
	if j.Status != pipeline.JobRunning || !j.was(pipeline.JobRunning) || w.At.Sub(j.moved) < 5*time.Minute { // a person was in the way
		return
	}
	trouble := false
	for _, at := range a.worker(w.By).trouble {
		trouble = trouble || at >= r.ClaimedAt.Add(-time.Minute)
	}
	a.check("P6", w.Ref.String(), trouble || r.EndedAt.Sub(a.failed) <= closedFor, "put off (%s), and the model failed last at %s", r.Failure, a.failed)
}

// stopped: cancelled, with the stage where it stopped, and only if somebody or something stopped it.
func (a *Auditor) stopped(w Write, b *pipeline.Task, why pipeline.Failure) {
	id := w.Ref.String()
	body, found := a.item(w.Ref.Job, pipeline.CancellationKey(w.Ref.ID))
	if a.check("P9", id, found, "cancelled, and nothing says at which stage") {
		c, err := pipeline.Decode[pipeline.Cancellation](body, "cancellation")
		a.check("P9", id, err == nil && c.Stage >= 1 && c.Label != "" && !c.Reason.None(), "its cancellation does not say where and why: %v %+v", err, c)
	}
	a.check("P4", id, !why.None(), "cancelled without a reason")
	j := a.jobs[w.Ref.Job]
	if j == nil || a.restored {
		return
	}
	late := j.Deadline != 0 && w.Local > j.Deadline.Add(-w.Policy.MaxSkew-time.Second)
	a.check("P5", id, j.cancelled > 0 || j.Status.Ended() || late || j.ceiling || j.deadlines > 1 || j.splitFailed(a),
		"cancelled (%s) although nobody cancelled its job, which is %s until %s", why, j.Status, j.Deadline)
}

// expired looks at a claim that was taken away.
func (a *Auditor) expired(w Write, known *row, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.check("P2", id, b.Status == pipeline.TaskClaimed, "expired while %s", b.Status)
	exited := w.Exited != "" && w.Exited == b.ClaimedBy && a.worker(b.ClaimedBy).dead
	a.check("P6", id, exited || w.At >= b.ExpiresAt.Add(w.Policy.MaxSkew/2)-2, "a claim until %s was taken away at %s: its worker may still trust it", b.ExpiresAt, w.At)
	a.check("P4", id, n.EndedBy == pipeline.ExpiredBy, "ended by %q, want %q", n.EndedBy, pipeline.ExpiredBy)
	a.check("P3", id, n.Allowed == b.Allowed, "a lost attempt's tries were given back: %d -> %d", b.Allowed, n.Allowed)
	a.healthy(w, known)
	a.forgotten(w, known)
	a.endClaim(known, w)
	if r, ok := a.record(w, b.Generation, pipeline.ExpiredBy); ok {
		a.check("P4", id, r.Outcome == pipeline.Died && r.Failure.Kind == pipeline.Lost, "the record of a lost attempt says %s: %s", r.Outcome, r.Failure)
		a.accounted(w, known, r)
		r.Answers = b.Answers
		a.became(w, b, n, r, known)
	}
}

// healthy: the claim of a worker that lives, was not frozen and had no trouble never lapses.
func (a *Auditor) healthy(w Write, known *row) {
	if len(known.claims) == 0 || a.restored || !a.cfg.Punctual {
		return
	}
	c := known.claims[len(known.claims)-1]
	holder := a.worker(c.by)
	if holder.dead || holder.late || holder.frozen >= c.at.Add(-time.Minute) && holder.frozen != 0 {
		return
	}
	troubles := 0
	for _, at := range holder.trouble {
		if at >= c.at.Add(-time.Second) {
			troubles++
		}
	}
	a.check("P6", w.Ref.String(), troubles > 3, "the claim of %s lapsed although it lives and had trouble %d times since: it was taken at %s, kept at %s", c.by, troubles, c.at, c.kept)
}

func (a *Auditor) endClaim(known *row, w Write) {
	if n := len(known.claims); n > 0 {
		last := &known.claims[n-1]
		a.check("P2", w.Ref.String(), last.ended == "", "claim %s was ended by %s and by %s", last.id, last.ended, w.Op)
		last.ended = string(w.Op)
	}
}

// closed looks at a row that was ended by somebody who did not hold it.
func (a *Auditor) closed(w Write, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.check("P5", id, b.Status == pipeline.TaskPending || b.Status == pipeline.TaskParked, "closed while %s by %s", b.Status, b.ClaimedBy)
	a.check("P5", id, n.Status.Ended() && n.Generation == b.Generation, "closed as %s", n.Status)
	a.check("P5", id, (n.Status == pipeline.TaskDone) == (b.Accepted >= b.Stages), "closed as %s with %d of %d stages accepted", n.Status, b.Accepted, b.Stages)
	a.check("P4", id, n.Status == pipeline.TaskDone || !n.Reason.None(), "closed as %s without a reason", n.Status)
	a.check("P4", id, n.EndedBy == b.EndedBy, "closed, and its last attempt was ended by %q, not by %q", n.EndedBy, b.EndedBy)
	switch n.Status {
	case pipeline.TaskCancelled:
		j := a.jobs[w.Ref.Job]
		a.check("P1", id, b.ID.Kind() != pipeline.TaskFinalize || j == nil || j.Status.Ended() || a.restored, "the finalize is closed, and its job is %s: nobody writes its result", j.status())
		a.stopped(w, b, n.Reason)
	case pipeline.TaskAbandoned:
		a.check("P6", id, b.Attempts >= w.Policy.MaxAttempts, "given up after %d attempts, the policy allows %d", b.Attempts, w.Policy.MaxAttempts)
	}
}
