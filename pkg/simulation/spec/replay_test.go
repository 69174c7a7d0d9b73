package spec

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// unit is what a tick of the model is in milliseconds of claims; ready_at and due_at have a clock of their own, since in
// the model they pass by themselves.
const unit = 1000

// replay takes the steps of the model's walk to a real store.
type replay struct {
	*testing.T
	m      *Task
	store  *memory.Store
	ref    pipeline.Ref
	ticks  int64
	ready  pipeline.Instant // the clock of ready_at and due_at: later with every write
	ids    map[int8]string  // of the model's claim ids, which are used again
	issued int
	read   map[Actor]pipeline.Instant // due_at as each of those who read the row saw it
	late   pipeline.Instant           // as the late copy says
	walked []string
	landed map[Op]int
	failed map[Op]int
}

func newReplay(t *testing.T, m *Task) *replay {
	r := &replay{
		T: t, m: m, store: memory.New(), ref: pipeline.Ref{Job: "job", ID: pipeline.WorkTask(0)}, ready: pipelinetest.T0,
		ids: map[int8]string{}, read: map[Actor]pipeline.Instant{}, landed: map[Op]int{}, failed: map[Op]int{},
	}
	row := pipelinetest.NewRow(r.ref.Job, r.ref.ID, func(row *pipeline.Task) {
		row.Stages, row.MaxTries, row.DueAt = int(m.Stages), int(m.TryCap), r.ready.Add(time.Hour)
	})
	split := pipelinetest.NewRow(r.ref.Job, pipeline.SplitTask)
	if _, _, err := r.store.Submit(t.Context(), pipelinetest.NewJob(r.ref.Job), split); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.PutTasks(t.Context(), []pipeline.Task{row}); err != nil {
		t.Fatal(err)
	}
	return r
}

// at is the instant so many ticks from now.
func (r *replay) at(left int8) pipeline.Instant {
	return pipelinetest.T0 + pipeline.Instant((r.ticks+int64(left))*unit)
}

func (r *replay) fail(format string, args ...any) {
	r.Helper()
	for i, line := range r.walked {
		r.Logf("%3d  %s", i+1, line)
	}
	r.Fatalf(format, args...)
}

// step replays one step and compares the rows after it.
func (r *replay) step(before *World, s Step[World]) {
	r.walked = append(r.walked, s.Says.String())
	row, _ := r.store.Task(r.Context(), r.ref)
	r.ready++
	switch {
	case s.Says.Text == tick:
		r.ticks++
	case s.Who == Ready:
		r.ready = max(r.ready, row.ReadyAt)
	case s.Who == Due:
		r.ready = max(r.ready, row.DueAt)
	}
	if s.Write.Op != NoOp {
		r.write(row, before, s)
	}
	for i := range s.To.Worker {
		if id := s.To.Worker[i].Claim; id != 0 && id != before.Worker[i].Claim {
			r.issued++
			r.ids[id] = fmt.Sprintf("claim-%d", r.issued)
		}
	}
	r.remember(before, s)
	r.compare(&s.To)
}

// remember keeps due_at as it was when somebody read the row.
func (r *replay) remember(before *World, s Step[World]) {
	row, err := r.store.Task(r.Context(), r.ref)
	if err != nil {
		return
	}
	keep := func(who Actor, had, has Reading) {
		if has.Same && (has != had || (s.Lands && s.Write.setsDue())) {
			r.read[who] = row.DueAt
		}
	}
	keep(Reaper, before.Reaper.Seen, s.To.Reaper.Seen)
	for i := range s.To.Worker {
		keep(Worker0+Actor(i), before.Worker[i].Seen, s.To.Worker[i].Seen)
	}
}

// write does the step's write on the store, which must do as the model says.
func (r *replay) write(row pipeline.Task, before *World, s Step[World]) {
	w := s.Write
	seen := r.read[s.Who]
	if before.Late.Op != NoOp && s.To.Late.Op == NoOp && s.Who == Fault {
		seen = r.late
	} else if s.To.Late.Op != NoOp && before.Late.Op == NoOp {
		seen = r.read[r.reader(before, w)]
		r.late = seen
	} else if s.Who == Fault {
		seen = r.read[r.reader(before, w)]
	}
	err := r.do(row, w, seen)
	refused := errors.Is(err, pipeline.ErrFenced)
	if err != nil && !refused {
		r.fail("%s: %v", w.Op, err)
	}
	if refused == s.Lands {
		r.fail("the %s %+v: the store says %v, and the model that it lands: %v\nrow %+v", w.Op, w, err, s.Lands, row)
	}
	if refused {
		r.failed[w.Op]++
	} else {
		r.landed[w.Op]++
	}
	if w.Op == OpClaim && refused {
		r.why(err, w, s)
	}
}

