package simulation

import (
	"context"
	"errors"
	"slices"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/simulation/audit"
)

// watched is the store as one process writes to it: every write of a row is shown to the auditor, with the row before
// and after it, whoever refused or took it. It also makes the index lag and batches come back in part.
type watched struct {
	pipeline.Store
	w *World
	p *process
}

// row is one write of a task's row.
func (s *watched) row(ctx context.Context, write audit.Write, ref pipeline.Ref, do func() error) {
	before, errBefore := s.w.store.Task(s.w.ctx, ref)
	err := do()
	after, errAfter := s.w.store.Task(s.w.ctx, ref)
	write.By, write.At, write.Ref, write.Err = s.p.name, s.w.trueTime(), ref, err
	write.Policy, write.Local = &s.p.policy, s.w.trueTime().Add(s.p.skew)
	if errBefore == nil {
		write.Before = &before
	}
	if errAfter == nil {
		write.After = &after
		if e := s.w.performed(); e != nil && err == nil {
			e.Row = &after
		}
	}
	s.w.audit.Row(write)
}

func (s *watched) Claim(ctx context.Context, cw pipeline.ClaimWrite) (row pipeline.Task, err error) {
	s.row(ctx, audit.Write{Op: audit.Claim, ClaimID: cw.ClaimID}, cw.Ref, func() error { row, err = s.Store.Claim(ctx, cw); return err })
	return row, err
}

func (s *watched) Renew(ctx context.Context, rw pipeline.RenewWrite) (row pipeline.Task, err error) {
	s.row(ctx, audit.Write{Op: audit.Renew, ClaimID: rw.ClaimID}, rw.Ref, func() error { row, err = s.Store.Renew(ctx, rw); return err })
	return row, err
}

func (s *watched) Checkpoint(ctx context.Context, cw pipeline.CheckpointWrite) (row pipeline.Task, err error) {
	s.row(ctx, audit.Write{Op: audit.Checkpoint, ClaimID: cw.ClaimID}, cw.Ref, func() error { row, err = s.Store.Checkpoint(ctx, cw); return err })
	return row, err
}

func (s *watched) End(ctx context.Context, ew pipeline.EndWrite) (row pipeline.Task, err error) {
	s.row(ctx, audit.Write{Op: audit.EndClaim, ClaimID: ew.ClaimID}, ew.Ref, func() error { row, err = s.Store.End(ctx, ew); return err })
	return row, err
}

func (s *watched) Expire(ctx context.Context, ew pipeline.ExpireWrite) (row pipeline.Task, err error) {
	s.row(ctx, audit.Write{Op: audit.Expire, Seen: &ew.Seen, Exited: ew.Exited}, ew.Seen.Ref, func() error { row, err = s.Store.Expire(ctx, ew); return err })
	return row, err
}

func (s *watched) Ring(ctx context.Context, rw pipeline.RingWrite) (row pipeline.Task, err error) {
	s.row(ctx, audit.Write{Op: audit.Ring, Seen: &rw.Seen}, rw.Seen.Ref, func() error { row, err = s.Store.Ring(ctx, rw); return err })
	return row, err
}

func (s *watched) Postpone(ctx context.Context, seen pipeline.Task, due pipeline.Instant) (row pipeline.Task, err error) {
	s.row(ctx, audit.Write{Op: audit.Postpone, Seen: &seen}, seen.Ref, func() error { row, err = s.Store.Postpone(ctx, seen, due); return err })
	return row, err
}

func (s *watched) Unpark(ctx context.Context, seen pipeline.Task, now pipeline.Instant) (row pipeline.Task, err error) {
	s.row(ctx, audit.Write{Op: audit.Unpark, Seen: &seen}, seen.Ref, func() error { row, err = s.Store.Unpark(ctx, seen, now); return err })
	return row, err
}

