package finalize

import (
	"context"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// stageBodies are the accepted bodies of each chunk, by stage - 1.
type stageBodies [][]pipeline.StageBody

func (b stageBodies) all() []pipeline.StageBody {
	var all []pipeline.StageBody
	for _, bodies := range b {
		all = append(all, bodies...)
	}
	return all
}

// bodies reads what each row says was accepted, and nothing that a zombie left beside it.
func (s *stored) bodies(ctx context.Context, state State) (stageBodies, error) {
	all := make(stageBodies, len(state.Work))
	for n, row := range state.Work {
		for stage := 1; stage <= row.Accepted; stage++ {
			key := pipeline.BodyKey(row.ID, stage, row.Body(stage))
			body, err := s.Item(ctx, row.Job, key)
			if err != nil {
				return nil, fmt.Errorf("read %s, which was accepted: %w", key, err)
			}
			decoded, err := pipeline.Decode[pipeline.StageBody](body, key)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errCorrupt, err)
			}
			all[n] = append(all[n], decoded)
		}
	}
	return all, nil
}

// enumerate takes every cell of the plan to a terminal state: chunk by chunk, in the definition's order.
func enumerate(d pipeline.Definition, job pipeline.Job, state State, bodies stageBodies) []pipeline.Cell {
	var cells []pipeline.Cell
	for n, chunk := range state.Manifest.Chunks {
		for i, stage := range d.Stages {
			var ended map[string]pipeline.Cell
			if i < len(bodies[n]) {
				ended = byCall(bodies[n][i].Cells)
			}
			for _, call := range stage.Calls {
				cell, ok := ended[call.ID]
				if !ok {
					cell = notAsked(job, state.Work[n], stage.Name, call.ID, ended != nil)
				}
				cell.Chunk = chunk.Index
				cells = append(cells, cell)
			}
		}
	}
	return cells
}

func byCall(cells []pipeline.Cell) map[string]pipeline.Cell {
	index := make(map[string]pipeline.Cell, len(cells))
	for _, c := range cells {
		index[c.Call] = c
	}
	return index
}

// notAsked is a cell that no accepted stage names, with the reason that its task ended for.
func notAsked(job pipeline.Job, row pipeline.Task, stage, call string, accepted bool) pipeline.Cell {
	reason := row.Reason
	switch {
	case accepted:
		reason = pipeline.Fail(pipeline.Broken, "the checkpoint of its stage does not name it")
	case reason.None() && row.Status == pipeline.TaskCancelled && !job.Reason.None():
		reason = job.Reason
	case reason.None():
		reason = pipeline.Fail(pipeline.Broken, "its task is %s without a reason", row.Status)
	}
	if reason.Stage == "" {
		reason.Stage = stage
	}
	return pipeline.Cell{Call: call, State: pipeline.CellNotAsked, Failure: reason}
}

func count(cells []pipeline.Cell) pipeline.Counts {
	c := pipeline.Counts{Cells: len(cells)}
	c.Add(cells...)
	asked := map[pipeline.ReplyKey]bool{}
	for _, cell := range cells {
		if cell.State == pipeline.CellAnswered && !cell.Reused && cell.Key != "" {
			asked[cell.Key] = true
		}
	}
	c.Asked = len(asked)
	return c
}

func missing(cells []pipeline.Cell) []pipeline.Cell {
	var missing []pipeline.Cell
	for _, cell := range cells {
		if cell.State != pipeline.CellAnswered && cell.State != pipeline.CellGated {
			missing = append(missing, cell)
		}
	}
	return missing
}

// verdict is the end of the job, and why.
func verdict(d pipeline.Definition, job pipeline.Job, state State, r pipeline.Result) (pipeline.JobStatus, pipeline.Failure) {
	lost := r.Counts.Failed + r.Counts.NotAsked
	switch {
	case job.Status == pipeline.JobCancelling:
		return pipeline.JobCancelled, job.Reason
	case state.Split.Status != pipeline.TaskDone:
		return pipeline.JobFailed, splitReason(state.Split)
	case r.Counts.Cells == 0:
		return pipeline.JobFailed, pipeline.Fail(pipeline.Invalid, "the document has no chunk to ask about")
	case lost == 0 && len(r.Manifest.Unread) > 0:
		return pipeline.JobPartial, unreadReason(r.Manifest.Unread)
	case lost == 0:
		return pipeline.JobCompleted, pipeline.Failure{}
	case float64(lost) > d.Tolerance*float64(r.Counts.Cells):
		return pipeline.JobFailed, missingReason(r)
	default:
		return pipeline.JobPartial, missingReason(r)
	}
}

