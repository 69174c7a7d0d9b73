package pipeline

import (
	"encoding/json"
	"fmt"
)

// Record is what is left of one attempt: how it ended and why, whoever wrote it. An attempt may have two (its worker
// ended it while the reaper expired it); the row's ended_by names the one that counts.
type Record struct {
	Task       TaskID       `json:"task"`
	Generation int64        `json:"generation"`
	Attempt    int          `json:"attempt"`            // of the stage, as counted at the claim
	Ender      string       `json:"ender"`              // the claim id, or "expired", or "closed"
	Previous   string       `json:"previous,omitempty"` // ended_by of the row when this attempt was claimed
	Worker     string       `json:"worker"`
	Stage      int          `json:"stage"`
	ClaimedAt  Instant      `json:"claimed_at"`
	EndedAt    Instant      `json:"ended_at"`
	Outcome    Outcome      `json:"outcome"`
	Failure    Failure      `json:"failure,omitzero"`
	Status     TaskStatus   `json:"status"`            // what the row became
	Counted    bool         `json:"counted"`           // used up one of the attempts
	Tries      int          `json:"tries"`             // by name: those in the journal
	Charged    int          `json:"charged"`           // tries that count against the task's cap: sent, and not free
	Unnamed    int          `json:"unnamed,omitempty"` // tries known by number only: those of a killed worker's last seconds
	Answers    int          `json:"answers"`           // new ones
	Cost       Money        `json:"cost"`
	Usage      Usage        `json:"usage"`
	Failures   map[Kind]int `json:"failures,omitempty"` // tries that failed, by kind
}

// Try is one sending of a call.
type Try struct {
	Call      string  `json:"call"`
	Number    int     `json:"n"` // within the attempt, from 1
	At        Instant `json:"at"`
	Millis    int64   `json:"ms"`
	Failure   Failure `json:"failure,omitzero"`
	Reask     bool    `json:"reask,omitempty"` // the prompt said what was wrong with the answer before
	Usage     Usage   `json:"usage,omitzero"`
	Cost      Money   `json:"cost,omitempty"`
	Unsure    bool    `json:"unsure,omitempty"` // perhaps billed, nobody knows
	RequestID string  `json:"request_id,omitempty"`
	Ran       bool    `json:"ran,omitempty"` // a handler's try that was begun: it counts however it ended
}

// Free says that the try was not billed and gives its allowance back.
func (t Try) Free() bool { return t.Failure.Kind.Free() && !t.Ran }

// Add adds tries of the journal to the record's sums.
func (r *Record) Add(tries ...Try) {
	for _, t := range tries {
		r.Tries++
		r.Cost += t.Cost
		r.Usage.Input += t.Usage.Input
		r.Usage.Output += t.Usage.Output
		r.Usage.CacheRead += t.Usage.CacheRead
		r.Usage.CacheWrite += t.Usage.CacheWrite
		if !t.Free() {
			r.Charged++
		}
		if !t.Failure.None() {
			if r.Failures == nil {
				r.Failures = map[Kind]int{}
			}
			r.Failures[t.Failure.Kind]++
		}
	}
}

// UnnamedBeside is how many tries are still known by number only beside so many that the journal names: a worker that
// lost its claim and lives may have written its last ones down after the record was made.
func (r Record) UnnamedBeside(named int) int {
	return max(0, min(r.Unnamed, r.Tries+r.Unnamed-named))
}

// Journal is one page of an attempt's tries.
type Journal struct {
	Task       TaskID `json:"task"`
	Generation int64  `json:"generation"`
	Worker     string `json:"worker"`
	Page       int    `json:"page"`
	Tries      []Try  `json:"tries"`
}

// Cancellation records at which stage a task was when its job was cancelled.
type Cancellation struct {
	Task   TaskID  `json:"task"`
	Label  string  `json:"label"` // "cancelled-at-stage-3"
	Stage  int     `json:"stage"`
	Saved  int     `json:"saved"` // stages that were accepted before
	At     Instant `json:"at"`
	Worker string  `json:"worker,omitempty"`
	Reason Failure `json:"reason,omitzero"`
}