func (s *watched) Close(ctx context.Context, cw pipeline.CloseWrite) (row pipeline.Task, err error) {
	s.row(ctx, audit.Write{Op: audit.Close, Seen: &cw.Seen}, cw.Seen.Ref, func() error { row, err = s.Store.Close(ctx, cw); return err })
	return row, err
}

func (s *watched) Buried(ctx context.Context, ref pipeline.Ref, generation int64) (err error) {
	s.row(ctx, audit.Write{Op: audit.Bury}, ref, func() error { err = s.Store.Buried(ctx, ref, generation); return err })
	return err
}

func (s *watched) Redrive(ctx context.Context, rw pipeline.RedriveWrite) (row pipeline.Task, job pipeline.Job, err error) {
	before, _ := s.w.store.Job(s.w.ctx, rw.Job.ID)
	s.row(ctx, audit.Write{Op: audit.Redrive, Seen: &rw.Task}, rw.Task.Ref, func() error { row, job, err = s.Store.Redrive(ctx, rw); return err })
	after, _ := s.w.store.Job(s.w.ctx, rw.Job.ID)
	s.w.audit.Job(audit.JobWrite{Op: audit.Redrive, Seen: &rw.Job, By: s.p.name, At: s.w.trueTime(), Before: before, After: after, Err: err})
	return row, job, err
}

func (s *watched) PutTasks(ctx context.Context, rows []pipeline.Task) (left []pipeline.Task, err error) {
	var errPut error
	for i, row := range rows { // one by one: the auditor sees each, and the rest of a batch comes back
		if s.w.partial(i) {
			left = append(left, row)
			continue
		}
		s.row(ctx, audit.Write{Op: audit.Put}, row.Ref, func() error { _, errPut = s.Store.PutTasks(ctx, []pipeline.Task{row}); return errPut })
		if errPut != nil {
			return rows[i:], errPut
		}
	}
	return left, nil
}

func (s *watched) Replies(ctx context.Context, keys []pipeline.ReplyKey) (map[pipeline.ReplyKey]pipeline.Reply, []pipeline.ReplyKey, error) {
	var left []pipeline.ReplyKey
	var asked []pipeline.ReplyKey
	for i, key := range keys {
		if s.w.partial(i) {
			left = append(left, key)
			continue
		}
		asked = append(asked, key)
	}
	found, more, err := s.Store.Replies(ctx, asked)
	if err == nil && s.p.role == worker {
		s.w.audit.Looked(s.p.name, found)
	}
	return found, append(left, more...), err
}

func (s *watched) Submit(ctx context.Context, job pipeline.Job, split pipeline.Task) (stands pipeline.Job, created bool, err error) {
	before, _ := s.w.store.Job(s.w.ctx, job.ID)
	s.row(ctx, audit.Write{Op: audit.Put}, split.Ref, func() error { stands, created, err = s.Store.Submit(ctx, job, split); return err })
	after, _ := s.w.store.Job(s.w.ctx, job.ID)
	s.w.audit.Job(audit.JobWrite{Op: audit.Put, By: s.p.name, At: s.w.trueTime(), Before: before, After: after, Err: err})
	s.w.born(after.ID)
	return stands, created, err
}

func (s *watched) SetJob(ctx context.Context, seen, next pipeline.Job) (stands pipeline.Job, err error) {
	before, _ := s.w.store.Job(s.w.ctx, seen.ID)
	stands, err = s.Store.SetJob(ctx, seen, next)
	after, _ := s.w.store.Job(s.w.ctx, seen.ID)
	if err == nil {
		s.w.note("%s -> %s, epoch %d %s", before.Status, after.Status, after.Epoch, after.Reason)
	}
	s.w.audit.Job(audit.JobWrite{Op: audit.Set, Seen: &seen, By: s.p.name, At: s.w.trueTime(), Before: before, After: after, Err: err})
	return stands, err
}

