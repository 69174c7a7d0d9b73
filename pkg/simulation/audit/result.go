package audit

import (
	"fmt"
	"slices"

	"holdfast/pkg/pipeline"
)

// result compares what the job says of its end with what its rows and checkpoints say, cell by cell.
func (a *Auditor) result(j *job, rows map[pipeline.TaskID]pipeline.Task) {
	id := string(j.ID)
	body, err := a.cfg.Store.Blob(a.ctx, j.Result)
	if !a.check("P1", id, err == nil, "its result %s cannot be read: %v", j.Result, err) {
		return
	}
	r, err := pipeline.Decode[pipeline.Result](body, "result")
	if !a.check("P1", id, err == nil && r.Epoch == j.Epoch && r.Status == j.Status, "its result is of epoch %d and %s: %v", r.Epoch, r.Status, err) {
		return
	}
	m, err := pipeline.ReadManifest(a.ctx, a.cfg.Store, j.ID)
	if !a.check("P1", id, err == nil, "it has ended, and there is no manifest: %v", err) {
		return
	}
	stands := ends{missing: map[string]bool{}}
	for n := range m.Chunks {
		row, exists := rows[pipeline.WorkTask(n)]
		if !a.check("P1", id, exists, "it ended %s, and chunk %d has no row", j.Status, n) {
			return
		}
		a.count(&stands, n, row)
	}
	a.counts(j, r, stands, len(m.Chunks))
	a.feed(j, r)
	a.told(j, r)
	for _, t := range rows {
		if t.ID.Kind() == pipeline.TaskFinalize {
			continue
		}
		i := slices.IndexFunc(r.Tasks, func(e pipeline.TaskEnd) bool { return e.Task == t.ID })
		a.check("P4", id, i >= 0 && r.Tasks[i].Status == t.Status && r.Tasks[i].Accepted == t.Accepted, "the result does not say that %s is %s with %d stages accepted", t.ID, t.Status, t.Accepted)
	}
}

// ends are how the cells of a job ended, as its accepted bodies have them. What no body names is missing too: not asked.
type ends struct {
	answered, gated, failed int
	missing                 map[string]bool // by chunk and call
}

func (a *Auditor) count(e *ends, chunk int, row pipeline.Task) {
	for n, stage := range a.cfg.Definition.Stages {
		cells := a.cells(row, n+1)
		for _, call := range stage.Calls {
			switch cells[call.ID] {
			case pipeline.CellAnswered:
				e.answered++
				continue
			case pipeline.CellGated:
				e.gated++
				continue
			case pipeline.CellFailed:
				e.failed++
			}
			e.missing[fmt.Sprint(chunk, call.ID)] = true
		}
	}
}

// counts compares the sums, and names what is missing.
func (a *Auditor) counts(j *job, r pipeline.Result, e ends, chunks int) {
	id, all, missing := string(j.ID), chunks*a.cfg.Definition.Calls(), len(e.missing)
	a.check("P1", id, r.Counts.Cells == all, "the plan has %d cells, the result %d", all, r.Counts.Cells)
	a.check("P1", id, r.Counts.Answered == e.answered && r.Counts.Gated == e.gated, "%d cells are answered and %d gated, the result says %d and %d", e.answered, e.gated, r.Counts.Answered, r.Counts.Gated)
	a.check("P1", id, r.Counts.Failed == e.failed && r.Counts.NotAsked == missing-e.failed, "%d cells failed and %d were not asked, the result says %d and %d", e.failed, missing-e.failed, r.Counts.Failed, r.Counts.NotAsked)
	a.check("P1", id, len(r.Missing) == missing, "%d cells are missing, the result names %d", missing, len(r.Missing))
	for _, c := range r.Missing {
		a.check("P1", id, e.missing[fmt.Sprint(c.Chunk, c.Call)], "the result names chunk %d %s as missing, and it is answered", c.Chunk, c.Call)
		a.check("P4", id, !c.Failure.None() && c.Failure.Cause != "", "chunk %d %s is missing (%s), and nothing says why", c.Chunk, c.Call, c.State)
	}
	a.check("P1", id, (j.Status == pipeline.JobCompleted) == (missing == 0 && chunks > 0) || j.Status == pipeline.JobCancelled || j.Status == pipeline.JobFailed,
		"it ended %s with %d cells missing", j.Status, missing)
}

// cells are the states of a stage's cells, as its accepted body has them.
func (a *Auditor) cells(row pipeline.Task, stage int) map[string]pipeline.CellState {
	states := map[string]pipeline.CellState{}
	if stage > row.Accepted || stage > len(row.Bodies) {
		return states
	}
	item, found := a.item(row.Job, pipeline.BodyKey(row.ID, stage, row.Bodies[stage-1]))
	if !a.check("P8", row.Ref.String(), found, "the body of stage %d, which was accepted, is gone", stage) {
		return states
	}
	body, err := pipeline.Decode[pipeline.StageBody](item, "stage body")
	a.check("P8", row.Ref.String(), err == nil, "the body of stage %d cannot be read: %v", stage, err)
	for _, c := range body.Cells {
		states[c.Call] = c.State
	}
	return states
}

// feed: who read the feed to its end knows what the result says, and has taken back the rest.
func (a *Auditor) feed(j *job, r pipeline.Result) {
	id := string(j.ID)
	last := map[string]pipeline.FindingState{}
	for after := int64(0); ; {
		groups, err := a.cfg.Store.Findings(a.ctx, j.ID, after, 0)
		if !a.check("P1", id, err == nil, "its feed cannot be read: %v", err) || a.restored {
			return
		}
		for _, g := range groups {
			after = g.Seq
			for _, f := range g.Findings {
				last[f.ID] = f.State
			}
		}
		if len(groups) == 0 {
			break
		}
	}
	for _, f := range r.Findings {
		a.check("P1", id, last[f.ID] == pipeline.Confirmed, "finding %s is in the result, and the feed says %q", f.ID, last[f.ID])
		delete(last, f.ID)
	}
	for finding, state := range last {
		a.check("P1", id, state == pipeline.Withdrawn, "finding %s is not in the result, and the feed says %q", finding, state)
	}
}
