package audit

import (
	"errors"
	"time"

	"holdfast/pkg/pipeline"
)

// Try is one sending of a call, as the model saw it.
type Try struct {
	by     string
	key    pipeline.ReplyKey
	policy *pipeline.Policy // of who sends it
	claim  string
	call   string
	row    *row // whose it is; nil if that is not known
	sent   pipeline.Instant
	over   bool
	free   bool // it came back and cost nothing
}

// reply is what is known of a stored answer.
type reply struct {
	pipeline.Reply
	step int
	at   pipeline.Instant
	by   string
}

type saving struct {
	by  string
	key pipeline.ReplyKey
}

// message is what a bell is about.
type message struct {
	ref        pipeline.Ref
	generation int64
	ring       int64
}

// Asked looks at a try at the moment at which the worker sends it. reached tells if it got to the model.
func (a *Auditor) Asked(by string, sent pipeline.Instant, policy *pipeline.Policy, chunk int, call string, r pipeline.Request) *Try {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.step++
	t := &Try{by: by, key: r.Key, call: call, sent: sent, policy: policy}
	known, c := a.holds(by, chunk)
	id := by + " asks " + call
	drained := a.worker(by).drained
	a.check("P8", id, drained == 0 || sent <= drained, "a try is sent %v after its worker was asked to stop: who stops it does not wait for the answer", sent.Sub(drained))
	if stored := a.replies[r.Key]; stored != nil && !a.restored {
		read := a.worker(by).looked[r.Key]
		a.check("P8", id, read == 0 || len(a.jobs) > 1, "it asks what it has read the answer of: stored by %s at %s", stored.by, stored.at)
		a.check("P8", id, known == nil || stored.step > c.step, "it asks again what was answered and stored before its claim: by %s at %s", stored.by, stored.at)
	}
	if known == nil {
		return t
	}
	t.row, t.claim = known, c.id
	id = known.Ref.String() + " " + call
	if a.restored {
		return t
	}
	now, err := a.cfg.Store.Task(a.ctx, known.Ref)
	a.check("P2", id, err == nil && now.Status == pipeline.TaskClaimed && now.ClaimedBy == by, "%s sends a try under a claim that was taken away: the row is %s by %s", by, now.Status, now.ClaimedBy)
	known.pending++
	a.check("P3", id, known.charged+known.pending <= now.Allowed, "%d tries were sent and charged, %d are under way, and %d are allowed", known.charged, known.pending, now.Allowed)
	a.mayAsk(by, id, sent, known)
	a.bounded(t, id, c)
	return t
}

// bounded: tries of a call have their number in an attempt, and the attempt its time.
func (a *Auditor) bounded(t *Try, id string, c claim) {
	last := &t.row.claims[len(t.row.claims)-1]
	if last.tries == nil {
		last.tries = map[string]int{}
	}
	// A stage is asked once in an attempt.
	last.tries[t.call]++
	a.check("P7", id, last.tries[t.call] <= t.policy.MaxTries, "try %d in one attempt, the policy allows %d", last.tries[t.call], t.policy.MaxTries)
	age := t.sent.Sub(c.at)
	a.check("P7", id, age <= t.policy.AttemptTimeout+time.Second, "a try is sent %v after its claim, an attempt lasts %v", age, t.policy.AttemptTimeout)
	if j := a.jobs[t.row.Job]; j != nil && j.Deadline != 0 {
		late := t.sent.Sub(j.Deadline)
		a.check("P9", id, late <= 2*time.Second+t.policy.MaxSkew, "a try is sent %v after the job's deadline", late)
	}
}

// mayAsk: no try two seconds after a cancel, a pause or an end.
func (a *Auditor) mayAsk(by, id string, sent pipeline.Instant, known *row) {
	j := a.jobs[known.Job]
	if j == nil {
		return
	}
	for _, stop := range []struct {
		at   pipeline.Instant
		what string
	}{{j.cancelled, "cancelled"}, {j.paused, "paused"}, {j.ended, "ended"}} {
		if stop.at != 0 {
			a.check("P9", id, sent.Sub(stop.at) <= 2*time.Second, "%s sends a try %v after the job was %s", by, sent.Sub(stop.at), stop.what)
		}
	}
}

// holds is the row of that chunk which the worker claimed, if there is exactly one.
func (a *Auditor) holds(by string, chunk int) (*row, claim) {
	var found *row
	for _, ref := range a.order {
		r := a.rows[ref]
		if ref.ID.Kind() != pipeline.TaskWork || ref.ID.Number() != chunk || len(r.claims) == 0 || r.claims[len(r.claims)-1].by != by {
			continue
		}
		if r.Status == pipeline.TaskClaimed && found != nil {
			return nil, claim{}
		}
		if r.Status == pipeline.TaskClaimed || found == nil && len(a.jobs) == 1 {
			found = r
		}
	}
	if found == nil {
		return nil, claim{}
	}
	return found, found.claims[len(found.claims)-1]
}

// Unsent tells that a try never got to the model.
func (a *Auditor) Unsent(t *Try, at pipeline.Instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over(t, at, false, 0)
}

