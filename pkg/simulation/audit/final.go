package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

// AllEnded says that no row and no job is left that has not ended, and no dead letter to be sent.
func (a *Auditor) AllEnded() bool {
	if len(a.jobs) == 0 {
		return false
	}
	for _, j := range a.jobs {
		if !j.Status.Ended() {
			return false
		}
	}
	for _, r := range a.rows {
		if !r.Status.Ended() || r.Status == pipeline.TaskAbandoned && !r.Buried {
			return false
		}
	}
	return true
}

// End looks at everything once more, when the world is over.
func (a *Auditor) End(at pipeline.Instant, letters []pipeline.DeadLetter) {
	for _, ref := range a.order {
		a.finalRow(ref, letters)
	}
	for id, j := range a.jobs {
		a.finalJob(id, j)
	}
	for shard := range pipeline.DueShards {
		a.index(shard, at)
	}
	for s, call := range a.unsaved {
		if w := a.worker(s.by); !w.dead && !a.restored {
			a.check("P8", s.by+" "+call, false, "an answer that was paid for was not stored, by a worker that lives")
		}
	}
}

func (a *Auditor) finalRow(ref pipeline.Ref, letters []pipeline.DeadLetter) {
	known, id := a.rows[ref], ref.String()
	now, err := a.cfg.Store.Task(a.ctx, ref)
	if !a.check("P1", id, err == nil, "the row is gone: %v", err) {
		return
	}
	a.check("P5", id, now.Status == known.Status && now.Generation == known.Generation && now.Accepted == known.Accepted,
		"it was %s at generation %d, and is %s at %d", known.Status, known.Generation, now.Status, now.Generation)
	a.check("P10", id, now.Status.Ended(), "it is %s in the end", now.Status)
	a.check("P3", id, known.charged <= now.MaxTries || a.restored, "%d tries were sent and charged, the cap is %d", known.charged, now.MaxTries)
	for _, c := range known.claims {
		ender := c.id
		if c.ended == string(Expire) {
			ender = pipeline.ExpiredBy
		}
		if a.check("P4", id, c.ended != "" || a.restored, "claim %s of %s has no end", c.id, c.by) && !a.restored {
			_, found := a.item(ref.Job, pipeline.RecordKey(ref.ID, c.generation, ender))
			a.check("P4", id, found, "attempt %d of %s left no record", c.generation, c.by)
			if c.ended == string(EndClaim) && len(a.jobs) == 1 && ref.ID.Kind() == pipeline.TaskWork { // whatever landed late
				named := a.journal(ref, c.generation)
				a.check("P4", id, named >= c.back, "%d tries came back in attempt %d, its journal names %d in the end", c.back, c.generation, named)
			}
		}
	}
	if now.Status == pipeline.TaskAbandoned {
		sent := slices.ContainsFunc(letters, func(l pipeline.DeadLetter) bool {
			return l.Job == ref.Job && l.Task == ref.ID && !l.Native && !l.Reason.None() && (len(l.Context) > 0 || len(known.claims) == 0)
		})
		a.check("P4", id, sent && a.letters[ref] > 0 || a.restored, "it was abandoned, and no dead letter says why")
	}
}

func (a *Auditor) finalJob(id pipeline.JobID, j *job) {
	a.check("P10", string(id), j.Status.Ended(), "the job is %s in the end", j.Status)
	for epoch, n := range j.ends {
		a.check("P2", string(id), n == 1, "epoch %d ended %d times", epoch, n)
	}
	a.feedInTheEnd(j)
	b, err := a.cfg.Store.Budget(a.ctx, id)
	if err != nil || a.restored {
		return
	}
	a.check("P3", string(id), b.Spent <= b.Ceiling, "%s were spent, the ceiling is %s", b.Spent, b.Ceiling)
	open := pipeline.Money(0)
	for _, r := range b.Open {
		open += r.Amount
	}
	a.check("P3", string(id), b.Spent+open >= j.billed, "%s were billed, and %s are in the books", j.billed, b.Spent+open)
}

// index checks that nothing which must be looked at has fallen out of a part of the index, and nothing else is in it.
func (a *Auditor) index(shard int, at pipeline.Instant) {
	listed := map[pipeline.Ref]bool{}
	for cursor := ""; ; {
		rows, next, err := a.cfg.Store.Due(a.ctx, shard, at.Add(1000*time.Hour), cursor)
		a.check("P10", fmt.Sprint("shard ", shard), err == nil, "the index cannot be read: %v", err)
		for _, r := range rows {
			listed[r.Ref] = true
		}
		if cursor = next; err != nil || next == "" {
			break
		}
	}
	for _, ref := range a.order {
		if ref.DueShard() != shard {
			continue
		}
		r := a.rows[ref]
		needs := !r.Status.Ended() || r.Status == pipeline.TaskAbandoned && !r.Buried
		a.check("P10", ref.String(), listed[ref] == needs, "it is %s, and in the index: %v", r.Status, listed[ref])
	}
}

// EndState is how everything ended, in words that are the same for worlds that ended alike.
func (a *Auditor) EndState() string {
	var parts []string
	for _, j := range a.jobs {
		parts = append(parts, fmt.Sprintf("%s in epoch %d", j.Status, j.Epoch))
	}
	slices.Sort(parts)
	for _, ref := range a.order {
		r := a.rows[ref]
		parts = append(parts, fmt.Sprintf("%s %s %d/%d a%d d%d g%d", ref.ID, r.Status, r.Accepted, r.Stages, r.Attempts, r.Deferrals, min(r.Generation, 9)))
	}
	return strings.Join(parts, "; ")
}
