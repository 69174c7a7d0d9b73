package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// table is a store that is charged for every request as pkg/dynamostore's is, and throttled over the limit.
type table struct {
	pipeline.Store // in memory; its calls are counted
	*meter
	stands pipeline.Budgets // the same, to see how large a row is
}

func rowsOf(job pipeline.JobID) string        { return "rows#" + string(job) }
func checkpointsOf(job pipeline.JobID) string { return "checkpoints#" + string(job) }
func dueOf(ref pipeline.Ref) string           { return fmt.Sprintf("due#%d", ref.DueShard()) }

func writes(partition string, n float64) part { return part{partition, units{writes: n}} }
func reads(partition string, n float64) part  { return part{partition, units{reads: n}} }

// onRow is one update of a task's row. index is what it costs in the due index if it lands: 2 if it moves the row's
// due_at, 1 if it takes the row in or out.
func onRow[T any](t *table, op string, ref pipeline.Ref, index float64, write func() (T, error)) (T, error) {
	if err := t.charge(op, writes(rowsOf(ref.Job), 1)); err != nil { // rows stay under 1 KB, which the tests check
		var none T
		return none, err
	}
	row, err := write()
	if err == nil && index > 0 {
		t.index(writes(dueOf(ref), index))
	}
	return row, err
}

func indexOf(ended bool) float64 {
	if ended {
		return 1
	}
	return 2
}

func (t *table) Submit(ctx context.Context, job pipeline.Job, split pipeline.Task) (pipeline.Job, bool, error) {
	err := t.charge("Submit", writes(rowsOf(job.ID), 2*written(jobSize(job))+2*written(rowSize(split))),
		writes("due#open", 1), writes(dueOf(split.Ref), 1), writes("tenant#"+job.Tenant, 2))
	if err != nil {
		return pipeline.Job{}, false, err
	}
	return t.Store.Submit(ctx, job, split)
}

func (t *table) Job(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) {
	if err := t.charge("Job", reads(rowsOf(id), 1)); err != nil {
		return pipeline.Job{}, err
	}
	return t.Store.Job(ctx, id)
}

func (t *table) SetJob(ctx context.Context, seen, next pipeline.Job) (pipeline.Job, error) {
	if err := t.charge("SetJob", writes(rowsOf(next.ID), written(jobSize(next))), writes("due#open", 1)); err != nil {
		return pipeline.Job{}, err
	}
	return t.Store.SetJob(ctx, seen, next)
}

func (t *table) OpenJobs(ctx context.Context, cursor string) ([]pipeline.Job, string, error) {
	jobs, next, err := t.Store.OpenJobs(ctx, cursor)
	parts := []part{reads("due#open", readEventually(100*len(jobs)))}
	for _, job := range jobs {
		parts = append(parts, reads(rowsOf(job.ID), readConsistently(jobSize(job))))
	}
	if charged := t.charge("OpenJobs", parts...); charged != nil {
		return nil, "", charged
	}
	return jobs, next, err
}

func (t *table) PutTasks(ctx context.Context, rows []pipeline.Task) ([]pipeline.Task, error) {
	for i, row := range rows { // a put each: a batch takes no conditions
		index := 0.0
		if row.Listed() {
			index = 1
		}
		_, err := onRow(t, "PutTasks", row.Ref, index, func() ([]pipeline.Task, error) { return t.Store.PutTasks(ctx, rows[i:i+1]) })
		switch {
		case errors.Is(err, pipeline.ErrBusy):
			return rows[i:], nil
		case err != nil:
			return rows[i:], err
		}
	}
	return nil, nil
}

func (t *table) Task(ctx context.Context, ref pipeline.Ref) (pipeline.Task, error) {
	if err := t.charge("Task", reads(rowsOf(ref.Job), 1)); err != nil {
		return pipeline.Task{}, err
	}
	return t.Store.Task(ctx, ref)
}

func (t *table) Tasks(ctx context.Context, job pipeline.JobID, cursor string) ([]pipeline.Task, string, error) {
	rows, next, err := t.Store.Tasks(ctx, job, cursor)
	if charged := t.charge("Tasks", reads(rowsOf(job), readConsistently(rowsSize(rows)))); charged != nil {
		return nil, "", charged
	}
	return rows, next, err
}

