package api

import (
	"errors"
	"net/http"
	"net/url"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/triage"
)

// whyJob answers GET /jobs/{job}/why.
func (r *request) whyJob() (any, error) {
	job, err := r.job()
	if err != nil {
		return nil, err
	}
	return r.system.Triage.WhyJob(r.ctx, job.ID)
}

// whyTask answers GET /jobs/{job}/why/{task}.
func (r *request) whyTask() (any, error) {
	job, err := r.job()
	if err != nil {
		return nil, err
	}
	text := r.event.PathParameters["task"]
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	task, err := pipeline.ParseTask(text, job)
	if err != nil {
		return nil, bad("%v", err)
	}
	story, err := r.system.Triage.Why(r.ctx, job.ID, task)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil, refuse(http.StatusNotFound, "job %s has no %s; it is %s", job.ID, task, job.Status)
	}
	return story, err
}

// redriving is which tasks get their attempts back, and what that may cost.
type redriving struct {
	Tasks   []string `json:"tasks"`    // chunks' numbers; none = all that have cells missing
	MaxCost float64  `json:"max_cost"` // dollars: the job's ceiling afterwards, at most; 0 = what it may need
	DryRun  bool     `json:"dry_run"`  // only tell what it would give back
}

// redrive answers POST /jobs/{job}/redrive.
func (r *request) redrive() (any, error) {
	job, err := r.job()
	if err != nil {
		return nil, err
	}
	var wanted redriving
	if err := r.decode(&wanted); err != nil {
		return nil, err
	}
	var tasks []pipeline.TaskID
	for _, text := range wanted.Tasks {
		task, err := pipeline.ParseTask(text, job)
		if err != nil {
			return nil, bad("%v", err)
		}
		tasks = append(tasks, task)
	}
	most, err := r.ceiling(wanted.MaxCost)
	if err != nil {
		return nil, err
	}
	switch {
	case wanted.DryRun:
		return r.system.Triage.Preview(r.ctx, job.ID, tasks...)
	case most > 0:
		return r.system.Triage.RedriveWithin(r.ctx, job.ID, most, tasks...)
	}
	return r.system.Triage.Redrive(r.ctx, job.ID, tasks...)
}

// deadLetters answers GET /dead-letters: those about rows of the caller's. What is about no row is nobody's.
func (r *request) deadLetters() (any, error) {
	all, err := r.system.Triage.DeadLetters(r.ctx)
	if err != nil {
		return nil, err
	}
	mine := []triage.Letter{}
	for _, letter := range all {
		if letter.Row != nil && letter.Row.Tenant == r.tenant {
			mine = append(mine, letter)
		}
	}
	return map[string][]triage.Letter{"dead_letters": mine}, nil
}