// reader is who wrote what a fault happened to. If two have read the row as it is, they have read the same.
func (r *replay) reader(before *World, w Write) Actor {
	for i := range before.Worker {
		if before.Worker[i].Seen.Same && placeOps[before.Worker[i].At] == w.Op {
			return Worker0 + Actor(i)
		}
	}
	return Reaper
}

func (r *replay) do(row pipeline.Task, w Write, due pipeline.Instant) error {
	ctx, store := r.Context(), r.store
	fence := pipeline.Fence{Ref: r.ref, Generation: int64(w.Gen), ClaimID: r.ids[w.Claim]}
	seen := pipeline.Task{Ref: r.ref, Status: statuses[w.Status], Generation: int64(w.Gen), Rings: int(w.Rings), Accepted: int(w.Acc), DueAt: due}
	later := r.ready + 1_000_000
	readyAt, dueAt := r.ready, later
	switch {
	case w.V.Wait:
		readyAt = r.ready + 500_000
	case w.V.Status == Pending && !w.V.Counted:
		dueAt = r.ready
	}
	var err error
	switch w.Op {
	case OpClaim:
		_, err = store.Claim(ctx, pipeline.ClaimWrite{
			Ref: r.ref, Seen: int64(w.Gen), MaxAttempts: int(w.Cap), Worker: "worker", ClaimID: r.ids[w.Claim], Alone: w.Alone,
			Now: r.ready, Expires: r.at(w.Left), Due: later,
		})
	case OpRenew:
		_, err = store.Renew(ctx, pipeline.RenewWrite{Fence: fence, Expires: r.at(w.Left), Answers: int(yes(w.New)), Allowed: int(w.Allowed)})
	case OpCheckpoint:
		_, err = store.Checkpoint(ctx, pipeline.CheckpointWrite{Fence: fence, Stage: int(w.Acc), Allowed: int(w.Allowed)})
	case OpEnd:
		_, err = store.End(ctx, pipeline.EndWrite{Fence: fence, Verdict: verdictOf(w.V), Accepted: int(w.Acc), EndedBy: fence.ClaimID, Allowed: int(w.Allowed), ReadyAt: readyAt, DueAt: dueAt})
	case OpExpire:
		_, err = store.Expire(ctx, pipeline.ExpireWrite{
			Seen: seen, Verdict: verdictOf(w.V), Now: r.at(w.Skew - w.Age), MaxSkew: time.Duration(r.m.MaxSkew) * unit * time.Millisecond, ReadyAt: readyAt, DueAt: dueAt,
		})
	case OpRing:
		_, err = store.Ring(ctx, pipeline.RingWrite{Seen: seen, Due: later, Count: int(w.Count)})
	case OpPostpone:
		_, err = store.Postpone(ctx, seen, later)
	case OpUnpark:
		_, err = store.Unpark(ctx, seen, r.ready)
	case OpClose:
		_, err = store.Close(ctx, pipeline.CloseWrite{Seen: seen, Status: statuses[w.V.Status], Due: later})
	case OpBuried:
		err = store.Buried(ctx, r.ref, int64(w.Gen))
	case OpRedrive:
		job, readErr := store.Job(ctx, r.ref.Job)
		if readErr != nil {
			return readErr
		}
		reopened := job
		reopened.Epoch++
		_, _, err = store.Redrive(ctx, pipeline.RedriveWrite{Task: seen, Job: job, Accepted: int(w.Acc), Reopened: reopened, MaxTries: row.MaxTries + int(r.m.TryCap), Now: r.ready})
	case OpVanish:
		store.DeleteTask(r.ref)
	}
	return err
}

var statuses = []pipeline.TaskStatus{pipeline.TaskPending, pipeline.TaskClaimed, pipeline.TaskParked, pipeline.TaskDone, pipeline.TaskAbandoned, pipeline.TaskCancelled}

func verdictOf(v Verdict) pipeline.Verdict {
	return pipeline.Verdict{Status: statuses[v.Status], Attempts: int(v.Att), Deferrals: int(v.Def), Losses: int(v.Los), Counted: v.Counted}
}