// Keys of the items beside a job's rows. Digits are padded so that order is order in time.
const (
	ModelKey       = "model"    // the ModelInfo that the job is priced with
	PlanKey        = "plan"     // the Plan that was shown and is enforced
	ManifestKey    = "manifest" // the Manifest that the split found
	TasksPrefix    = "task#"    // of all that is stored beside tasks' rows: bodies, records, journals, cancellations
	KeptKey        = "kept"     // how often its replies were kept from their end: see package reap
	BodyInfix      = "#stage#"  // of the bodies of stages
	recordInfix    = "#attempt#"
	cancelledInfix = "#cancelled"
)

// BodyKey is the item key of a stage's body under a generation.
func BodyKey(task TaskID, stage int, generation int64) string {
	return fmt.Sprintf("task#%s%s%02d#gen#%06d", task, BodyInfix, stage, generation)
}

// RecordsPrefix is where the records and journals of a task are.
func RecordsPrefix(task TaskID) string { return fmt.Sprintf("task#%s%s", task, recordInfix) }

// RecordKey is the item key of an attempt's record.
func RecordKey(task TaskID, generation int64, ender string) string {
	return fmt.Sprintf("%s%06d#end#%s", RecordsPrefix(task), generation, ender)
}

// JournalKey is the item key of a page of tries.
func JournalKey(task TaskID, generation int64, page int) string {
	return fmt.Sprintf("%s%06d#tries#%04d", RecordsPrefix(task), generation, page)
}

// CancellationKey is the item key of a task's cancellation.
func CancellationKey(task TaskID) string { return fmt.Sprintf("task#%s%s", task, cancelledInfix) }

// ResultKey is the blob key of a job's result.
func ResultKey(job JobID, epoch, generation int64) string {
	return fmt.Sprintf("result/%s/%04d-%06d.json", job, epoch, generation)
}

// DocumentKey is the blob key of a text, by the hash of its bytes.
func DocumentKey(hash string) string { return "document/" + hash + ".txt" }

// SourceKey is the blob key of what was submitted, by the hash of its bytes.
func SourceKey(hash string) string { return "source/" + hash }

// Encode is the value as an item's body or a message's: JSON. It is for values that always encode.
func Encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // only a type of ours that cannot be encoded gets here
	}
	return body
}

// Decode reads what Encode wrote; what says which item it was.
func Decode[T any](body []byte, what string) (T, error) {
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		return v, fmt.Errorf("decode %s: %w", what, err)
	}
	return v, nil
}

// DecodeMessage reads a message's body: strict, since what is not ours goes to the dead letters. ErrNewer is the error
// about one that a newer version sent: it is ours, and somebody else's to read.
func DecodeMessage(body []byte) (Message, error) {
	m, err := Decode[Message](body, "message")
	if err != nil {
		return Message{}, err
	}
	if m.Format > FormatVersion {
		return Message{}, fmt.Errorf("decode message: its format is %d, and this program knows %d: %w", m.Format, FormatVersion, ErrNewer)
	}
	switch m.Task.Kind() {
	case TaskSplit, TaskWork, TaskFinalize:
	default:
		return Message{}, fmt.Errorf("decode message: %q names no task", Cut(string(m.Task), 60))
	}
	if m.Job == "" || m.Generation < 0 || m.Ring < 0 {
		return Message{}, fmt.Errorf("decode message: job %q, generation %d, ring %d make no sense", Cut(string(m.Job), 60), m.Generation, m.Ring)
	}
	return m, nil
}

// NewCancellation is the record that a task was cancelled at the stage after its last accepted one.
func NewCancellation(row Task, worker string, reason Failure, now Instant) Cancellation {
	stage := min(row.Accepted+1, max(1, row.Stages))
	return Cancellation{
		Task: row.ID, Label: fmt.Sprintf("cancelled-at-stage-%d", stage), Stage: stage, Saved: row.Accepted,
		At: now, Worker: worker, Reason: reason,
	}
}
