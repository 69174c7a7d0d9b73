package memory_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// claimsAtMost is how often a task can be claimed, whatever happens to it, until it ends or a person redrives it.
//
// Each claim ends in one of four ways that leave the row to be claimed again, and each has a number that ends it:
//
//	counted   MaxAttempts of one stage in a row. The claim that gets a stage accepted is the first of the next one, so
//	          there are stages x (MaxAttempts - 1) + 1 of them: the last is the one that gives up
//	deferral  MaxDeferrals in the task's life
//	overrun   refunded if it brought new answers: each cell has one, and a stored one is no news
//	parked    one for each pause, which is a person's
func claimsAtMost(p pipeline.Policy, stages, cells, pauses int) int {
	return stages*(p.MaxAttempts-1) + 1 + p.MaxDeferrals + cells + pauses
}

// walk takes one row through the store, as workers and reaper do.
type walk struct {
	*testing.T
	store  *memory.Store
	policy pipeline.Policy
	row    pipeline.Task
	now    pipeline.Instant
	cells  int // answers that can still be new
	pauses int
	claims int
}

func newWalk(t *testing.T, p pipeline.Policy, stages, cells, pauses int) *walk {
	w := &walk{T: t, store: memory.New(), policy: p, now: pipelinetest.T0, cells: cells, pauses: pauses}
	w.row = pipelinetest.NewRow("job", pipeline.WorkTask(0), func(r *pipeline.Task) { r.Stages = stages })
	_, err := w.store.PutTasks(t.Context(), []pipeline.Task{w.row})
	w.must(err)
	return w
}

func (w *walk) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// claim claims the row at the first moment at which it may be.
func (w *walk) claim() {
	w.Helper()
	w.now = max(w.now, w.row.ReadyAt) + 1
	write := pipelinetest.ClaimOf(w.row, "worker", w.now)
	write.MaxAttempts, write.Alone = w.policy.MaxAttempts, true
	var err error
	w.row, err = w.store.Claim(w.Context(), write)
	w.must(err)
	w.claims++
}

func (w *walk) accept() {
	w.Helper()
	var err error
	w.row, err = w.store.Checkpoint(w.Context(), pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: w.row}.Fence(), Stage: w.row.Accepted + 1})
	w.must(err)
}

func (w *walk) answer() {
	w.Helper()
	w.now++
	var err error
	w.row, err = w.store.Renew(w.Context(), pipeline.RenewWrite{
		Fence: pipeline.Claim{Task: w.row}.Fence(), Expires: w.now.Add(w.policy.ClaimTTL), Answers: w.row.Answers + 1,
	})
	w.must(err)
	w.cells--
}

// end ends the claim as the rule says: a loss by the reaper, all else by the worker.
func (w *walk) end(o pipeline.Outcome, jitter float64) {
	w.Helper()
	e := pipeline.Ending{Outcome: o, Failure: pipeline.Fail(pipeline.Broken, "scripted")}
	v := pipeline.Next(w.policy, pipeline.StandingOf(w.row, 0), e, w.now, jitter)
	var err error
	if o == pipeline.Died {
		w.now = w.row.ExpiresAt.Add(w.policy.MaxSkew) + 1
		v = pipeline.Next(w.policy, pipeline.StandingOf(w.row, 0), e, w.now, jitter)
		w.row, err = w.store.Expire(w.Context(), pipelinetest.ExpireOf(w.row, v, w.now))
	} else {
		w.row, err = w.store.End(w.Context(), pipelinetest.EndOf(w.row, v, e.Failure, w.now))
	}
	w.must(err)
	if w.row.Status == pipeline.TaskParked {
		w.row, err = w.store.Unpark(w.Context(), w.row, w.now)
		w.must(err)
	}
}