// why checks that a refused claim is refused for the reason for which the model's worker goes where it goes.
func (r *replay) why(err error, w Write, s Step[World]) {
	i := s.Who - Worker0
	if s.Who < Worker0 || i >= MaxWorkers {
		return // a late copy: nobody hears of it
	}
	old, _ := pipeline.Old(err)
	why := pipeline.WhyRefused(old, pipeline.ClaimWrite{MaxAttempts: int(w.Cap), Now: r.ready, Alone: w.Alone})
	var want []pipeline.Refusal
	switch to := s.To.Worker[i]; {
	case to.At == Exhausting:
		want = []pipeline.Refusal{pipeline.RefusedExhausted}
	case to.At == LossWrite:
		want = []pipeline.Refusal{pipeline.RefusedHeld}
	case to.At == Asking && to.Alone && !w.Alone:
		want = []pipeline.Refusal{pipeline.RefusedAlone}
	case to.At == Idle:
		want = []pipeline.Refusal{pipeline.RefusedHeld, pipeline.RefusedEarly}
	case to.At == Deleting:
		want = []pipeline.Refusal{pipeline.RefusedMissing, pipeline.RefusedEnded, pipeline.RefusedParked, pipeline.RefusedHeld, pipeline.RefusedEarly}
	default:
		return // a second sending
	}
	if !slices.Contains(want, why) {
		r.fail("a claim is refused as %s, and the model's worker goes on as if it were one of %v", why, want)
	}
}

// compare holds the store's row to the model's.
func (r *replay) compare(s *World) {
	row, err := r.store.Task(r.Context(), r.ref)
	if gone := errors.Is(err, pipeline.ErrNotFound); gone || s.Row.Gone {
		if !gone || !s.Row.Gone {
			r.fail("the row is gone: %v in the store, %v in the model", gone, s.Row.Gone)
		}
		return
	}
	m := &s.Row
	got := fmt.Sprintln(row.Status, row.Generation, row.Attempts, row.Deferrals, row.Losses, row.Accepted, row.Allowed, row.MaxTries, row.Rings, row.Answers > 0, row.Buried, row.Listed())
	want := fmt.Sprintln(m.Status, m.Gen, m.Att, m.Def, m.Los, m.Acc, m.Allowed, m.MaxTries, m.Rings, m.New, m.Buried, m.Listed())
	if got != want {
		r.fail("the row in the store and in the model:\n%s%s", got, want)
	}
	for n := range m.Acc {
		if row.Body(int(n)+1) != int64(m.Body[n]) {
			r.fail("stage %d is of generation %d, and %d in the model", n+1, row.Body(int(n)+1), m.Body[n])
		}
	}
	switch {
	case m.Status == Claimed && row.ExpiresAt != r.at(m.Left):
		r.fail("the claim expires at %v, and in the model at %v", row.ExpiresAt, r.at(m.Left))
	case m.Status == Pending && (row.ReadyAt <= r.ready) != m.Ready:
		r.fail("ready at %v, at %v, and in the model: %v", row.ReadyAt, r.ready, m.Ready)
	case m.Due && m.Listed() && row.DueAt > r.ready:
		r.fail("due at %v, at %v, and in the model it is due", row.DueAt, r.ready)
	case m.EndedBy > 0 && row.EndedBy != r.ids[m.EndedBy]:
		r.fail("ended by %q, and in the model by %q", row.EndedBy, r.ids[m.EndedBy])
	}
}

// worldOf is a world of a seed: some of everything, twice.
func worldOf(random *rand.Rand) Bounds {
	some := func(most int) int8 { return int8(random.IntN(most + 1)) }
	return Bounds{
		Workers: 1 + some(2), Stages: 1 + some(1), MaxAttempts: 2 + some(1), MaxDeferrals: some(2), MaxReceives: 4 * some(1), MaxRings: 3,
		TTL: 1 + some(1), MaxSkew: some(2), TryCap: some(3), Answers: some(3), Deep: 100, Outcomes: uint(random.IntN(1<<9) & random.IntN(1<<9)),
		Crashes: some(3), ReaperCrashes: some(2), LostAnswers: some(3), LateCopies: some(4), Doubled: some(2), LostBells: some(2),
		Pauses: some(4), Cancels: some(1), Deadlines: some(1), Redrives: some(2), Vanishes: int8(random.IntN(20) / 19), Deploys: some(1),
	}
}