// Answered tells what the model answered, and that it arrived.
func (a *Auditor) Answered(t *Try, at pipeline.Instant, r pipeline.Response, price pipeline.Price, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	var failed *pipeline.ModelError
	cost := price.Of(r.Usage.Input, r.Usage.Output)
	if !errors.As(err, &failed) {
		a.over(t, at, true, cost)
		if r.Stop == pipeline.StopEnd && len(r.Text) > 0 && r.Text[len(r.Text)-1] == '}' && t.row != nil {
			a.unsaved[saving{t.by, t.key}] = t.call
		}
		a.gotAnswer(t)
		return
	}
	a.failed = at
	free := false
	switch failed.Kind {
	case pipeline.Throttled, pipeline.Quota, pipeline.Rejected, pipeline.Unavailable, pipeline.TooLong:
		free = true
	}
	t.free = free
	a.over(t, at, !free, cost)
	a.failing(t, at, failed)
}

// Unanswered tells that an answer never arrived: its worker died, or gave up waiting. It may have been billed.
func (a *Auditor) Unanswered(t *Try, at pipeline.Instant, cost pipeline.Money) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = at
	a.over(t, at, true, cost)
	a.failing(t, at, &pipeline.ModelError{Failure: pipeline.Failure{Kind: pipeline.Ambiguous}})
}

func (a *Auditor) over(t *Try, at pipeline.Instant, charged bool, cost pipeline.Money) {
	if t.over || t.row == nil {
		return
	}
	t.over = true
	a.aborted(t, at)
	t.row.pending--
	if n := len(t.row.claims); n > 0 && t.row.claims[n-1].id == t.claim {
		last := &t.row.claims[n-1]
		last.back++
		if t.free {
			last.free++
		}
		if charged {
			last.charged++
			last.cost += cost
		}
	}
	if !charged {
		return
	}
	t.row.charged++
	if j := a.jobs[t.row.Job]; j != nil && !a.restored {
		j.billed += cost
		a.check("P3", string(t.row.Job), j.budgeted == 0 || j.billed <= j.budgeted, "%s are billed, the ceiling is %s", j.billed, j.budgeted)
	}
}

// aborted: a call in flight is aborted when its job is cancelled, and after its time; by a worker that is neither
// frozen nor has trouble with the store, that is.
func (a *Auditor) aborted(t *Try, at pipeline.Instant) {
	w := a.worker(t.by)
	if w.dead || !a.cfg.Punctual || w.late || w.frozen != 0 && w.frozen >= t.sent.Add(-5*time.Minute) {
		return
	}
	id := t.row.Ref.String() + " " + t.call
	a.check("P7", id, at.Sub(t.sent) <= t.policy.CallTimeout+time.Second, "a call took %v, it has %v", at.Sub(t.sent), t.policy.CallTimeout)
	for _, trouble := range w.trouble {
		if trouble >= t.sent.Add(-10*time.Second) {
			return
		}
	}
	if j := a.jobs[t.row.Job]; j != nil && j.cancelled != 0 && j.cancelled >= t.sent {
		a.check("P9", id, at.Sub(j.cancelled) <= 2*time.Second, "a call in flight was aborted only %v after the job was cancelled", at.Sub(j.cancelled))
	}
}

// Looked tells which replies a worker read.
func (a *Auditor) Looked(by string, found map[pipeline.ReplyKey]pipeline.Reply) {
	a.step++
	for key := range found {
		a.worker(by).looked[key] = a.step
	}
}

// Stored looks at an answer that is stored.
func (a *Auditor) Stored(by string, at pipeline.Instant, r, stands pipeline.Reply, err error) {
	a.step++
	if err != nil {
		return
	}
	delete(a.unsaved, saving{by, r.Key})
	if known := a.replies[r.Key]; known == nil || a.restored {
		a.replies[r.Key] = &reply{Reply: stands, step: a.step, at: at, by: by}
		return
	}
	first := a.replies[r.Key]
	a.check("P8", r.Call, stands == first.Reply, "the answer of %s that was stored at %s was replaced by that of %s", first.Worker, first.At, stands.Worker)
}

// Unsaved tells that an answer could not be stored, through no fault of the worker's: nothing is expected of it.
func (a *Auditor) Unsaved(by string) {
	for s := range a.unsaved {
		if s.by == by {
			delete(a.unsaved, s)
		}
	}
}

// Sent looks at bells.
func (a *Auditor) Sent(by string, messages []pipeline.Message, excused bool) {
	for _, m := range messages {
		a.rings(by, m.Ref())
		key := message{m.Ref(), m.Generation, m.Ring}
		a.sent[key]++
		known := a.rows[m.Ref()]
		if known == nil {
			continue
		}
		most := 2 + len(known.claims)
		for _, w := range a.workers {
			most += len(w.trouble)
		}
		if m.Ring == 0 { // a split rings its rows again in each of its attempts
			if split := a.rows[pipeline.Ref{Job: m.Job, ID: pipeline.SplitTask}]; split != nil {
				most += len(split.claims)
			}
		}
		a.check("P7", m.Ref().String(), a.sent[key] <= most || excused || a.restored, "%s sends ring %d of generation %d for the %dth time", by, m.Ring, m.Generation, a.sent[key])
	}
}

// Buried counts dead letters.
func (a *Auditor) Buried(l pipeline.DeadLetter) {
	ref := pipeline.Ref{Job: l.Job, ID: l.Task}
	a.letters[ref]++
	a.check("P4", ref.String(), !l.Reason.None(), "a dead letter without a reason")
}
