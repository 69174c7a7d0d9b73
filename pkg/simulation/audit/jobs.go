package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

// job is what the auditor remembers of a job.
type job struct {
	pipeline.Job
	moved     pipeline.Instant // when its status or deadline changed last
	cancelled pipeline.Instant // when a cancel was accepted
	paused    pipeline.Instant // since when it is paused; 0 = it is not
	shifts    pipeline.Instant // since when its deadline waits for a resume
	ended     pipeline.Instant
	deadlines int           // how many it had
	ends      map[int64]int // by epoch
	billed    pipeline.Money
	budgeted  pipeline.Money // its ceiling as it stands
	raised    pipeline.Money
	opened    pipeline.Money
	ceiling   bool // money ran short
	feed      map[string]said
	groups    map[group]bool
	left      map[pipeline.JobStatus]pipeline.Instant // when it had a status last
	raises    map[raise]bool
}

func (j *job) was(s pipeline.JobStatus) bool { return j.Status == s }

func (j *job) status() pipeline.JobStatus {
	if j == nil {
		return "gone"
	}
	return j.Status
}

func (j *job) splitFailed(a *Auditor) bool {
	split := a.rows[pipeline.Ref{Job: j.ID, ID: pipeline.SplitTask}]
	return split != nil && split.Status.Ended() && split.Status != pipeline.TaskDone
}

// JobWrite is one write of a job's row.
type JobWrite struct {
	Op            Op
	By            string
	At            pipeline.Instant
	Seen          *pipeline.Job // that it is made on
	Before, After pipeline.Job
	Err           error
}

// moves are the changes of a job's status that the design has.
var moves = map[pipeline.JobStatus][]pipeline.JobStatus{
	pipeline.JobPlanned:    {pipeline.JobRunning, pipeline.JobCancelling, pipeline.JobFailed, pipeline.JobPartial},
	pipeline.JobRunning:    {pipeline.JobPaused, pipeline.JobCancelling, pipeline.JobCompleted, pipeline.JobPartial, pipeline.JobFailed},
	pipeline.JobPaused:     {pipeline.JobRunning, pipeline.JobCancelling, pipeline.JobCompleted, pipeline.JobPartial, pipeline.JobFailed},
	pipeline.JobCancelling: {pipeline.JobCancelled, pipeline.JobFailed},
}

// Job looks at one write of a job's row.
func (a *Auditor) Job(w JobWrite) {
	a.step++
	id := string(w.After.ID)
	if w.Err != nil {
		a.check("P5", id, w.Before == w.After, "a refused write changed the job: %s -> %s", w.Before.Status, w.After.Status)
		return
	}
	a.open(w.After)
	if w.Before.ID == "" {
		a.check("P2", id, w.Op == Put, "%s brought a job to life", w.Op)
		a.jobs[w.After.ID] = &job{Job: w.After, moved: w.At, deadlines: 1, ends: map[int64]int{}, feed: map[string]said{}, groups: map[group]bool{}, left: map[pipeline.JobStatus]pipeline.Instant{}, raises: map[raise]bool{}}
		return
	}
	j := a.jobs[w.After.ID]
	if j == nil || w.Before == w.After {
		return
	}
	a.check("P5", id, w.Before == j.Job, "the job changed beside the writes that were seen: %s -> %s", j.Status, w.Before.Status)
	if s := w.Seen; s != nil {
		same := s.Epoch == w.Before.Epoch && s.Status == w.Before.Status && s.PausedAt == w.Before.PausedAt && s.Deadline == w.Before.Deadline
		a.check("P5", id, same, "%s by %s is made on a job that was %s in epoch %d, paused at %s, until %s; it is %s in %d, %s, %s",
			w.Op, w.By, s.Status, s.Epoch, s.PausedAt, s.Deadline, w.Before.Status, w.Before.Epoch, w.Before.PausedAt, w.Before.Deadline)
	}
	a.check("P2", id, w.Before.Epoch == w.After.Epoch || w.Op == Redrive && w.After.Epoch == w.Before.Epoch+1, "%s set the epoch from %d to %d", w.Op, w.Before.Epoch, w.After.Epoch)
	a.check("P5", id, w.Before.Fingerprint == w.After.Fingerprint && w.Before.Model == w.After.Model && w.Before.Tries == w.After.Tries, "%s changed what the job is pinned to", w.Op)
	a.check("P5", id, !w.Before.Status.Ended() || w.Op == Redrive, "%s by %s changed a job that had ended %s", w.Op, w.By, w.Before.Status)
	if w.Before.Status != w.After.Status {
		a.moved(w, j)
	}
	if w.Op == Redrive {
		a.reopened(w, j)
	}
	if w.Before.Deadline != w.After.Deadline {
		j.deadlines++
		j.moved = w.At
		begins := w.Before.Status == pipeline.JobPlanned || w.Op == Redrive // with the time that the policy has by then
		a.check("P5", id, w.After.Deadline > w.Before.Deadline || begins && w.After.Deadline > w.At, "%s brought the deadline forward: %s -> %s", w.Op, w.Before.Deadline, w.After.Deadline)
	}
	j.Job = w.After
	a.check("P5", id, j.Status.Ended() || j.EndedAt == 0 && j.Result == "", "it is %s, and says that it ended at %s with %q", j.Status, j.EndedAt, j.Result)
	if w.After.Status.Ended() && !w.Before.Status.Ended() {
		a.jobEnded(w, j)
	}
}

