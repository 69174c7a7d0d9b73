package pipeline

import (
	"context"
	"fmt"
)

// CellState is where a cell of the plan ended.
type CellState string

// The terminal states of a cell.
const (
	CellAnswered CellState = "answered"
	CellFailed   CellState = "failed"
	CellGated    CellState = "gated"     // a stage decided that it is not needed
	CellNotAsked CellState = "not_asked" // cancelled, at the ceiling, past the deadline, task abandoned before it
)

// Cell is one entry of the plan as it ended.
type Cell struct {
	Chunk   int       `json:"chunk"`
	Call    string    `json:"call"`
	State   CellState `json:"state"`
	Key     ReplyKey  `json:"key,omitempty"` // of its reply
	Failure Failure   `json:"failure,omitzero"`
	Reused  bool      `json:"reused,omitempty"` // answered by a reply that another job had paid for
	Tries   int       `json:"tries,omitempty"`  // of the attempt that ended it; of all, where a handler's task was given up
	Cost    Money     `json:"cost,omitempty"`   // of the reply, when it was made
	Value   *float64  `json:"value,omitempty"`  // the number that the call declares
}

// StageBody is the checkpoint of one stage of one chunk.
type StageBody struct {
	Stage      int       `json:"stage"` // from 1
	Name       string    `json:"name"`
	Chunk      int       `json:"chunk"`
	Generation int64     `json:"generation"`
	Worker     string    `json:"worker"`
	Cells      []Cell    `json:"cells"`
	Findings   []Finding `json:"findings,omitempty"`
	StartedAt  Instant   `json:"started_at"`
	EndedAt    Instant   `json:"ended_at"`
}

// Answered is the cell of a call, if it was answered.
func (b StageBody) Answered(call string) (Cell, bool) {
	for _, c := range b.Cells {
		if c.Call == call {
			return c, c.State == CellAnswered
		}
	}
	return Cell{}, false
}

// ReadBody is what a row says was accepted of a stage, and nothing that a zombie left beside it.
func ReadBody(ctx context.Context, items interface {
	Item(ctx context.Context, job JobID, key string) ([]byte, error)
}, row Task, stage int,
) (StageBody, error) {
	key := BodyKey(row.ID, stage, row.Body(stage))
	body, err := items.Item(ctx, row.Job, key)
	if err != nil {
		return StageBody{}, fmt.Errorf("read %s, which was accepted: %w", key, err)
	}
	return Decode[StageBody](body, key)
}