// P7: any history of claims, acceptances, answers, endings, losses and pauses ends within the number of the policy.
func TestEveryWalkOfARowEnds(t *testing.T) {
	outcomes := []pipeline.Outcome{pipeline.Succeeded, pipeline.FailedNow, pipeline.Deferral, pipeline.Died, pipeline.Died, pipeline.Overran, pipeline.Parked}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 23))
		p := pipeline.DefaultPolicy()
		p.MaxAttempts, p.MaxDeferrals, p.DeferralLimit = 1+r.IntN(4), r.IntN(6), time.Hour
		stages, cells, pauses := 1+r.IntN(4), r.IntN(8), r.IntN(3)
		w := newWalk(t, p, stages, cells, pauses)
		most := claimsAtMost(p, stages, cells, pauses)
		begun := int64(0)
		for redrives := 0; ; {
			w.claim()
			for w.row.Accepted < stages && r.IntN(6) == 0 {
				w.accept()
			}
			for w.cells > 0 && r.IntN(3) == 0 {
				w.answer()
			}
			o := outcomes[r.IntN(len(outcomes))]
			if o == pipeline.Parked {
				if w.pauses == 0 {
					o = pipeline.FailedNow
				}
				w.pauses = max(0, w.pauses-1)
			}
			w.end(o, r.Float64())
			if w.claims > most {
				t.Fatalf("seed %d: claimed %d times with %d stages, %d cells, %d pauses under %d attempts and %d deferrals; want at most %d",
					seed, w.claims, stages, cells, pauses, p.MaxAttempts, p.MaxDeferrals, most)
			}
			if w.row.Generation != begun+int64(w.claims) {
				t.Fatalf("seed %d: generation %d after %d claims", seed, w.row.Generation, w.claims)
			}
			if !w.row.Status.Ended() {
				continue
			}
			if redrives == 2 || w.row.Status == pipeline.TaskDone {
				break
			}
			redrives++
			w.redrive()
			begun, w.claims = w.row.Generation, 0
			most = claimsAtMost(p, stages, w.cells, w.pauses)
		}
	}
}

// redrive gives the row its attempts back, from the stages that it has.
func (w *walk) redrive() {
	w.Helper()
	job := pipelinetest.NewJob("job", func(j *pipeline.Job) { j.Status = pipeline.JobPartial })
	if stands, err := w.store.Job(w.Context(), "job"); err == nil {
		job = stands
	} else {
		_, _, err := w.store.Submit(w.Context(), job, pipelinetest.NewRow("job", pipeline.SplitTask))
		w.must(err)
	}
	reopened := job
	reopened.Status, reopened.Epoch = pipeline.JobRunning, job.Epoch+1
	var err error
	w.row, _, err = w.store.Redrive(w.Context(), pipeline.RedriveWrite{
		Task: w.row, Job: job, Accepted: w.row.Accepted, Reopened: reopened, MaxTries: w.row.MaxTries + 1, Now: w.now,
	})
	w.must(err)
}

// The number is no larger than it need be: there is a history that takes every claim of it.
func TestTheLongestWalkIsTheNumberOfThePolicy(t *testing.T) {
	for _, stages := range []int{1, 2, 5} {
		p := pipeline.DefaultPolicy()
		const cells, pauses = 7, 2
		w := newWalk(t, p, stages, cells, pauses)
		for range p.MaxDeferrals {
			w.claim()
			w.end(pipeline.Deferral, 0)
		}
		for range cells {
			w.claim()
			w.answer()
			w.end(pipeline.Overran, 0)
		}
		for range pauses {
			w.claim()
			w.end(pipeline.Parked, 0)
		}
		for stage := 1; stage <= stages; stage++ {
			for w.row.Attempts < p.MaxAttempts-1 {
				w.claim()
				w.end(pipeline.FailedNow, 0)
			}
			w.claim()
			if stage < stages {
				w.accept()
			}
			w.end(pipeline.FailedNow, 0)
		}
		if want := claimsAtMost(p, stages, cells, pauses); w.row.Status != pipeline.TaskAbandoned || w.claims != want {
			t.Errorf("%d stages: it is %s after %d claims, want abandoned after %d", stages, w.row.Status, w.claims, want)
		}
	}
}