func splitReason(split pipeline.Task) pipeline.Failure {
	if split.Reason.None() {
		return pipeline.Fail(pipeline.Broken, "the split of the document is %s", split.Status)
	}
	return split.Reason
}

// unreadReason says that the document was not judged in full though every cell was answered.
func unreadReason(parts []pipeline.Unread) pipeline.Failure {
	return pipeline.Fail(pipeline.Invalid, "not judged in full: %s", pipeline.NotRead(parts))
}

// missingReason says how much is missing, and names the commonest reason: its kind, and its own cause.
func missingReason(r pipeline.Result) pipeline.Failure {
	worst := pipeline.Gaps(r.Missing)[0]
	of := ""
	if worst.Cells < len(r.Missing) {
		of = fmt.Sprintf(", %s of them", pipeline.Count(worst.Cells))
	}
	if worst.Varied {
		of += ", such as"
	}
	f := pipeline.Fail(worst.Kind, "%s of %s cells are missing%s: %s", pipeline.Count(len(r.Missing)), pipeline.Count(r.Counts.Cells), of, worst.Cause)
	for _, cell := range r.Missing {
		if cell.Failure.Kind == worst.Kind && cell.Failure.Cause == worst.Cause {
			f.Code = cell.Failure.Code
			break
		}
	}
	return f
}

// taskEnds is how the split and each chunk's work ended.
func (s *stored) taskEnds(ctx context.Context, state State) ([]pipeline.TaskEnd, error) {
	var ends []pipeline.TaskEnd
	for _, row := range append([]pipeline.Task{state.Split}, state.Work...) {
		end := pipeline.TaskEnd{Task: row.ID, Status: row.Status, Accepted: row.Accepted, Stages: row.Stages, Reason: row.Reason}
		if row.Status == pipeline.TaskDone {
			end.Reason = pipeline.Failure{} // of an attempt before the one that did it
		}
		if row.Status == pipeline.TaskCancelled {
			label, err := s.label(ctx, row)
			if err != nil {
				return nil, err
			}
			end.Label = label
		}
		ends = append(ends, end)
	}
	return ends, nil
}

func (s *stored) label(ctx context.Context, row pipeline.Task) (string, error) {
	key := pipeline.CancellationKey(row.ID)
	body, err := s.Item(ctx, row.Job, key)
	if errors.Is(err, pipeline.ErrNotFound) {
		return pipeline.NewCancellation(row, "", row.Reason, 0).Label, nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", key, err)
	}
	c, err := pipeline.Decode[pipeline.Cancellation](body, key)
	return c.Label, err
}

// attempts are the records that count, of every task of the job: split and work first, then the finalizes before.
func (s *stored) attempts(ctx context.Context, epochs int64, state State) ([]pipeline.Record, error) {
	rows := append([]pipeline.Task{state.Split}, state.Work...)
	for epoch := int64(1); epoch <= epochs; epoch++ {
		if row, ok := state.Finalize[pipeline.FinalizeTask(epoch)]; ok {
			rows = append(rows, row)
		}
	}
	var attempts []pipeline.Record
	for _, row := range rows {
		h, err := pipeline.ReadHistory(ctx, s, row.Ref)
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, row.Counting(h.Records)...)
	}
	return attempts, nil
}

// spend adds the attempts up. A try that was cut off may have been billed and sent again: it is unsure. The last
// seconds of a killed worker are in no journal, but what was answered then is in the cells: the cost is at least theirs.
func spend(attempts []pipeline.Record, cells []pipeline.Cell) pipeline.Spend {
	s := pipeline.Spend{Failures: map[pipeline.Kind]int{}}
	for _, r := range attempts {
		s.Tries += r.Tries + r.Unnamed
		s.Unnamed += r.Unnamed
		s.Cost += r.Cost
		s.Usage.Input += r.Usage.Input
		s.Usage.Output += r.Usage.Output
		s.Usage.CacheRead += r.Usage.CacheRead
		s.Usage.CacheWrite += r.Usage.CacheWrite
		for kind, n := range r.Failures {
			s.Failures[kind] += n
		}
	}
	s.Unsure = s.Failures[pipeline.Ambiguous]
	s.Cost = max(s.Cost, paid(cells))
	return s
}

// paid is what the answers that this job got itself cost: cells that share a key share one answer, paid once.
func paid(cells []pipeline.Cell) (cost pipeline.Money) {
	seen := map[pipeline.ReplyKey]bool{}
	for _, cell := range cells {
		if cell.State != pipeline.CellAnswered || cell.Reused || seen[cell.Key] {
			continue
		}
		seen[cell.Key] = cell.Key != ""
		cost += cell.Cost
	}
	return cost
}
