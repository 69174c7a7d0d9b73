package finalize

import (
	"context"

	"holdfast/pkg/pipeline"
)

// ran is what the tries of one cell came to.
type ran struct {
	tries int
	cost  pipeline.Money
}

// markRan tells what a handler worked on in vain from what nobody began: a cell of an abandoned task that has tries
// failed, with all of them and their cost. A model's cells need none of this: their stage is accepted without them.
func (s *stored) markRan(ctx context.Context, d pipeline.Definition, state State, cells []pipeline.Cell) error {
	if d.Handler == "" {
		return nil
	}
	known := map[int]map[string]ran{}
	for n, row := range state.Work {
		if row.Status != pipeline.TaskAbandoned {
			continue
		}
		h, err := pipeline.ReadHistory(ctx, s, row.Ref)
		if err != nil {
			return err
		}
		known[n] = ranOf(d, row, h)
	}
	for i := range cells {
		c := &cells[i]
		if r := known[c.Chunk][c.Call]; c.State == pipeline.CellNotAsked && r.tries > 0 {
			c.State, c.Tries, c.Cost = pipeline.CellFailed, r.tries, r.cost
		}
	}
	return nil
}

// ranOf is the tries of a task by call. Those that are known by number only are the call's if there is only one.
func ranOf(d pipeline.Definition, row pipeline.Task, h pipeline.History) map[string]ran {
	all := map[string]ran{}
	named := map[int64]int{} // by generation
	for _, j := range h.Journals {
		named[j.Generation] += len(j.Tries)
		for _, t := range j.Tries {
			r := all[t.Call]
			all[t.Call] = ran{r.tries + 1, r.cost + t.Cost}
		}
	}
	if d.Calls() != 1 {
		return all
	}
	only := d.Stages[0].Calls[0].ID
	for _, record := range row.Counting(h.Records) {
		r := all[only]
		all[only] = ran{r.tries + record.UnnamedBeside(named[record.Generation]), r.cost}
	}
	return all
}
