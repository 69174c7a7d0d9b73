package pipeline

import (
	"fmt"
	"strconv"
	"strings"
)

// TaskKind is which step works on a task.
type TaskKind string

// The kinds of tasks.
const (
	TaskSplit    TaskKind = "split"
	TaskWork     TaskKind = "work"
	TaskFinalize TaskKind = "finalize"
)

// TaskID names a task within its job: "split", "work#00007", "finalize#1".
type TaskID string

// SplitTask is the id of a job's split.
const SplitTask TaskID = "split"

// WorkTask is the id of the work on chunk n.
func WorkTask(n int) TaskID { return TaskID(fmt.Sprintf("work#%05d", n)) }

// FinalizeTask is the id of the finalize of an epoch: each epoch has its own row.
func FinalizeTask(epoch int64) TaskID { return TaskID(fmt.Sprintf("finalize#%d", epoch)) }

// ParseTask reads what a person calls a task of a job: a chunk's number, split, finalize, or a task's id.
func ParseTask(text string, job Job) (TaskID, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return WorkTask(n), nil
	}
	id := TaskID(text)
	switch {
	case id == SplitTask:
		return id, nil
	case text == string(TaskFinalize):
		return FinalizeTask(job.Epoch), nil
	case id.Number() >= 0 && (id.Kind() == TaskWork || id.Kind() == TaskFinalize):
		return id, nil
	}
	return "", fmt.Errorf("%q names no task; write a chunk's number, split, or finalize", Cut(text, 60))
}

// Kind is the kind of task that id names.
func (id TaskID) Kind() TaskKind {
	kind, _, _ := strings.Cut(string(id), "#")
	return TaskKind(kind)
}

// Number is the chunk of a work task or the epoch of a finalize; -1 if it has none.
func (id TaskID) Number() int {
	_, number, found := strings.Cut(string(id), "#")
	n, err := strconv.Atoi(number)
	if !found || err != nil {
		return -1
	}
	return n
}

// Ref names a task of a job.
type Ref struct {
	Job JobID  `json:"job"`
	ID  TaskID `json:"task"`
}

func (r Ref) String() string { return string(r.Job) + "/" + string(r.ID) }

// TaskStatus is where a task stands.
type TaskStatus string

// A task goes pending -> claimed -> pending | parked | an end.
const (
	TaskPending   TaskStatus = "pending"
	TaskClaimed   TaskStatus = "claimed"
	TaskParked    TaskStatus = "parked" // its job is paused or not started
	TaskDone      TaskStatus = "done"
	TaskAbandoned TaskStatus = "abandoned"
	TaskCancelled TaskStatus = "cancelled"
)

// Ended says that the status is terminal.
func (s TaskStatus) Ended() bool { return s == TaskDone || s == TaskAbandoned || s == TaskCancelled }

// Task is a task's row. It stays under 1 KB whatever happens: histories are records beside it.
type Task struct {
	Ref
	Tenant     string     `json:"tenant"`
	Status     TaskStatus `json:"status"`
	Generation int64      `json:"generation"`
	Attempts   int        `json:"attempts"`  // since the last accepted stage
	Deferrals  int        `json:"deferrals"` // of the task's life, until a redrive
	Losses     int        `json:"losses"`    // since the last accepted stage
	Stages     int        `json:"stages"`    // how many it has; 1 for split and finalize
	Accepted   int        `json:"accepted"`  // the last accepted stage; 0 = none
	Bodies     []int64    `json:"bodies"`    // Bodies[n-1] is the generation whose body of stage n counts

	ClaimedBy string  `json:"claimed_by,omitempty"`
	ClaimID   string  `json:"claim_id,omitempty"`
	ClaimedAt Instant `json:"claimed_at,omitempty"`
	ExpiresAt Instant `json:"expires_at,omitempty"` // of the claim
	Stage     int     `json:"stage,omitempty"`      // the running one, carried by renewals
	StageAt   Instant `json:"stage_at,omitempty"`   // when it began
	Answers   int     `json:"answers"`              // new answers since the claim, carried by renewals
	Allowed   int     `json:"allowed"`              // tries allowed so far, in blocks
	MaxTries  int     `json:"max_tries"`            // the cap of Allowed; 0 = the task sends none

	ReadyAt Instant `json:"ready_at"` // not before
	DueAt   Instant `json:"due_at"`   // when the reaper looks at it next; 0 = not in the due index
	Ring    int64   `json:"ring"`     // number of the last ring; never goes back
	Rings   int     `json:"rings"`    // rings since the last claim

	EndedBy string  `json:"ended_by,omitempty"` // the ender whose record of the last attempt counts
	Reason  Failure `json:"reason,omitzero"`    // the last one; the rest are in the records
	Buried  bool    `json:"buried,omitempty"`   // abandoned, and its dead letter was sent

	Format int `json:"-"` // of a row that a newer version wrote; 0 of all others
}

// Newer is the error about a row that a newer version wrote, which nobody here may change; nil for all others.
func (t Task) Newer() error {
	if t.Format <= FormatVersion {
		return nil
	}
	return fmt.Errorf("%s has format %d, and this program knows %d: %w; it is left alone, update what runs this", t.Ref, t.Format, FormatVersion, ErrNewer)
}

// Message is the bell for the row as it stands.
func (t Task) Message() Message {
	return Message{Job: t.Job, Task: t.ID, Tenant: t.Tenant, Generation: t.Generation, Ring: t.Ring}
}

// Body is the generation whose body of a stage counts; 0 if the stage is not accepted.
func (t Task) Body(stage int) int64 {
	if stage < 1 || stage > t.Accepted || stage > len(t.Bodies) {
		return 0
	}
	return t.Bodies[stage-1]
}

// DueShards is how many partitions the due index has.
const DueShards = 4

// DueShard is the partition of the due index that a row is in.
func (r Ref) DueShard() int {
	var h uint32 = 2166136261
	for _, c := range []byte(r.String()) {
		h = (h ^ uint32(c)) * 16777619
	}
	return int(h % DueShards)
}

// Listed says that the row belongs in the due index: it has not ended, or its dead letter was not sent.
func (t Task) Listed() bool {
	return !t.Status.Ended() || (t.Status == TaskAbandoned && !t.Buried)
}

// Unclaimable says that the row was rung more often than a healthy one is, and never claimed since: something is
// wrong with its queue, its workers, or what they do before they claim.
func (t Task) Unclaimable(p Policy) bool { return t.Status == TaskPending && t.Rings > p.MaxRings }
