package pipelinetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

// The moves beside the rows.

func (h *history) submitMove() move {
	job := NewJob(h.job(), func(j *pipeline.Job) { j.CreatedAt, j.Tenant = h.now, h.prefix })
	return one("Submit "+string(job.ID), func(s pipeline.Store) ([]any, error) {
		stands, created, err := s.Submit(h.ctx, job, NewRow(job.ID, pipeline.SplitTask))
		return []any{stands, created}, err
	})
}

func (h *history) setJobMove() move {
	seen, err := h.a.Store.Job(h.ctx, h.job())
	if err != nil {
		seen = NewJob(h.job())
	}
	next := seen
	next.Status = pick(h, pipeline.JobRunning, pipeline.JobPaused, pipeline.JobCancelling, pipeline.JobPartial, pipeline.JobCompleted)
	next.Deadline = h.now
	if h.chance(30) {
		seen.Epoch++
	}
	if h.chance(30) {
		seen.Status = pipeline.JobPaused
	}
	return move{says: "SetJob " + string(seen.ID), do: func(s pipeline.Store) (any, error) { return s.SetJob(h.ctx, seen, next) }}
}

func (h *history) jobMove(id pipeline.JobID) move {
	return one("Job "+string(id), func(s pipeline.Store) (pipeline.Job, error) { return s.Job(h.ctx, id) })
}

func (h *history) jobsMove() move {
	limit := 1 + h.IntN(3)
	return one("Jobs", func(s pipeline.Store) ([]pipeline.Job, error) {
		return pages(func(cursor string) ([]pipeline.Job, string, error) { return s.Jobs(h.ctx, h.prefix, cursor, limit) })
	})
}

func (h *history) openJobsMove() move {
	return one("OpenJobs", func(s pipeline.Store) ([]pipeline.Job, error) {
		all, err := pages(func(cursor string) ([]pipeline.Job, string, error) { return s.OpenJobs(h.ctx, cursor) })
		slices.SortFunc(all, func(a, b pipeline.Job) int { return cmp.Compare(a.ID, b.ID) })
		return all, err
	})
}

func (h *history) itemMove() move {
	job, key, body := h.job(), h.key(), []byte(strings.Repeat("x", h.IntN(50)))
	if h.chance(3) {
		body = make([]byte, pipeline.MaxItem+1)
	}
	switch h.IntN(3) {
	case 0:
		return one("PutItem "+key, func(s pipeline.Store) (string, error) { return "", s.PutItem(h.ctx, job, key, body) })
	case 1:
		return one("PutItemOnce "+key, func(s pipeline.Store) ([]byte, error) { return s.PutItemOnce(h.ctx, job, key, body) })
	default:
		return one("Item "+key, func(s pipeline.Store) (string, error) {
			body, err := s.Item(h.ctx, job, key)
			return string(body), err
		})
	}
}

func (h *history) itemsMove(job pipeline.JobID) move {
	prefix := pick(h, "", "task#", "task#1", "task#1#", "manifest")
	return one("Items under "+prefix, func(s pipeline.Store) ([]string, error) {
		items, err := pages(func(cursor string) ([]pipeline.Item, string, error) { return s.Items(h.ctx, job, prefix, cursor) })
		var all []string
		for _, item := range items {
			all = append(all, item.Key+"="+string(item.Body))
		}
		return all, err
	})
}

func (h *history) replyMove() move {
	key := func() pipeline.ReplyKey { return pipeline.ReplyKey(fmt.Sprintf("%s-%d", h.prefix, h.IntN(5))) }
	if h.chance(50) {
		r := newReply(key(), fmt.Sprint(h.IntN(3)))
		return one("PutReply", func(s pipeline.Store) (pipeline.Reply, error) { return s.PutReply(h.ctx, r) })
	}
	keys := slices.Compact([]pipeline.ReplyKey{key(), key()})
	return one("Replies", func(s pipeline.Store) (map[pipeline.ReplyKey]pipeline.Reply, error) {
		found, unprocessed, err := s.Replies(h.ctx, keys)
		if len(unprocessed) > 0 {
			return nil, fmt.Errorf("%d keys are unprocessed", len(unprocessed))
		}
		return found, err
	})
}

func (h *history) feedMove() move {
	if h.chance(30) {
		return h.findingsMove(h.job())
	}
	g := pipeline.FindingGroup{Job: h.job(), Task: h.id(), Stage: 1 + h.IntN(2), Generation: int64(1 + h.IntN(2)), At: h.now, Findings: []pipeline.Finding{{ID: fmt.Sprint(h.IntN(9))}}}
	return one("PutFindings", func(s pipeline.Store) (string, error) { return "", s.PutFindings(h.ctx, g) })
}

