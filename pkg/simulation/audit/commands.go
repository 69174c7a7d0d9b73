package audit

import "holdfast/pkg/pipeline"

// Told looks at what a person is told of a command: the job had that status at some time since the command began.
func (a *Auditor) Told(told pipeline.Job, began pipeline.Instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.jobs[told.ID]
	if j == nil || a.restored {
		return
	}
	was := j.Status == told.Status || j.left[told.Status] >= began
	a.check("P9", string(told.ID), was, "a person is told that it is %s; since the command began, at %s, it was %s", told.Status, began, j.Status)
}

// reopened looks at a job that was redriven: it has a deadline of its own, and stays paused if it was.
func (a *Auditor) reopened(w JobWrite, j *job) {
	id := string(j.ID)
	a.check("P6", id, w.After.Deadline > w.At || w.Before.Deadline == 0, "redriven at %s, and its deadline was over at %s", w.At, w.After.Deadline)
	a.check("P9", id, w.Before.Status != pipeline.JobPaused || w.After.Status == pipeline.JobPaused, "a job that a person has paused is %s after a redrive", w.After.Status)
	if w.After.Status == pipeline.JobPaused {
		j.shifts = w.At
	}
}
