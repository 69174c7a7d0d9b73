package pipelinetest

import (
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// The moves on rows.

// one makes a move of a call that answers with one value.
func one[T any](says string, do func(s pipeline.Store) (T, error)) move {
	return move{says: says, do: func(s pipeline.Store) (any, error) {
		got, err := do(s)
		if row, ok := any(got).(pipeline.Task); ok {
			return plain(row), err
		}
		return got, err
	}}
}

func (h *history) putMove() move {
	var rows []pipeline.Task
	job := h.job()
	for range 1 + h.IntN(playedTasks) {
		rows = append(rows, NewRow(job, h.id(), func(row *pipeline.Task) {
			row.ReadyAt, row.DueAt = h.now+pipeline.Instant(h.IntN(3000)), h.now+pipeline.Instant(h.IntN(9000))
			row.MaxTries = 20
			row.Status = pick(h, pipeline.TaskPending, pipeline.TaskPending, pipeline.TaskParked)
		}))
	}
	return one(fmt.Sprintf("PutTasks %d of %s", len(rows), job), func(s pipeline.Store) ([]pipeline.Task, error) {
		return s.PutTasks(h.ctx, rows)
	})
}

func (h *history) claimMove() move {
	row := h.row()
	w := ClaimOf(row, pick(h, "A", "B", "C"), h.now)
	w.MaxAttempts = pick(h, 2, 3, 3, 9)
	w.Alone = h.chance(50)
	return one("Claim "+row.Ref.String(), func(s pipeline.Store) (pipeline.Task, error) { return s.Claim(h.ctx, w) })
}

func (h *history) renewMove() move {
	row := h.row()
	w := pipeline.RenewWrite{
		Fence: pipeline.Claim{Task: row}.Fence(), Expires: row.ExpiresAt + pipeline.Instant(h.IntN(6000)-500),
		Stage: h.IntN(4), StageAt: h.now, Answers: h.IntN(5), Allowed: row.Allowed + h.IntN(8) - 1,
	}
	return one("Renew "+row.Ref.String(), func(s pipeline.Store) (pipeline.Task, error) { return s.Renew(h.ctx, w) })
}

func (h *history) checkpointMove() move {
	row := h.row()
	w := pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: row}.Fence(), Stage: row.Accepted + pick(h, 1, 1, 1, 0, 2), Allowed: row.Allowed + h.IntN(4) - 1}
	return one("Checkpoint "+row.Ref.String(), func(s pipeline.Store) (pipeline.Task, error) { return s.Checkpoint(h.ctx, w) })
}

func (h *history) verdict(row pipeline.Task, outcome pipeline.Outcome) pipeline.Verdict {
	p := pipeline.DefaultPolicy()
	p.MaxDeferrals, p.AttemptBackoff, p.DeferralBackoff = 3, time.Second, time.Second
	return pipeline.Next(p, pipeline.StandingOf(row, 0), pipeline.Ending{Outcome: outcome}, h.now, h.Float64())
}

func (h *history) endMove() move {
	row := h.row()
	outcome := pick(h, pipeline.Succeeded, pipeline.FailedNow, pipeline.FailedNow, pipeline.Deferral, pipeline.Deferral, pipeline.Permanent, pipeline.Stopped, pipeline.Parked, pipeline.Overran)
	w := EndOf(row, h.verdict(row, outcome), pipeline.Fail(pipeline.Ambiguous, "%s", outcome), h.now)
	w.Allowed += h.IntN(3) - 1
	return one(fmt.Sprintf("End %s, %s", row.Ref, outcome), func(s pipeline.Store) (pipeline.Task, error) { return s.End(h.ctx, w) })
}

func (h *history) expireMove() move {
	row := h.row()
	now := row.ExpiresAt.Add(pick(h, 0, 4*time.Second, 5*time.Second, 5*time.Second+1, time.Minute, time.Minute))
	w := ExpireOf(row, h.verdict(row, pipeline.Died), now)
	w.Exited = pick(h, "", "", "A", row.ClaimedBy)
	return one("Expire "+row.Ref.String(), func(s pipeline.Store) (pipeline.Task, error) { return s.Expire(h.ctx, w) })
}

