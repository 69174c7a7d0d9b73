package pipelinetest

import (
	"context"
	"strconv"
	"time"

	"holdfast/pkg/pipeline"
)

type wrapped struct {
	inner  pipeline.Store
	around Around
}

var _ pipeline.Store = (*wrapped)(nil)

type pair[A, B any] struct {
	first  A
	second B
}

func rowsOn(rows []pipeline.Task) string {
	if len(rows) == 0 {
		return ""
	}
	return rows[0].Ref.String()
}

func (w *wrapped) Submit(ctx context.Context, job pipeline.Job, split pipeline.Task) (pipeline.Job, bool, error) {
	both, err := ask(ctx, w.around, writes("Submit", string(job.ID)), func(ctx context.Context) (b pair[pipeline.Job, bool], err error) {
		b.first, b.second, err = w.inner.Submit(ctx, job, split)
		return b, err
	})
	return both.first, both.second, err
}

func (w *wrapped) Job(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) {
	return ask(ctx, w.around, reads("Job", string(id)), func(ctx context.Context) (pipeline.Job, error) {
		return w.inner.Job(ctx, id)
	})
}

func (w *wrapped) SetJob(ctx context.Context, seen, next pipeline.Job) (pipeline.Job, error) {
	return ask(ctx, w.around, writes("SetJob", string(seen.ID)), func(ctx context.Context) (pipeline.Job, error) {
		return w.inner.SetJob(ctx, seen, next)
	})
}

func (w *wrapped) Jobs(ctx context.Context, tenant, cursor string, limit int) ([]pipeline.Job, string, error) {
	return turn(ctx, w.around, reads("Jobs", tenant), func(ctx context.Context) ([]pipeline.Job, string, error) {
		return w.inner.Jobs(ctx, tenant, cursor, limit)
	})
}

func (w *wrapped) PutTasks(ctx context.Context, rows []pipeline.Task) ([]pipeline.Task, error) {
	return ask(ctx, w.around, writes("PutTasks", rowsOn(rows)), func(ctx context.Context) ([]pipeline.Task, error) {
		return w.inner.PutTasks(ctx, rows)
	})
}

func (w *wrapped) Task(ctx context.Context, ref pipeline.Ref) (pipeline.Task, error) {
	return ask(ctx, w.around, reads("Task", ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.Task(ctx, ref)
	})
}

func (w *wrapped) Tasks(ctx context.Context, job pipeline.JobID, cursor string) ([]pipeline.Task, string, error) {
	return turn(ctx, w.around, reads("Tasks", string(job)), func(ctx context.Context) ([]pipeline.Task, string, error) {
		return w.inner.Tasks(ctx, job, cursor)
	})
}

func (w *wrapped) Claim(ctx context.Context, cw pipeline.ClaimWrite) (pipeline.Task, error) {
	return ask(ctx, w.around, writes("Claim", cw.Ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.Claim(ctx, cw)
	})
}

func (w *wrapped) Renew(ctx context.Context, rw pipeline.RenewWrite) (pipeline.Task, error) {
	return ask(ctx, w.around, writes("Renew", rw.Ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.Renew(ctx, rw)
	})
}

func (w *wrapped) Checkpoint(ctx context.Context, cw pipeline.CheckpointWrite) (pipeline.Task, error) {
	return ask(ctx, w.around, writes("Checkpoint", cw.Ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.Checkpoint(ctx, cw)
	})
}

func (w *wrapped) End(ctx context.Context, ew pipeline.EndWrite) (pipeline.Task, error) {
	return ask(ctx, w.around, writes("End", ew.Ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.End(ctx, ew)
	})
}

func (w *wrapped) Redrive(ctx context.Context, rw pipeline.RedriveWrite) (pipeline.Task, pipeline.Job, error) {
	both, err := ask(ctx, w.around, writes("Redrive", rw.Task.Ref.String()), func(ctx context.Context) (b pair[pipeline.Task, pipeline.Job], err error) {
		b.first, b.second, err = w.inner.Redrive(ctx, rw)
		return b, err
	})
	return both.first, both.second, err
}