// open: the reaper finds a job as long as it has not ended.
func (a *Auditor) open(j pipeline.Job) {
	listed := false
	for cursor := ""; ; {
		jobs, next, err := a.cfg.Store.OpenJobs(a.ctx, cursor)
		a.check("P10", string(j.ID), err == nil, "the open jobs cannot be listed: %v", err)
		listed = listed || slices.ContainsFunc(jobs, func(o pipeline.Job) bool { return o.ID == j.ID })
		if cursor = next; err != nil || next == "" {
			break
		}
	}
	a.check("P10", string(j.ID), listed != j.Status.Ended(), "the job is %s, and among the open ones: %v", j.Status, listed)
}

func (a *Auditor) moved(w JobWrite, j *job) {
	id := string(w.After.ID)
	j.moved, j.left[w.Before.Status] = w.At, w.At
	if w.Op == Redrive {
		from := w.Before.Status
		a.check("P5", id, from != pipeline.JobCancelled && from != pipeline.JobCancelling && from != pipeline.JobCompleted, "a job that is %s was redriven", from)
		a.check("P5", id, !w.After.Status.Ended(), "redriven, and %s", w.After.Status)
		j.ended, j.cancelled = 0, 0 // a person wants it after all: one that failed while it was being cancelled
	} else {
		ok := false
		for _, to := range moves[w.Before.Status] {
			ok = ok || to == w.After.Status
		}
		a.check("P5", id, ok, "%s by %s moved the job from %s to %s", w.Op, w.By, w.Before.Status, w.After.Status)
	}
	if w.Before.Status == pipeline.JobPaused && w.After.Status == pipeline.JobRunning && w.Op != Redrive && j.shifts != 0 {
		slept, shifted := w.At.Sub(j.shifts), w.After.Deadline.Sub(w.Before.Deadline)
		person := a.worker(w.By) // whose resume may have been on its way for long
		a.check("P6", id, shifted >= slept-30*time.Second || person.late || person.frozen >= j.shifts, "it was paused for %v, and has %v more for it", slept, shifted)
		a.check("P7", id, shifted <= slept+5*time.Minute, "it was paused for %v, and has %v more for it", slept, shifted)
	}
	j.paused = 0
	switch w.After.Status {
	case pipeline.JobCancelling:
		j.cancelled = w.At
	case pipeline.JobPaused:
		j.paused, j.shifts = w.At, w.At
	}
}