func (t *table) Claim(ctx context.Context, w pipeline.ClaimWrite) (pipeline.Task, error) {
	return onRow(t, "Claim", w.Ref, 2, func() (pipeline.Task, error) { return t.Store.Claim(ctx, w) })
}

func (t *table) Renew(ctx context.Context, w pipeline.RenewWrite) (pipeline.Task, error) {
	return onRow(t, "Renew", w.Ref, 0, func() (pipeline.Task, error) { return t.Store.Renew(ctx, w) })
}

func (t *table) Checkpoint(ctx context.Context, w pipeline.CheckpointWrite) (pipeline.Task, error) {
	return onRow(t, "Checkpoint", w.Ref, 0, func() (pipeline.Task, error) { return t.Store.Checkpoint(ctx, w) })
}

func (t *table) End(ctx context.Context, w pipeline.EndWrite) (pipeline.Task, error) {
	return onRow(t, "End", w.Ref, indexOf(w.Status.Ended()), func() (pipeline.Task, error) { return t.Store.End(ctx, w) })
}

func (t *table) Due(ctx context.Context, shard int, now pipeline.Instant, cursor string) ([]pipeline.Task, string, error) {
	rows, next, err := t.Store.Due(ctx, shard, now, cursor)
	parts := []part{reads(fmt.Sprintf("due#%d", shard), readEventually(100*len(rows)))}
	for _, row := range rows {
		parts = append(parts, reads(rowsOf(row.Job), 1))
	}
	if charged := t.charge("Due", parts...); charged != nil {
		return nil, "", charged
	}
	return rows, next, err
}

func (t *table) Expire(ctx context.Context, w pipeline.ExpireWrite) (pipeline.Task, error) {
	return onRow(t, "Expire", w.Seen.Ref, indexOf(w.Verdict.Status.Ended()), func() (pipeline.Task, error) { return t.Store.Expire(ctx, w) })
}

func (t *table) Ring(ctx context.Context, w pipeline.RingWrite) (pipeline.Task, error) {
	return onRow(t, "Ring", w.Seen.Ref, 2, func() (pipeline.Task, error) { return t.Store.Ring(ctx, w) })
}

func (t *table) Postpone(ctx context.Context, seen pipeline.Task, due pipeline.Instant) (pipeline.Task, error) {
	return onRow(t, "Postpone", seen.Ref, 2, func() (pipeline.Task, error) { return t.Store.Postpone(ctx, seen, due) })
}

func (t *table) Unpark(ctx context.Context, seen pipeline.Task, now pipeline.Instant) (pipeline.Task, error) {
	return onRow(t, "Unpark", seen.Ref, 2, func() (pipeline.Task, error) { return t.Store.Unpark(ctx, seen, now) })
}

func (t *table) Close(ctx context.Context, w pipeline.CloseWrite) (pipeline.Task, error) {
	return onRow(t, "Close", w.Seen.Ref, 1, func() (pipeline.Task, error) { return t.Store.Close(ctx, w) })
}

func (t *table) PutItem(ctx context.Context, job pipeline.JobID, key string, body []byte) error {
	if err := t.charge("PutItem", writes(checkpointsOf(job), written(len(job)+len(key)+len(body)))); err != nil {
		return err
	}
	return t.Store.PutItem(ctx, job, key, body)
}

func (t *table) PutItemOnce(ctx context.Context, job pipeline.JobID, key string, body []byte) ([]byte, error) {
	if err := t.charge("PutItemOnce", writes(checkpointsOf(job), written(len(job)+len(key)+len(body)))); err != nil {
		return nil, err
	}
	return t.Store.PutItemOnce(ctx, job, key, body)
}

func (t *table) Item(ctx context.Context, job pipeline.JobID, key string) ([]byte, error) {
	body, err := t.Store.Item(ctx, job, key)
	if charged := t.charge("Item", reads(checkpointsOf(job), readConsistently(len(body)))); charged != nil {
		return nil, charged
	}
	return body, err
}

func (t *table) Items(ctx context.Context, job pipeline.JobID, prefix, cursor string) ([]pipeline.Item, string, error) {
	items, next, err := t.Store.Items(ctx, job, prefix, cursor)
	size := 0
	for _, item := range items {
		size += len(job) + len(item.Key) + len(item.Body)
	}
	if charged := t.charge("Items", reads(checkpointsOf(job), readConsistently(size))); charged != nil {
		return nil, "", charged
	}
	return items, next, err
}