func TestTheStoreDoesAsTheModelSays(t *testing.T) {
	landed, failed := map[Op]int{}, map[Op]int{}
	places, moves := map[At]bool{}, map[Move]bool{}
	steps := 0
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 1))
		m := &Task{Bounds: worldOf(random)}
		r := newReplay(t, m)
		state := m.Start()
		for range 200 {
			next := m.Next(&state, nil)
			if len(next) == 0 {
				break
			}
			step := next[random.IntN(len(next))]
			// Fewer faults; and in every other walk a reaper that acts on what it read long ago.
			for again := uint64(0); again < 1+seed%2 && (step.Who == Fault || seed%2 == 1 && step.Who == Reaper); again++ {
				step = next[random.IntN(len(next))]
			}
			r.step(&state, step)
			state = step.To
			steps++
			moves[state.Reaper.Does] = true
			for _, w := range state.Worker {
				places[w.At] = true
			}
		}
		for op, n := range r.landed {
			landed[op] += n
		}
		for op, n := range r.failed {
			failed[op] += n
		}
	}
	for op := OpClaim; op <= OpRedrive; op++ {
		t.Logf("%-12s %6d landed, %6d refused", op, landed[op], failed[op])
		if landed[op] == 0 || failed[op] == 0 {
			t.Errorf("%s: %d landed and %d were refused; each must have happened", op, landed[op], failed[op])
		}
	}
	for place := Idle; place < lastPlace; place++ {
		if !places[place] {
			t.Errorf("no worker was ever at place %d", place)
		}
	}
	for move := Rest; move < JobRead; move++ {
		if !moves[move] {
			t.Errorf("the reaper never made move %d", move)
		}
	}
	t.Logf("%d steps", steps)
}

func TestTheRuleForGivingUpIsTheModels(t *testing.T) {
	p := pipeline.DefaultPolicy()
	outcomes := map[Outcome]pipeline.Ending{
		OK: {Outcome: pipeline.Succeeded}, Failed: {Outcome: pipeline.FailedNow}, Deferral: {Outcome: pipeline.Deferral},
		Shut:      {Outcome: pipeline.Deferral, Failure: pipeline.Fail(pipeline.Shutdown, "asked to stop")},
		Permanent: {Outcome: pipeline.Permanent}, Stopped: {Outcome: pipeline.Stopped}, ParkedNow: {Outcome: pipeline.Parked},
		Overran: {Outcome: pipeline.Overran}, Died: {Outcome: pipeline.Died},
	}
	n := 0
	for bits := range 4 * 4 * 5 * 3 * 2 * 3 {
		part := func(of int) int8 {
			v := bits % of
			bits /= of
			return int8(v)
		}
		s := Standing{Att: part(4), Def: part(4), Los: part(5), Acc: part(3), New: part(2) == 1}
		m := &Task{Bounds: Bounds{Stages: 2, MaxAttempts: 1 + part(3), MaxDeferrals: 2}}
		p.MaxAttempts, p.MaxDeferrals = int(m.MaxAttempts), int(m.MaxDeferrals)
		real := pipeline.Standing{Attempts: int(s.Att), Deferrals: int(s.Def), Losses: int(s.Los), Accepted: int(s.Acc), Stages: 2, Answers: int(yes(s.New))}
		for o, e := range outcomes {
			n++
			v := pipeline.Next(p, real, e, pipelinetest.T0, 0.5)
			want := m.next(m.MaxAttempts, s, o)
			if o == OK && s.Acc < 2 {
				continue // never said of unfinished work
			}
			got := Verdict{want.Status, int8(v.Attempts), int8(v.Deferrals), int8(v.Losses), v.Wait > 0, v.Counted}
			if got != want || v.Status != statuses[want.Status] {
				t.Errorf("%s of %+v under %d attempts: got %s %+v, and the model says %s %+v", o, s, m.MaxAttempts, v.Status, got, want.Status, want)
			}
			due := v.DueAt(p, pipelinetest.T0) <= pipelinetest.T0
			if row := (Row{}); v.Status == pipeline.TaskPending {
				m.become(&row, Write{V: want})
				if row.Due != due {
					t.Errorf("%s of %+v: due at once %v, and in the model %v", o, s, due, row.Due)
				}
			}
		}
	}
	t.Logf("%d verdicts", n)
}
