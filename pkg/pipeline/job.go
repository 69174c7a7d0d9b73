package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// JobID names a job: a hash of what was submitted and how, and the number of the run.
type JobID string

// JobStatus is where a job stands.
type JobStatus string

// A job goes planned -> running <-> paused -> cancelling -> an end.
const (
	JobPlanned    JobStatus = "planned"    // split, priced, not started
	JobRunning    JobStatus = "running"    //
	JobPaused     JobStatus = "paused"     //
	JobCancelling JobStatus = "cancelling" // cancelled, its tasks are being ended
	JobCompleted  JobStatus = "completed"  // every cell answered or gated
	JobPartial    JobStatus = "partial"    // some cells are missing, or a part of the document was not read, with reasons
	JobFailed     JobStatus = "failed"     // split or finalize was given up, or too much is missing
	JobCancelled  JobStatus = "cancelled"  //
)

// Ended says that nothing changes this status but a redrive.
func (s JobStatus) Ended() bool {
	switch s {
	case JobCompleted, JobPartial, JobFailed, JobCancelled:
		return true
	}
	return false
}

// Job is the job's row. Status, Epoch, PausedAt and Deadline are what every change of it is conditional on.
type Job struct {
	ID          JobID     `json:"id"`
	Run         int       `json:"run"` // 1, or more when a cancelled or failed one was submitted again
	Tenant      string    `json:"tenant"`
	Name        string    `json:"name"` // the document's name, for people
	Status      JobStatus `json:"status"`
	Epoch       int64     `json:"epoch"`              // raised by every redrive
	Source      string    `json:"source"`             // sha256 of what was submitted
	Pipeline    string    `json:"pipeline"`           // name@version
	Fingerprint string    `json:"fingerprint"`        // blob key of the definition: what the job is pinned to
	Model       string    `json:"model"`              // name@version
	Sample      int       `json:"sample"`             // part of every reply key; 0 shares replies with other jobs
	MaxCost     Money     `json:"max_cost,omitempty"` // a ceiling below the worst case; 0 = the worst case
	Tries       int       `json:"tries,omitempty"`    // of each cell at most, by the policy of who submitted it: see TriesPerCell
	Deadline    Instant   `json:"deadline"`
	CreatedAt   Instant   `json:"created_at"`
	StartedAt   Instant   `json:"started_at,omitempty"`
	PausedAt    Instant   `json:"paused_at,omitempty"`
	CancelledAt Instant   `json:"cancelled_at,omitempty"`
	EndedAt     Instant   `json:"ended_at,omitempty"`
	Reason      Failure   `json:"reason,omitzero"`  // why it was cancelled, or failed
	Result      string    `json:"result,omitempty"` // key of the result item, names epoch and generation
	Version     int       `json:"version"`          // of the row's format
}

// FormatVersion is the format of rows and items that this program writes.
const FormatVersion = 1

// TriesPerCell is how often one cell of the job may ever be tried: what was shown before it began, whatever the policy of
// its workers says. p is for jobs that do not say it.
func (j Job) TriesPerCell(p Policy) int {
	if j.Tries > 0 {
		return j.Tries
	}
	return p.TriesPerCell()
}

// Runs says whether a task of this kind may run while the job stands so.
func (j Job) Runs(kind TaskKind) bool {
	switch kind {
	case TaskFinalize:
		return !j.Status.Ended()
	case TaskSplit:
		return j.Status == JobRunning || j.Status == JobPlanned
	default:
		return j.Status == JobRunning
	}
}

// Expired says that the job's deadline is over. A paused job has none until it is resumed.
func (j Job) Expired(now Instant) bool {
	return j.Status != JobPaused && j.Deadline != 0 && now > j.Deadline
}

// NewJobID is the id of a run of what was submitted: equal submissions have equal ids.
func NewJobID(tenant, source, fingerprint, model string, run int) JobID {
	sum := sha256.Sum256([]byte(strings.Join([]string{tenant, source, fingerprint, model}, "\x00")))
	return JobID(fmt.Sprintf("%s-%d", hex.EncodeToString(sum[:5]), run))
}
