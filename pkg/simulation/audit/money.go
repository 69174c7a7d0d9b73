package audit

import "holdfast/pkg/pipeline"

// raise is a redrive of a task, of which the ceiling is raised once.
type raise struct {
	task       pipeline.TaskID
	generation int64
}

// Raised is by how much the ceiling may rise: nothing for a redrive that has raised it.
func (a *Auditor) Raised(ref pipeline.Ref, generation int64, amount pipeline.Money) pipeline.Money {
	j := a.jobs[ref.Job]
	if j == nil || j.raises[raise{ref.ID, generation}] {
		return 0
	}
	j.raises[raise{ref.ID, generation}] = true
	return amount
}

// Settles looks at reservations before they are closed: what a worker may still spend is nobody's to close but its own.
func (a *Auditor) Settles(by string, id pipeline.JobID, settle []pipeline.Reservation) {
	b, err := a.cfg.Store.Budget(a.ctx, id)
	if err != nil || a.restored {
		return
	}
	for _, r := range settle {
		for _, open := range b.Open {
			known := a.rows[pipeline.Ref{Job: id, ID: r.Task}]
			if open.Task != r.Task || open.Generation != r.Generation || open.Stage != r.Stage || open.Part != r.Part || known == nil {
				continue
			}
			held := known.Status == pipeline.TaskClaimed && known.Generation == r.Generation && known.ClaimedBy != by
			a.check("P3", known.Ref.String(), !held, "%s closes what %s has reserved, and may still spend, as %s spent", by, known.ClaimedBy, r.Amount)
		}
	}
}

// Short looks at what a reservation came to: if it was refused, whether others hold money that they may give back.
func (a *Auditor) Short(id pipeline.JobID, r pipeline.Reservation, b pipeline.Budget, short bool) {
	known := a.rows[pipeline.Ref{Job: id, ID: r.Task}]
	if known == nil || len(known.claims) == 0 {
		return
	}
	last := &known.claims[len(known.claims)-1]
	last.others = false
	for _, open := range b.Open {
		last.others = last.others || short && open.Task != r.Task
	}
}

// mayPay: the ceiling is raised before a row is redriven. In between nobody may die and leave a task that may not spend.
func (a *Auditor) mayPay(b *pipeline.Task) {
	j := a.jobs[b.Job]
	_, planned := a.item(b.Job, pipeline.PlanKey)
	if _, err := a.cfg.Store.Budget(a.ctx, b.Job); err != nil || j == nil || !planned || a.restored {
		return
	}
	a.check("P6", b.Ref.String(), j.raises[raise{b.ID, b.Generation}], "redriven, and the ceiling was not raised for it")
}