func (w *wrapped) Due(ctx context.Context, shard int, now pipeline.Instant, cursor string) ([]pipeline.Task, string, error) {
	return turn(ctx, w.around, reads("Due", strconv.Itoa(shard)), func(ctx context.Context) ([]pipeline.Task, string, error) {
		return w.inner.Due(ctx, shard, now, cursor)
	})
}

func (w *wrapped) Expire(ctx context.Context, ew pipeline.ExpireWrite) (pipeline.Task, error) {
	return ask(ctx, w.around, writes("Expire", ew.Seen.Ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.Expire(ctx, ew)
	})
}

func (w *wrapped) Ring(ctx context.Context, rw pipeline.RingWrite) (pipeline.Task, error) {
	return ask(ctx, w.around, writes("Ring", rw.Seen.Ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.Ring(ctx, rw)
	})
}

func (w *wrapped) Postpone(ctx context.Context, seen pipeline.Task, due pipeline.Instant) (pipeline.Task, error) {
	return ask(ctx, w.around, writes("Postpone", seen.Ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.Postpone(ctx, seen, due)
	})
}

func (w *wrapped) Unpark(ctx context.Context, seen pipeline.Task, now pipeline.Instant) (pipeline.Task, error) {
	return ask(ctx, w.around, writes("Unpark", seen.Ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.Unpark(ctx, seen, now)
	})
}

func (w *wrapped) Close(ctx context.Context, cw pipeline.CloseWrite) (pipeline.Task, error) {
	return ask(ctx, w.around, writes("Close", cw.Seen.Ref.String()), func(ctx context.Context) (pipeline.Task, error) {
		return w.inner.Close(ctx, cw)
	})
}

func (w *wrapped) Buried(ctx context.Context, ref pipeline.Ref, generation int64) error {
	return tell(ctx, w.around, writes("Buried", ref.String()), func(ctx context.Context) error {
		return w.inner.Buried(ctx, ref, generation)
	})
}

func (w *wrapped) PutItem(ctx context.Context, job pipeline.JobID, key string, body []byte) error {
	return tell(ctx, w.around, writes("PutItem", string(job)+"/"+key), func(ctx context.Context) error {
		return w.inner.PutItem(ctx, job, key, body)
	})
}

func (w *wrapped) PutItemOnce(ctx context.Context, job pipeline.JobID, key string, body []byte) ([]byte, error) {
	return ask(ctx, w.around, writes("PutItemOnce", string(job)+"/"+key), func(ctx context.Context) ([]byte, error) {
		return w.inner.PutItemOnce(ctx, job, key, body)
	})
}

func (w *wrapped) Item(ctx context.Context, job pipeline.JobID, key string) ([]byte, error) {
	return ask(ctx, w.around, reads("Item", string(job)+"/"+key), func(ctx context.Context) ([]byte, error) {
		return w.inner.Item(ctx, job, key)
	})
}

func (w *wrapped) Items(ctx context.Context, job pipeline.JobID, prefix, cursor string) ([]pipeline.Item, string, error) {
	return turn(ctx, w.around, reads("Items", string(job)+"/"+prefix), func(ctx context.Context) ([]pipeline.Item, string, error) {
		return w.inner.Items(ctx, job, prefix, cursor)
	})
}

func (w *wrapped) PutReply(ctx context.Context, r pipeline.Reply) (pipeline.Reply, error) {
	return ask(ctx, w.around, writes("PutReply", string(r.Key)), func(ctx context.Context) (pipeline.Reply, error) {
		return w.inner.PutReply(ctx, r)
	})
}

func (w *wrapped) Replies(ctx context.Context, keys []pipeline.ReplyKey) (map[pipeline.ReplyKey]pipeline.Reply, []pipeline.ReplyKey, error) {
	both, err := ask(ctx, w.around, reads("Replies", ""), func(ctx context.Context) (b pair[map[pipeline.ReplyKey]pipeline.Reply, []pipeline.ReplyKey], err error) {
		b.first, b.second, err = w.inner.Replies(ctx, keys)
		return b, err
	})
	return both.first, both.second, err
}

