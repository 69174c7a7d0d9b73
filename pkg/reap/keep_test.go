package reap_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/reap"
)

// keeper is a store that deletes in time, as far as the reaper sees it: when the items of each job go, and when a reply
// that was stored when the job began.
type keeper struct {
	b       *bench
	ends    map[pipeline.JobID]pipeline.Instant // 0 = never
	reply   pipeline.Instant
	kept    int
	refuses error
}

func (k *keeper) Unmarked(ctx context.Context, ended pipeline.Instant, cursor string) ([]pipeline.Job, string, error) {
	var jobs []pipeline.Job
	for _, id := range slices.Sorted(maps.Keys(k.ends)) {
		job, err := k.b.store.Job(ctx, id)
		if err != nil {
			return nil, "", err
		}
		if len(jobs) == 2 { // a page
			return jobs, string(jobs[1].ID), nil
		}
		if string(id) > cursor && job.Status.Ended() && job.EndedAt <= ended && k.ends[id] == 0 {
			jobs = append(jobs, job)
		}
	}
	return jobs, "", nil
}

func (k *keeper) Mark(_ context.Context, job pipeline.Job) error {
	k.ends[job.ID] = k.b.clock.Now().Add(k.b.policy.Retention)
	return k.refuses
}

func (k *keeper) Unmark(_ context.Context, job pipeline.JobID) error {
	k.ends[job] = 0
	return nil
}

// keep reads the reply: it has gone, or gets all of its time again once a quarter is over.
func (k *keeper) keep(context.Context, pipeline.Job) error {
	k.kept++
	now, life := k.b.clock.Now(), 2*k.b.policy.Retention
	if now >= k.reply {
		k.b.Errorf("at %s the reply had gone", now)
	}
	if k.reply.Sub(now) < life*3/4 {
		k.reply = now.Add(life)
	}
	return nil
}

func kept(b *bench) {
	k := &keeper{b: b, ends: map[pipeline.JobID]pipeline.Instant{theJob: 0}, reply: b.clock.Now().Add(2 * b.policy.Retention)}
	b.cfg.Keeper, b.cfg.KeepReplies = k, k.keep
}

func (b *bench) keeper() *keeper { return b.cfg.Keeper.(*keeper) }

// outlives checks that the reply is there as long as the rest of the job.
func (b *bench) outlives() {
	b.Helper()
	k := b.keeper()
	if end := k.ends[theJob]; end == 0 || k.reply < end {
		b.Errorf("the items go at %s, the reply at %s; want them to have an end, and the reply no earlier one", end, k.reply)
	}
}

const day = 24 * time.Hour

func TestKeeping(t *testing.T) {
	in(t, "what a job left gets its end an hour after it, once, and its replies are left alone", func(b *bench) {
		b.every(time.Minute, 2*time.Hour)
		b.job(pipeline.JobCompleted, func(j *pipeline.Job) { j.EndedAt = b.clock.Now() })
		b.every(time.Minute, 59*time.Minute)
		k := b.keeper()
		if k.ends[theJob] != 0 {
			b.Errorf("after 59 minutes it goes at %s, want it unmarked: a late worker may still write", k.ends[theJob])
		}
		if report := b.sweep(2 * time.Minute); report["marked"] != 1 || k.kept != 0 {
			b.Errorf("got %v and %d keepings, want it marked and its replies unread", report, k.kept)
		}
		b.outlives()
		if report := b.sweep(time.Hour); report["marked"] != 0 {
			b.Errorf("got %v, want it marked once", report)
		}
	}, kept)
	in(t, "every job of every page is marked, whatever one of them does", func(b *bench) {
		k := b.keeper()
		for _, id := range []pipeline.JobID{"a-1", "b-1", "c-1"} {
			ended := pipelinetest.NewJob(id, func(j *pipeline.Job) { j.Status, j.EndedAt = pipeline.JobCompleted, pipelinetest.T0 })
			_, _, err := b.store.Submit(b.ctx, ended, pipelinetest.NewRow(id, pipeline.SplitTask))
			b.must(err)
			k.ends[id] = 0
		}
		k.refuses = errors.New("no")
		b.clock.Advance(2 * time.Hour)
		if _, err := b.Sweep(b.ctx); !errors.Is(err, k.refuses) {
			b.Errorf("got error %v, want what went wrong", err)
		}
		for id, end := range k.ends {
			if (end == 0) != (id == theJob) {
				b.Errorf("job %s goes at %s", id, end)
			}
		}
	}, kept)
	for name, sweeps := range map[string]time.Duration{"by one reaper": time.Hour, "by a reaper that is new each day": day} {
		in(t, "a job that is paused for three years has all of its replies when it goes on, and after its end, "+name, func(b *bench) {
			b.job(pipeline.JobPaused, func(j *pipeline.Job) { j.PausedAt = b.clock.Now() })
			for range 3 * 365 {
				b.every(sweeps, day)
				if sweeps == day {
					b.Reaper = reap.New(b.cfg)
				}
			}
			k := b.keeper()
			if k.reply.Sub(b.clock.Now()) < b.policy.Retention {
				b.Errorf("the reply goes at %s, it is %s", k.reply, b.clock.Now())
			}
			if want := 3 * 365 * int(day) / int(b.policy.Retention/4); k.kept < want || k.kept > want+1 {
				b.Errorf("its replies were read %d times, want %d", k.kept, want)
			}
			b.job(pipeline.JobCompleted, func(j *pipeline.Job) { j.EndedAt = b.clock.Now() })
			b.sweep(2 * time.Hour)
			b.outlives()
		}, kept)
	}
	in(t, "a job that is redriven again and again on the last day keeps its replies", func(b *bench) {
		for range 20 {
			b.job(pipeline.JobPartial, func(j *pipeline.Job) { j.EndedAt = b.clock.Now() })
			b.sweep(2 * time.Hour)
			b.outlives()
			b.clock.Advance(b.policy.Retention - 3*time.Hour)
			b.keeper().ends[theJob] = 0 // a redrive takes the marks off
		}
	}, kept)
	in(t, "marks that a dead reaper left on an open job do not stay", func(b *bench) {
		b.keeper().ends[theJob] = b.clock.Now().Add(b.policy.Retention)
		b.job(pipeline.JobPaused)
		b.every(day, b.policy.Retention/4+day)
		if end := b.keeper().ends[theJob]; end != 0 {
			b.Errorf("its items go at %s, want never: it is open", end)
		}
	}, kept)
}