func (s *watched) PutReply(ctx context.Context, r pipeline.Reply) (stands pipeline.Reply, err error) {
	stands, err = s.Store.PutReply(ctx, r)
	s.w.note("%s of %s", r.Call, r.Task)
	s.w.audit.Stored(s.p.name, s.w.trueTime(), r, stands, err)
	return stands, err
}

func (s *watched) PutFindings(ctx context.Context, g pipeline.FindingGroup) error {
	err := s.Store.PutFindings(ctx, g)
	s.w.audit.Published(s.p.name, g, err)
	return err
}

func (s *watched) OpenBudget(ctx context.Context, job pipeline.JobID, ceiling pipeline.Money) error {
	err := s.Store.OpenBudget(ctx, job, ceiling)
	return s.money(job, 0, err)
}

func (s *watched) RaiseBudget(ctx context.Context, ref pipeline.Ref, generation int64, amount pipeline.Money) error {
	err := s.Store.RaiseBudget(ctx, ref, generation, amount)
	return s.money(ref.Job, s.w.audit.Raised(ref, generation, amount), err)
}

func (s *watched) Reserve(ctx context.Context, job pipeline.JobID, r pipeline.Reservation, settle ...pipeline.Reservation) (b pipeline.Budget, err error) {
	s.w.audit.Settles(s.p.name, job, settle)
	b, err = s.Store.Reserve(ctx, job, r, settle...)
	s.w.audit.Short(job, r, b, errors.Is(err, pipeline.ErrCeiling))
	s.w.note("%s for %s generation %d stage %d", r.Amount, r.Task, r.Generation, r.Stage)
	_ = s.money(job, 0, err)
	return b, err
}

func (s *watched) Settle(ctx context.Context, job pipeline.JobID, settle ...pipeline.Reservation) (b pipeline.Budget, err error) {
	s.w.audit.Settles(s.p.name, job, settle)
	b, err = s.Store.Settle(ctx, job, settle...)
	_ = s.money(job, 0, err)
	return b, err
}

func (s *watched) money(job pipeline.JobID, raised pipeline.Money, err error) error {
	if b, read := s.w.store.Budget(s.w.ctx, job); read == nil {
		s.w.audit.Money(s.p.name, job, b, raised, errors.Is(err, pipeline.ErrCeiling))
	}
	return err
}

// Due lags where the world says so: it shows rows as they were, and none that are newer.
func (s *watched) Due(ctx context.Context, shard int, now pipeline.Instant, cursor string) ([]pipeline.Task, string, error) {
	rows, next, err := s.Store.Due(ctx, shard, now, cursor)
	if err != nil || cursor != "" {
		return rows, next, err
	}
	old := s.w.faults.due[shard]
	s.w.faults.due[shard] = rows
	if e := s.w.performed(); e != nil && e.Fault == LagIndex {
		return slices.DeleteFunc(slices.Clone(old), func(row pipeline.Task) bool { return row.DueAt > now }), "", nil
	}
	return rows, next, nil
}

// OpenJobs lags in the same way.
func (s *watched) OpenJobs(ctx context.Context, cursor string) ([]pipeline.Job, string, error) {
	jobs, next, err := s.Store.OpenJobs(ctx, cursor)
	if err != nil || cursor != "" {
		return jobs, next, err
	}
	old := s.w.faults.open
	s.w.faults.open = jobs
	if e := s.w.performed(); e != nil && e.Fault == LagIndex {
		return old, "", nil
	}
	return jobs, next, nil
}

// partial says that an entry of the batch that is being performed comes back untried.
func (w *World) partial(i int) bool {
	e := w.performed()
	return e != nil && e.Fault == PartialBatch && w.draw(e.Op, e.N*32+i)%3 == 0
}

func (w *World) born(id pipeline.JobID) {
	for _, known := range w.jobs {
		if known == id {
			return
		}
	}
	if id != "" {
		w.jobs = append(w.jobs, id)
	}
}
