package audit

import (
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// accepted looks at an acceptance: by the holder, of the next stage, of a body that is whole.
func (a *Auditor) accepted(w Write, known *row, b, n *pipeline.Task) {
	id := w.Ref.String()
	a.holder(w, known, b)
	a.check("P2", id, n.Accepted == b.Accepted+1 && n.Accepted <= n.Stages, "stage %d was accepted after stage %d, of %d", n.Accepted, b.Accepted, n.Stages)
	a.check("P2", id, len(n.Bodies) == n.Accepted && n.Bodies[n.Accepted-1] == b.Generation, "stage %d was accepted under generation %d with the bodies %v", n.Accepted, b.Generation, n.Bodies)
	a.check("P2", id, len(n.Bodies) == n.Accepted && slices.Equal(b.Bodies[:min(b.Accepted, len(b.Bodies))], n.Bodies[:min(b.Accepted, len(n.Bodies))]), "an acceptance changed the bodies before: %v -> %v", b.Bodies, n.Bodies)
	a.check("P6", id, n.Attempts == 1 && n.Losses == 0, "after an accepted stage attempts are %d, losses %d: they count from there again", n.Attempts, n.Losses)
	a.check("P7", id, n.Status == b.Status && n.Deferrals == b.Deferrals && n.ExpiresAt == b.ExpiresAt, "an acceptance changed status, deferrals or expiry")
	key := acceptance{n.Accepted, b.Generation}
	a.check("P2", id, !known.accepted[key], "stage %d of generation %d was accepted twice", n.Accepted, b.Generation)
	known.accepted[key] = true
	body, found := a.item(w.Ref.Job, pipeline.BodyKey(w.Ref.ID, n.Accepted, b.Generation))
	if !a.check("P8", id, found, "stage %d was accepted and its body is not stored", n.Accepted) {
		return
	}
	switch w.Ref.ID.Kind() {
	case pipeline.TaskWork:
		a.body(w, n, body)
	case pipeline.TaskSplit:
		a.split(w)
	case pipeline.TaskFinalize:
		j := a.jobs[w.Ref.Job]
		a.check("P1", id, j == nil || j.Status.Ended() || j.Epoch != int64(w.Ref.ID.Number()), "the finalize of epoch %d is accepted, and the job is %s", w.Ref.ID.Number(), j.status())
	}
}

// body checks that a stage's checkpoint names every cell of the stage, each with its end.
func (a *Auditor) body(w Write, n *pipeline.Task, item []byte) {
	id := w.Ref.String()
	body, err := pipeline.Decode[pipeline.StageBody](item, "stage body")
	if !a.check("P1", id, err == nil && body.Stage == n.Accepted && body.Chunk == n.ID.Number(), "its body is of chunk %d, stage %d: %v", body.Chunk, body.Stage, err) {
		return
	}
	calls := a.cfg.Definition.Stages[n.Accepted-1].Calls
	a.judged(w, body)
	before := a.earlier(n)
	a.onFeed(n)
	a.check("P1", id, len(body.Cells) == len(calls), "stage %d has %d calls, its body %d cells", n.Accepted, len(calls), len(body.Cells))
	for _, call := range calls {
		i := slices.IndexFunc(body.Cells, func(c pipeline.Cell) bool { return c.Call == call.ID })
		if !a.check("P1", id, i >= 0, "stage %d was accepted without a word about %s", n.Accepted, call.ID) {
			continue
		}
		a.cell(w, body.Cells[i])
		if shut := gated(call, before); call.Gate != nil {
			a.check("P1", id, (body.Cells[i].State == pipeline.CellGated) == shut, "%s is %s, and its gate leaves it out: %v", call.ID, body.Cells[i].State, shut)
		}
	}
}

// earlier are the cells of the stages that were accepted before the last one.
func (a *Auditor) earlier(n *pipeline.Task) map[string]pipeline.Cell {
	cells := map[string]pipeline.Cell{}
	for stage := 1; stage < n.Accepted; stage++ {
		item, _ := a.item(n.Job, pipeline.BodyKey(n.ID, stage, n.Bodies[stage-1]))
		body, err := pipeline.Decode[pipeline.StageBody](item, "stage body")
		a.check("P8", n.Ref.String(), err == nil, "the body of stage %d cannot be read: %v", stage, err)
		for _, c := range body.Cells {
			cells[c.Call] = c
		}
	}
	return cells
}

// onFeed: who follows the feed knows what a stage found before the next stage is accepted, whoever died in between.
func (a *Auditor) onFeed(n *pipeline.Task) {
	j := a.jobs[n.Job]
	for stage := 1; stage < n.Accepted && j != nil && !a.restored; stage++ {
		generation := n.Bodies[stage-1]
		item, _ := a.item(n.Job, pipeline.BodyKey(n.ID, stage, generation))
		body, err := pipeline.Decode[pipeline.StageBody](item, "stage body")
		shown := err == nil && (len(body.Findings) == 0 || j.groups[group{n.ID, stage, generation}])
		a.check("P1", n.Ref.String(), shown, "stage %d is accepted, and the %d findings of stage %d are not on the feed", n.Accepted, len(body.Findings), stage)
	}
}

// gated says that a call is not needed: the one that it asks about was answered with too little, or not needed itself.
func gated(call pipeline.Call, before map[string]pipeline.Cell) bool {
	if call.Gate == nil {
		return false
	}
	c := before[call.Gate.Call]
	return c.State == pipeline.CellGated || c.State == pipeline.CellAnswered && c.Value != nil && *c.Value < call.Gate.Min
}

func (a *Auditor) cell(w Write, c pipeline.Cell) {
	id := w.Ref.String() + " " + c.Call
	switch c.State {
	case pipeline.CellAnswered:
		found, _, err := a.cfg.Store.Replies(a.ctx, []pipeline.ReplyKey{c.Key})
		a.check("P8", id, err == nil && found[c.Key].Key == c.Key, "counted as answered, and its reply %s is not stored", c.Key)
		mine, theirs := a.jobs[w.Ref.Job], a.jobs[found[c.Key].Job]
		a.check("P2", id, mine == nil || theirs == nil || mine.Tenant == theirs.Tenant, "it has the answer that another tenant's job got")
	case pipeline.CellFailed:
		a.check("P4", id, !c.Failure.None(), "failed without a reason")
		switch c.Failure.Kind {
		case pipeline.Throttled, pipeline.Quota, pipeline.StoreFault, pipeline.Busy, pipeline.Shutdown, pipeline.Paused, pipeline.Cancelled:
			a.check("P6", id, false, "given up for what is nobody's fault: %s", c.Failure)
		case pipeline.Malformed, pipeline.Refused, pipeline.Truncated, pipeline.TooLong, pipeline.Invalid:
		default: // only on the last attempt
			a.check("P6", id, w.Before.Attempts >= w.Policy.MaxAttempts, "given up (%s) on attempt %d of %d", c.Failure, w.Before.Attempts, w.Policy.MaxAttempts)
		}
	case pipeline.CellGated:
		call, _, _ := a.cfg.Definition.Find(c.Call)
		a.check("P1", id, call.Gate != nil, "left out by a gate that it does not have")
	default:
		a.check("P1", id, false, "accepted as %q", c.State)
	}
}

// split checks that the manifest is there, and all of its rows.
func (a *Auditor) split(w Write) {
	id := w.Ref.String()
	m, err := pipeline.ReadManifest(a.ctx, a.cfg.Store, w.Ref.Job)
	if !a.check("P1", id, err == nil, "the split is accepted without a manifest: %v", err) {
		return
	}
	for n := range m.Chunks {
		ref := pipeline.Ref{Job: w.Ref.Job, ID: pipeline.WorkTask(n)}
		_, err := a.cfg.Store.Task(a.ctx, ref)
		a.check("P1", id, err == nil, "the split is accepted, and %s has no row: %v", ref, err)
	}
}

// Published looks at findings: what is shown was accepted.
func (a *Auditor) Published(by string, g pipeline.FindingGroup, err error) {
	r := a.rows[pipeline.Ref{Job: g.Job, ID: g.Task}]
	if err == nil {
		a.again(by, g)
		a.isOnFeed(g)
	}
	if err != nil || r == nil || g.Task.Kind() != pipeline.TaskWork {
		return
	}
	shows := len(g.Findings) > 0 // an empty group keeps its place, so that nothing void arrives there
	a.check("P2", r.Ref.String(), !shows || r.accepted[acceptance{g.Stage, g.Generation}] || a.restored, "%s published findings of stage %d under generation %d, which was never accepted", by, g.Stage, g.Generation)
}

// judged: what is found is what the stored answers say, not what another asker of the same was told.
func (a *Auditor) judged(w Write, body pipeline.StageBody) {
	texts := ""
	for _, c := range body.Cells {
		if c.State == pipeline.CellAnswered {
			found, _, _ := a.cfg.Store.Replies(a.ctx, []pipeline.ReplyKey{c.Key})
			texts += found[c.Key].Text
		}
	}
	for _, f := range body.Findings {
		a.check("P8", w.Ref.String(), strings.Contains(texts, `"rationale": "`+f.Rationale+`"`), "it finds %q, which no stored answer of its stage says", f.Rationale)
	}
}