func (h *history) ringMove() move {
	row := h.row()
	w := pipeline.RingWrite{Seen: row, Due: h.now + pipeline.Instant(h.IntN(5000)), Count: pick(h, row.Rings+1, row.Rings+1, 0)}
	return one("Ring "+row.Ref.String(), func(s pipeline.Store) (pipeline.Task, error) { return s.Ring(h.ctx, w) })
}

func (h *history) postponeMove() move {
	row, due := h.row(), h.now+pipeline.Instant(h.IntN(5000))
	return one("Postpone "+row.Ref.String(), func(s pipeline.Store) (pipeline.Task, error) { return s.Postpone(h.ctx, row, due) })
}

func (h *history) unparkMove() move {
	row, now := h.row(), h.now
	return one("Unpark "+row.Ref.String(), func(s pipeline.Store) (pipeline.Task, error) { return s.Unpark(h.ctx, row, now) })
}

func (h *history) closeMove() move {
	w := pipeline.CloseWrite{Seen: h.row(), Status: pick(h, pipeline.TaskAbandoned, pipeline.TaskCancelled), Reason: pipeline.Fail(pipeline.Exhausted, "closed"), Due: h.now}
	return one("Close "+w.Seen.Ref.String(), func(s pipeline.Store) (pipeline.Task, error) { return s.Close(h.ctx, w) })
}

func (h *history) buriedMove() move {
	row := h.row()
	return one("Buried "+row.Ref.String(), func(s pipeline.Store) (string, error) { return "", s.Buried(h.ctx, row.Ref, row.Generation) })
}

func (h *history) redriveMove() move {
	row := h.row()
	job, err := h.a.Store.Job(h.ctx, row.Job)
	if err != nil {
		job = NewJob(row.Job)
	}
	if h.chance(20) {
		job.Epoch++
	}
	reopened := job
	reopened.Status, reopened.Epoch = pipeline.JobRunning, job.Epoch+1
	w := pipeline.RedriveWrite{Task: row, Job: job, Accepted: h.IntN(row.Accepted + 1), Reopened: reopened, MaxTries: row.MaxTries + 20, Now: h.now}
	return one("Redrive "+row.Ref.String(), func(s pipeline.Store) ([]any, error) {
		task, job, err := s.Redrive(h.ctx, w)
		return []any{plain(task), job}, err
	})
}

func (h *history) dueMove() move {
	now := h.now
	return one("Due", func(s pipeline.Store) (all []pipeline.Task, err error) {
		for shard := range pipeline.DueShards {
			rows, err := pages(func(cursor string) ([]pipeline.Task, string, error) { return s.Due(h.ctx, shard, now, cursor) })
			if err != nil {
				return nil, err
			}
			all = append(all, plainly(rows)...)
		}
		return all, nil
	})
}

func (h *history) tasksMove(job pipeline.JobID) move {
	return one("Tasks of "+string(job), func(s pipeline.Store) ([]pipeline.Task, error) {
		rows, err := pages(func(cursor string) ([]pipeline.Task, string, error) { return s.Tasks(h.ctx, job, cursor) })
		return plainly(rows), err
	})
}

func plainly(rows []pipeline.Task) []pipeline.Task {
	for i := range rows {
		rows[i] = plain(rows[i])
	}
	return rows
}

func pages[T any](turn func(cursor string) ([]T, string, error)) ([]T, error) {
	var all []T
	for cursor := ""; ; {
		page, next, err := turn(cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == "" {
			return all, nil
		}
		cursor = next
	}
}

// rawMove is what happens behind the store's back: an older version's row, or a row that is gone.
func (h *history) rawMove() move {
	ref := pipeline.Ref{Job: h.job(), ID: h.id()}
	if h.chance(50) {
		return move{says: "a row deleted", raw: func(to Harness) { to.Delete(h.t, ref) }}
	}
	columns := map[string]any{"status": "pending", "stages": 1 + h.IntN(2), "ready_at": h.now, "due_at": h.now}
	return move{says: "an older row put", raw: func(to Harness) { to.Raw(h.t, ref, columns) }}
}