// Each reply has a partition of its own, so only their sum matters.
func (t *table) PutReply(ctx context.Context, r pipeline.Reply) (pipeline.Reply, error) {
	if err := t.charge("PutReply", writes("reply#"+string(r.Key), written(len(pipeline.Encode(r))+80))); err != nil {
		return pipeline.Reply{}, err
	}
	return t.Store.PutReply(ctx, r)
}

func (t *table) Replies(ctx context.Context, keys []pipeline.ReplyKey) (map[pipeline.ReplyKey]pipeline.Reply, []pipeline.ReplyKey, error) {
	found, left, err := t.Store.Replies(ctx, keys)
	var parts []part
	for _, key := range keys {
		n := 1.0
		if r, is := found[key]; is {
			n = readConsistently(len(pipeline.Encode(r)))
		}
		parts = append(parts, reads("reply#"+string(key), n))
	}
	if charged := t.charge("Replies", parts...); charged != nil {
		return nil, keys, nil
	}
	return found, left, err
}

// PutFindings is a query for the last group and a transaction of group and mark.
func (t *table) PutFindings(ctx context.Context, g pipeline.FindingGroup) error {
	if err := t.charge("PutFindings", part{rowsOf(g.Job), units{2 + 2*written(len(pipeline.Encode(g))), 1}}); err != nil {
		return err
	}
	return t.Store.PutFindings(ctx, g)
}

func (t *table) Findings(ctx context.Context, job pipeline.JobID, after int64, limit int) ([]pipeline.FindingGroup, error) {
	groups, err := t.Store.Findings(ctx, job, after, limit)
	if charged := t.charge("Findings", reads(rowsOf(job), readConsistently(len(pipeline.Encode(groups))))); charged != nil {
		return nil, charged
	}
	return groups, err
}

func (t *table) OpenBudget(ctx context.Context, job pipeline.JobID, ceiling pipeline.Money) error {
	if err := t.charge("OpenBudget", writes(rowsOf(job), 1)); err != nil {
		return err
	}
	return t.Store.OpenBudget(ctx, job, ceiling)
}

// onBudget is one write of the budget's row, which is as large as there are reservations open.
func (t *table) onBudget(ctx context.Context, op string, job pipeline.JobID, more int) error {
	b, err := t.stands.Budget(ctx, job)
	if err != nil {
		return nil // the write says so itself
	}
	return t.charge(op, writes(rowsOf(job), written(budgetSize(b)+more*40)))
}

func (t *table) Reserve(ctx context.Context, job pipeline.JobID, r pipeline.Reservation, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	if err := t.onBudget(ctx, "Reserve", job, 1); err != nil {
		return pipeline.Budget{}, err
	}
	return t.Store.Reserve(ctx, job, r, settle...)
}

func (t *table) Settle(ctx context.Context, job pipeline.JobID, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	if len(settle) > 0 {
		if err := t.onBudget(ctx, "Settle", job, 0); err != nil {
			return pipeline.Budget{}, err
		}
	}
	return t.Store.Settle(ctx, job, settle...)
}

func (t *table) Budget(ctx context.Context, job pipeline.JobID) (pipeline.Budget, error) {
	b, err := t.Store.Budget(ctx, job)
	if charged := t.charge("Budget", reads(rowsOf(job), readConsistently(budgetSize(b)))); charged != nil {
		return pipeline.Budget{}, charged
	}
	return b, err
}

// TakeSlot is one addition while the line is busy; an idle one is compared and swapped after it was refused.
func (t *table) TakeSlot(ctx context.Context, w pipeline.SlotWrite) (pipeline.Instant, error) {
	if err := t.charge("TakeSlot", writes("limit#"+w.Model, 2)); err != nil {
		return 0, err
	}
	return t.Store.TakeSlot(ctx, w)
}

func (t *table) Refund(ctx context.Context, model string, unused, burst time.Duration, now pipeline.Instant) error {
	if err := t.charge("Refund", writes("limit#"+model, 2)); err != nil {
		return err
	}
	return t.Store.Refund(ctx, model, unused, burst, now)
}

func (t *table) Cooldown(ctx context.Context, model string) (pipeline.Cooldown, error) {
	if err := t.charge("Cooldown", reads("limit#"+model, 1)); err != nil {
		return pipeline.Cooldown{}, err
	}
	return t.Store.Cooldown(ctx, model)
}