func (w *wrapped) PutFindings(ctx context.Context, g pipeline.FindingGroup) error {
	return tell(ctx, w.around, writes("PutFindings", pipeline.Ref{Job: g.Job, ID: g.Task}.String()), func(ctx context.Context) error {
		return w.inner.PutFindings(ctx, g)
	})
}

func (w *wrapped) Findings(ctx context.Context, job pipeline.JobID, after int64, limit int) ([]pipeline.FindingGroup, error) {
	return ask(ctx, w.around, reads("Findings", string(job)), func(ctx context.Context) ([]pipeline.FindingGroup, error) {
		return w.inner.Findings(ctx, job, after, limit)
	})
}

func (w *wrapped) OpenBudget(ctx context.Context, job pipeline.JobID, ceiling pipeline.Money) error {
	return tell(ctx, w.around, writes("OpenBudget", string(job)), func(ctx context.Context) error {
		return w.inner.OpenBudget(ctx, job, ceiling)
	})
}

func (w *wrapped) RaiseBudget(ctx context.Context, ref pipeline.Ref, generation int64, amount pipeline.Money) error {
	return tell(ctx, w.around, writes("RaiseBudget", string(ref.Job)), func(ctx context.Context) error {
		return w.inner.RaiseBudget(ctx, ref, generation, amount)
	})
}

func (w *wrapped) Reserve(ctx context.Context, job pipeline.JobID, r pipeline.Reservation, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	return ask(ctx, w.around, writes("Reserve", string(job)), func(ctx context.Context) (pipeline.Budget, error) {
		return w.inner.Reserve(ctx, job, r, settle...)
	})
}

func (w *wrapped) Settle(ctx context.Context, job pipeline.JobID, settle ...pipeline.Reservation) (pipeline.Budget, error) {
	return ask(ctx, w.around, writes("Settle", string(job)), func(ctx context.Context) (pipeline.Budget, error) {
		return w.inner.Settle(ctx, job, settle...)
	})
}

func (w *wrapped) Budget(ctx context.Context, job pipeline.JobID) (pipeline.Budget, error) {
	return ask(ctx, w.around, reads("Budget", string(job)), func(ctx context.Context) (pipeline.Budget, error) {
		return w.inner.Budget(ctx, job)
	})
}

func (w *wrapped) TakeSlot(ctx context.Context, sw pipeline.SlotWrite) (pipeline.Instant, error) {
	return ask(ctx, w.around, writes("TakeSlot", sw.Model), func(ctx context.Context) (pipeline.Instant, error) {
		return w.inner.TakeSlot(ctx, sw)
	})
}

func (w *wrapped) Refund(ctx context.Context, model string, unused, burst time.Duration, now pipeline.Instant) error {
	return tell(ctx, w.around, writes("Refund", model), func(ctx context.Context) error {
		return w.inner.Refund(ctx, model, unused, burst, now)
	})
}

func (w *wrapped) Penalise(ctx context.Context, model string, until pipeline.Instant) error {
	return tell(ctx, w.around, writes("Penalise", model), func(ctx context.Context) error {
		return w.inner.Penalise(ctx, model, until)
	})
}

func (w *wrapped) Strike(ctx context.Context, s pipeline.Strike) (pipeline.Cooldown, error) {
	return ask(ctx, w.around, writes("Strike", s.Model), func(ctx context.Context) (pipeline.Cooldown, error) {
		return w.inner.Strike(ctx, s)
	})
}

func (w *wrapped) Cooldown(ctx context.Context, model string) (pipeline.Cooldown, error) {
	return ask(ctx, w.around, reads("Cooldown", model), func(ctx context.Context) (pipeline.Cooldown, error) {
		return w.inner.Cooldown(ctx, model)
	})
}

func (w *wrapped) CloseBreaker(ctx context.Context, model string) error {
	return tell(ctx, w.around, writes("CloseBreaker", model), func(ctx context.Context) error {
		return w.inner.CloseBreaker(ctx, model)
	})
}

func (w *wrapped) OpenJobs(ctx context.Context, cursor string) ([]pipeline.Job, string, error) {
	return turn(ctx, w.around, reads("OpenJobs", ""), func(ctx context.Context) ([]pipeline.Job, string, error) {
		return w.inner.OpenJobs(ctx, cursor)
	})
}