func (h *history) findingsMove(job pipeline.JobID) move {
	limit := 1 + h.IntN(5)
	return one("Findings of "+string(job), func(s pipeline.Store) (all []pipeline.FindingGroup, err error) {
		for after := int64(0); ; {
			groups, err := s.Findings(h.ctx, job, after, limit)
			if err != nil || len(groups) == 0 {
				return all, err
			}
			for _, g := range groups {
				after, g.Seq = g.Seq, 0
				all = append(all, g)
			}
		}
	})
}

func (h *history) moneyMove() move {
	job := h.job()
	r := func() pipeline.Reservation {
		return pipeline.Reservation{Task: h.id(), Generation: int64(h.IntN(2)), Stage: h.IntN(2), Part: h.IntN(2), Amount: pipeline.Money(h.IntN(60))}
	}
	first, second := r(), r()
	switch h.IntN(5) {
	case 0:
		ceiling := pipeline.Money(100 + h.IntN(200))
		return one("OpenBudget", func(s pipeline.Store) (string, error) { return "", s.OpenBudget(h.ctx, job, ceiling) })
	case 1:
		ref, generation := pipeline.Ref{Job: job, ID: h.id()}, int64(h.now-T0)/40_000-int64(h.IntN(2))
		return one("RaiseBudget", func(s pipeline.Store) (string, error) { return "", s.RaiseBudget(h.ctx, ref, generation, 30) })
	case 2:
		return one("Settle", func(s pipeline.Store) (pipeline.Budget, error) { return sorted(s.Settle(h.ctx, job, first, second)) })
	default:
		return one("Reserve", func(s pipeline.Store) (pipeline.Budget, error) {
			return sorted(s.Reserve(h.ctx, job, first, second))
		})
	}
}

func (h *history) budgetMove(job pipeline.JobID) move {
	return one("Budget of "+string(job), func(s pipeline.Store) (pipeline.Budget, error) { return sorted(s.Budget(h.ctx, job)) })
}

func sorted(b pipeline.Budget, err error) (pipeline.Budget, error) {
	b.Open = append([]pipeline.Reservation{}, b.Open...)
	slices.SortFunc(b.Open, func(x, y pipeline.Reservation) int {
		return cmp.Or(cmp.Compare(x.Task, y.Task), cmp.Compare(x.Generation, y.Generation), cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Part, y.Part))
	})
	return b, err
}

func (h *history) lineMove() move {
	w := pipeline.SlotWrite{Model: h.model(), Cost: 0, Burst: time.Second, Horizon: time.Hour, Now: h.line}
	return one("TakeSlot for nothing", func(s pipeline.Store) (pipeline.Instant, error) { return s.TakeSlot(h.ctx, w) })
}

func (h *history) slotMove() move {
	h.line += pipeline.Instant(h.IntN(2000))
	model, now := h.model(), h.line+pipeline.Instant(h.IntN(1000)-500)
	d := time.Duration(h.IntN(5_000_000)) * time.Microsecond
	switch h.IntN(5) {
	case 0:
		return one("Refund", func(s pipeline.Store) (string, error) {
			return "", s.Refund(h.ctx, model, d.Truncate(time.Millisecond), 2*time.Second, now)
		})
	case 1:
		return one("Penalise", func(s pipeline.Store) (string, error) { return "", s.Penalise(h.ctx, model, now.Add(d)) })
	default:
		w := pipeline.SlotWrite{Model: model, Cost: d, Burst: 2 * time.Second, Horizon: 8 * time.Second, Now: now}
		return one("TakeSlot", func(s pipeline.Store) (pipeline.Instant, error) { return s.TakeSlot(h.ctx, w) })
	}
}

func (h *history) breakerMove() move {
	model := h.model()
	if h.chance(10) {
		return one("CloseBreaker", func(s pipeline.Store) (string, error) { return "", s.CloseBreaker(h.ctx, model) })
	}
	w := pipeline.Strike{
		Model: model, Task: pipeline.Ref{Job: h.job(), ID: h.id()}, Reason: pipeline.Fail(pipeline.Unavailable, "down %d", h.IntN(5)),
		Now: h.now, Window: 20 * time.Second, Until: h.now.Add(time.Duration(h.IntN(9)) * time.Second), Open: h.chance(10),
	}
	return one("Strike", func(s pipeline.Store) (pipeline.Cooldown, error) {
		c, err := s.Strike(h.ctx, w)
		if err != nil {
			return c, err
		}
		return s.Cooldown(h.ctx, model)
	})
}