// jobEnded looks at the end of a job: once in each epoch, everything has ended, and the result says all of it.
func (a *Auditor) jobEnded(w JobWrite, j *job) {
	id := string(j.ID)
	j.ended = w.At
	j.ends[j.Epoch]++
	a.check("P2", id, j.ends[j.Epoch] == 1, "epoch %d of the job ended %d times", j.Epoch, j.ends[j.Epoch])
	a.check("P10", id, j.EndedAt != 0, "the job has ended, and does not say when")
	grace := 6 * time.Hour
	a.check("P7", id, j.Deadline == 0 || w.At <= j.Deadline.Add(grace), "it ended %v after its deadline", w.At.Sub(j.Deadline))
	a.check("P4", id, j.Status == pipeline.JobCompleted || !j.Reason.None(), "it ended %s without a reason", j.Status)
	if j.Result == "" {
		a.check("P4", id, j.Status == pipeline.JobFailed && !j.Reason.None(), "it ended %s without a result and without a reason", j.Status)
		return
	}
	a.endedBy(w, j)
	rows, err := pipeline.AllTasks(a.ctx, a.cfg.Store, j.ID)
	if !a.check("P1", id, err == nil, "its rows cannot be read: %v", err) {
		return
	}
	byID := map[pipeline.TaskID]pipeline.Task{}
	for _, r := range rows {
		byID[r.ID] = r
		a.check("P1", id, r.Status.Ended() || r.ID.Kind() == pipeline.TaskFinalize, "it ended %s while %s is %s", j.Status, r.ID, r.Status)
	}
	a.result(j, byID)
}

// endedBy: the result is of this epoch, by who had claimed its finalize under the generation that it names.
func (a *Auditor) endedBy(w JobWrite, j *job) {
	id := string(j.ID)
	var epoch, generation int64
	_, err := fmt.Sscanf(strings.TrimPrefix(j.Result, "result/"+id+"/"), "%d-%d.json", &epoch, &generation)
	if !a.check("P2", id, err == nil && epoch == j.Epoch, "epoch %d of the job ends with the result %s", j.Epoch, j.Result) || a.restored {
		return
	}
	known := a.rows[pipeline.Ref{Job: j.ID, ID: pipeline.FinalizeTask(j.Epoch)}]
	ok := known != nil && slices.ContainsFunc(known.claims, func(c claim) bool { return c.by == w.By && c.generation == generation })
	a.check("P2", id, ok, "%s ended epoch %d under generation %d, and never claimed that of its finalize", w.By, j.Epoch, generation)
}

// raise: a redrive of one task adds no more than all of the job may cost at worst; or twice that, since a policy that was
// deployed after the plan may allow more attempts.
func (a *Auditor) raise(id pipeline.JobID, by pipeline.Money) {
	body, found := a.item(id, pipeline.PlanKey)
	plan, err := pipeline.Decode[pipeline.Plan](body, "plan")
	a.check("P3", string(id), found && err == nil && by <= 2*plan.Worst, "the ceiling is raised by %s for one task, all of the job was planned to cost %s at worst", by, plan.Worst)
}

// Money looks at a budget after a write of it.
func (a *Auditor) Money(by string, id pipeline.JobID, b pipeline.Budget, raised pipeline.Money, short bool) {
	j := a.jobs[id]
	if j == nil || a.restored {
		return
	}
	j.ceiling = j.ceiling || short
	if j.opened == 0 {
		j.opened = b.Ceiling
	}
	if raised > 0 {
		a.raise(id, raised)
	}
	j.raised += raised
	j.budgeted = b.Ceiling
	open := pipeline.Money(0)
	for _, r := range b.Open {
		open += r.Amount
		a.check("P3", string(id), r.Amount >= 0, "%s reserved %s", by, r.Amount)
	}
	a.check("P3", string(id), b.Remaining+b.Spent+open == b.Ceiling, "%s remain, %s are spent, %s reserved: together not the ceiling of %s", b.Remaining, b.Spent, open, b.Ceiling)
	a.check("P3", string(id), b.Remaining >= 0 && b.Spent <= b.Ceiling, "%s spent of %s, %s remain", b.Spent, b.Ceiling, b.Remaining)
	a.check("P3", string(id), b.Ceiling <= j.opened+j.raised, "the ceiling is %s; it was %s, and raised by %s", b.Ceiling, j.opened, j.raised)
}
