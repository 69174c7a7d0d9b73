package audit

import (
	"reflect"

	"holdfast/pkg/pipeline"
)

// told: the result has one record of each attempt, by who really ended it, and their sums.
func (a *Auditor) told(j *job, r pipeline.Result) {
	if a.restored {
		return
	}
	id := string(j.ID)
	tries, enders := 0, map[pipeline.TaskID]map[int64][]string{}
	for _, record := range r.Attempts {
		if enders[record.Task] == nil {
			enders[record.Task] = map[int64][]string{}
		}
		enders[record.Task][record.Generation] = append(enders[record.Task][record.Generation], record.Ender)
		tries += record.Tries + record.Unnamed
	}
	a.check("P4", id, r.Spend.Tries == tries, "its attempts have %d tries, the result says %d", tries, r.Spend.Tries)
	for _, ref := range a.order {
		if ref.Job != j.ID || ref.ID.Kind() == pipeline.TaskFinalize { // who decides may lose its claim meanwhile
			continue
		}
		for _, c := range a.rows[ref].claims {
			ender := c.id
			if c.ended == string(Expire) {
				ender = pipeline.ExpiredBy
			}
			told := enders[ref.ID][c.generation]
			a.check("P4", id, len(told) == 1 && told[0] == ender, "attempt %d of %s was ended by %s, the result says %v", c.generation, ref.ID, ender, told)
		}
		a.check("P4", id, len(enders[ref.ID]) == len(a.rows[ref].claims), "%s had %d attempts, the result tells of %d", ref.ID, len(a.rows[ref].claims), len(enders[ref.ID]))
	}
}

// said is what the feed said last of a finding, and when.
type said struct {
	pipeline.Finding
	step int
}

// again: who decides reads the feed first, and says nothing that it said before.
func (a *Auditor) again(by string, g pipeline.FindingGroup) {
	j, known := a.jobs[g.Job], a.rows[pipeline.Ref{Job: g.Job, ID: g.Task}]
	if j == nil || a.restored {
		return
	}
	key := group{g.Task, g.Stage, g.Generation}
	if j.groups[key] { // a copy, which changes nothing
		return
	}
	j.groups[key] = true
	since := 0
	if known != nil && g.Task.Kind() == pipeline.TaskFinalize {
		for _, c := range known.claims {
			if c.generation == g.Generation {
				since = c.step
			}
		}
	}
	for _, f := range g.Findings {
		before, is := j.feed[f.ID]
		a.check("P2", string(g.Job), !is || before.step >= since || !reflect.DeepEqual(before.Finding, f), "%s says of finding %s what the feed said before its claim: %s", by, f.ID, f.State)
		j.feed[f.ID] = said{f, a.step}
	}
}

type group struct {
	task       pipeline.TaskID
	stage      int
	generation int64
}

// Submitted looks at what a person is told who submits a document: a job that will do it, or has.
func (a *Auditor) Submitted(told pipeline.Job, began pipeline.Instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.jobs[told.ID]
	if j == nil || a.restored {
		return
	}
	lost := j.Status == pipeline.JobFailed || j.Status == pipeline.JobCancelled
	a.check("P1", string(j.ID), !lost || j.ended == 0 || j.ended >= began, "who submits it at %s is told that it is there; it was %s at %s", began, j.Status, j.ended)
}

// isOnFeed: a group that was put is there, and no other was taken for it.
func (a *Auditor) isOnFeed(g pipeline.FindingGroup) {
	for after := int64(0); ; {
		groups, err := a.cfg.Store.Findings(a.ctx, g.Job, after, 0)
		if err != nil || len(groups) == 0 {
			break
		}
		for _, on := range groups {
			after = on.Seq
			if on.Task == g.Task && on.Stage == g.Stage && on.Generation == g.Generation {
				return
			}
		}
	}
	a.check("P1", string(g.Job), false, "the findings of %s, stage %d, generation %d were put, and are not on the feed", g.Task, g.Stage, g.Generation)
}

// feedInTheEnd: who reads the feed when all is over knows what the last result says, whatever came late.
func (a *Auditor) feedInTheEnd(j *job) {
	if j.Result == "" || a.restored {
		return
	}
	body, err := a.cfg.Store.Blob(a.ctx, j.Result)
	r, bad := pipeline.Decode[pipeline.Result](body, "result")
	if a.check("P1", string(j.ID), err == nil && bad == nil && r.Epoch == j.Epoch && r.Status == j.Status, "its result %s cannot be read in the end: %v %v", j.Result, err, bad) {
		a.feed(j, r)
	}
}
