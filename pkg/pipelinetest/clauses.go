package pipelinetest

import (
	"slices"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// A row write: a row that it is right for, and the write as someone makes it who has seen that row.
type rowWrite struct {
	name string
	only []pipeline.TaskStatus // the statuses that it is for
	row  func(*pipeline.Task)
	do   func(b *bench, seen pipeline.Task) (pipeline.Task, error)
	sets func(want *pipeline.Task) // what it sets in the row, all of it
	// The clauses of its condition: each edit of the row breaks one of them and nothing else.
	clauses []clause
	// The rows at the very edge of a clause, for which it still succeeds.
	edges []clause
}

type clause struct {
	says string
	edit func(*pipeline.Task)
}

const (
	soon  = T0 + 1000
	later = T0 + 60_000
)

// busy fills every column, so that a write which sets too much or too little shows.
func busy(row *pipeline.Task) {
	row.Generation, row.Attempts, row.Deferrals, row.Losses = 4, 2, 5, 1
	row.Accepted, row.Bodies = 1, []int64{2}
	row.ClaimedBy, row.ClaimID, row.ClaimedAt, row.ExpiresAt = "w4", "c4", T0, T0+20_000
	row.Stage, row.StageAt, row.Answers = 2, T0+1, 7
	row.Allowed, row.MaxTries = 40, 120
	row.ReadyAt, row.DueAt, row.Ring, row.Rings = T0, T0+5000, 9, 3
	row.EndedBy, row.Reason = "c3", pipeline.Fail(pipeline.Ambiguous, "before")
}

func status(s pipeline.TaskStatus) func(*pipeline.Task) {
	return func(row *pipeline.Task) {
		busy(row)
		row.Status = s
	}
}

var allStatuses = []pipeline.TaskStatus{
	pipeline.TaskPending, pipeline.TaskClaimed, pipeline.TaskParked,
	pipeline.TaskDone, pipeline.TaskAbandoned, pipeline.TaskCancelled,
}

var (
	pending   = []pipeline.TaskStatus{pipeline.TaskPending}
	claimed   = []pipeline.TaskStatus{pipeline.TaskClaimed}
	parked    = []pipeline.TaskStatus{pipeline.TaskParked}
	abandoned = []pipeline.TaskStatus{pipeline.TaskAbandoned}
	waiting   = []pipeline.TaskStatus{pipeline.TaskPending, pipeline.TaskParked}
)

func not(s ...pipeline.TaskStatus) []clause {
	var clauses []clause
	for _, other := range allStatuses {
		if !contains(s, other) {
			clauses = append(clauses, clause{"it is " + string(other), func(row *pipeline.Task) { row.Status = other }})
		}
	}
	return clauses
}

func contains(all []pipeline.TaskStatus, s pipeline.TaskStatus) bool {
	return slices.Contains(all, s)
}

func fenced(more ...clause) []clause {
	return append(append(not(pipeline.TaskClaimed),
		clause{"a newer claim exists", func(row *pipeline.Task) { row.Generation++ }},
		clause{"the row went back to an older claim", func(row *pipeline.Task) { row.Generation-- }},
		clause{"another claim has the same generation", func(row *pipeline.Task) { row.ClaimID = "other" }}),
		more...)
}

func seenSo(statuses []clause) []clause {
	return append(statuses,
		clause{"it was claimed since", func(row *pipeline.Task) { row.Generation++ }},
		clause{"it was rung since", func(row *pipeline.Task) { row.Rings++ }},
		clause{"its count of rings was reset since", func(row *pipeline.Task) { row.Rings = 0 }},
		clause{"its due time was moved on since", func(row *pipeline.Task) { row.DueAt++ }},
		clause{"its due time was moved back since", func(row *pipeline.Task) { row.DueAt-- }})
}

var verdict = pipeline.Verdict{Status: pipeline.TaskPending, Attempts: 1, Deferrals: 6, Losses: 0, Wait: time.Second}

func setVerdict(row *pipeline.Task) {
	row.Status, row.Attempts, row.Deferrals, row.Losses = pipeline.TaskPending, 1, 6, 0
	row.ReadyAt, row.DueAt = soon+10, soon+20
	row.Reason = pipeline.Fail(pipeline.Throttled, "now")
}

// claimWrites are what a worker does to a row.
var claimWrites = []rowWrite{
	{
		name: "Claim", only: pending, row: status(pipeline.TaskPending),
		do: func(b *bench, seen pipeline.Task) (pipeline.Task, error) {
			return b.Store.Claim(b.ctx, pipeline.ClaimWrite{
				Ref: seen.Ref, Seen: seen.Generation, MaxAttempts: 3, Worker: "w5", ClaimID: "c5",
				Now: soon, Expires: soon + 20_000, Due: soon + 25_000,
			})
		},
		sets: func(row *pipeline.Task) {
			row.Status, row.Generation, row.Attempts = pipeline.TaskClaimed, 5, 3
			row.ClaimedBy, row.ClaimID, row.ClaimedAt, row.ExpiresAt, row.DueAt = "w5", "c5", soon, soon+20_000, soon+25_000
			row.Rings, row.Answers = 0, 0
		},
		clauses: append(not(pipeline.TaskPending),
			clause{"it is not ready", func(row *pipeline.Task) { row.ReadyAt = soon + 1 }},
			clause{"a newer generation stands", func(row *pipeline.Task) { row.Generation++ }},
			clause{"an older generation stands", func(row *pipeline.Task) { row.Generation-- }},
			clause{"its attempts are used up", func(row *pipeline.Task) { row.Attempts = 3 }},
			clause{"it has more attempts than a lower cap allows", func(row *pipeline.Task) { row.Attempts = 7 }},
			clause{"it was lost twice and the worker holds another claim", func(row *pipeline.Task) { row.Losses = 2 }},
			clause{"it was lost three times and the worker holds another claim", func(row *pipeline.Task) { row.Losses = 3 }}),
		edges: []clause{{"it is ready just now", func(row *pipeline.Task) { row.ReadyAt = soon }}},
	},
	{
		name: "Renew", only: claimed, row: status(pipeline.TaskClaimed),
		do: func(b *bench, seen pipeline.Task) (pipeline.Task, error) {
			return b.Store.Renew(b.ctx, pipeline.RenewWrite{
				Fence: pipeline.Claim{Task: seen}.Fence(), Expires: T0 + 25_000, Stage: 3, StageAt: T0 + 2, Answers: 8, Allowed: 60,
			})
		},
		sets: func(row *pipeline.Task) {
			row.ExpiresAt, row.Stage, row.StageAt, row.Answers, row.Allowed = T0+25_000, 3, T0+2, 8, 60
		},
		clauses: fenced(
			clause{"it expires just then already", func(row *pipeline.Task) { row.ExpiresAt = T0 + 25_000 }},
			clause{"it expires later already", func(row *pipeline.Task) { row.ExpiresAt = T0 + 25_001 }},
			clause{"more tries are allowed already", func(row *pipeline.Task) { row.Allowed = 61 }},
			clause{"fewer tries may ever be allowed", func(row *pipeline.Task) { row.MaxTries = 59 }}),
		edges: []clause{
			{"it expires just before", func(row *pipeline.Task) { row.ExpiresAt = T0 + 24_999 }},
			{"so many tries are allowed already", func(row *pipeline.Task) { row.Allowed = 60 }},
			{"just so many tries may ever be allowed", func(row *pipeline.Task) { row.MaxTries = 60 }},
		},
	},
	{
		name: "Checkpoint", only: claimed, row: status(pipeline.TaskClaimed),
		do: func(b *bench, seen pipeline.Task) (pipeline.Task, error) {
			return b.Store.Checkpoint(b.ctx, pipeline.CheckpointWrite{Fence: pipeline.Claim{Task: seen}.Fence(), Stage: 2, Allowed: 60})
		},
		sets: func(row *pipeline.Task) {
			row.Accepted, row.Bodies, row.Attempts, row.Losses, row.Allowed = 2, []int64{2, 4}, 1, 0, 60
		},
		clauses: fenced(
			clause{"the stage before is not accepted", func(row *pipeline.Task) { row.Accepted, row.Bodies = 0, nil }},
			clause{"the stage is accepted already", func(row *pipeline.Task) { row.Accepted, row.Bodies = 2, []int64{2, 4} }},
			clause{"a later stage is accepted already", func(row *pipeline.Task) { row.Accepted, row.Bodies = 3, []int64{2, 4, 4} }},
			clause{"more tries are allowed already", func(row *pipeline.Task) { row.Allowed = 61 }},
			clause{"fewer tries may ever be allowed", func(row *pipeline.Task) { row.MaxTries = 59 }}),
		edges: []clause{
			{"so many tries are allowed already", func(row *pipeline.Task) { row.Allowed = 60 }},
			{"just so many tries may ever be allowed", func(row *pipeline.Task) { row.MaxTries = 60 }},
			{"its list of bodies is longer than what is accepted", func(row *pipeline.Task) { row.Bodies = []int64{2, 1, 1} }},
		},
	},
	{
		name: "End", only: claimed, row: status(pipeline.TaskClaimed),
		do: func(b *bench, seen pipeline.Task) (pipeline.Task, error) {
			return b.Store.End(b.ctx, pipeline.EndWrite{
				Fence: pipeline.Claim{Task: seen}.Fence(), Verdict: verdict, Accepted: seen.Accepted, EndedBy: "c4", Allowed: 30,
				Reason: pipeline.Fail(pipeline.Throttled, "now"), ReadyAt: soon + 10, DueAt: soon + 20,
			})
		},
		sets: func(row *pipeline.Task) {
			setVerdict(row)
			row.EndedBy, row.Allowed = "c4", 30
		},
		clauses: fenced(
			clause{"a stage was accepted since", func(row *pipeline.Task) { row.Accepted++ }},
			clause{"it would raise the tries allowed", func(row *pipeline.Task) { row.Allowed = 29 }}),
		edges: []clause{{"it gives nothing back", func(row *pipeline.Task) { row.Allowed = 30 }}},
	},
}

// reapWrites are what the reaper and the cancel do to a row.
var reapWrites = []rowWrite{
	{
		name: "Expire", only: claimed, row: status(pipeline.TaskClaimed),
		do: func(b *bench, seen pipeline.Task) (pipeline.Task, error) {
			return b.Store.Expire(b.ctx, pipeline.ExpireWrite{
				Seen: seen, Verdict: verdict, Reason: pipeline.Fail(pipeline.Throttled, "now"),
				Now: T0 + 25_001, MaxSkew: 5 * time.Second, Exited: "gone", ReadyAt: soon + 10, DueAt: soon + 20,
			})
		},
		sets: func(row *pipeline.Task) {
			setVerdict(row)
			row.EndedBy = pipeline.ExpiredBy
		},
		clauses: append(not(pipeline.TaskClaimed),
			clause{"it was claimed again since", func(row *pipeline.Task) { row.Generation++ }},
			clause{"an older claim stands", func(row *pipeline.Task) { row.Generation-- }},
			clause{"a stage was accepted since", func(row *pipeline.Task) { row.Accepted++ }},
			clause{"it was renewed since", func(row *pipeline.Task) { row.ExpiresAt = T0 + 25_000 }},
			clause{"it lapsed by no more than clocks may differ", func(row *pipeline.Task) { row.ExpiresAt = T0 + 20_001 }}),
		edges: []clause{
			{"its worker has exited", func(row *pipeline.Task) { row.ClaimedBy, row.ExpiresAt = "gone", T0+60_000 }},
		},
	},
	{
		name: "Ring", only: pending, row: status(pipeline.TaskPending),
		do: func(b *bench, seen pipeline.Task) (pipeline.Task, error) {
			return b.Store.Ring(b.ctx, pipeline.RingWrite{Seen: seen, Due: later, Count: seen.Rings + 1})
		},
		sets:    func(row *pipeline.Task) { row.Ring, row.Rings, row.DueAt = 10, 4, later },
		clauses: seenSo(not(pipeline.TaskPending)),
	},
	{
		name: "Postpone", row: status(pipeline.TaskClaimed),
		do: func(b *bench, seen pipeline.Task) (pipeline.Task, error) {
			return b.Store.Postpone(b.ctx, seen, later)
		},
		sets:    func(row *pipeline.Task) { row.DueAt = later },
		clauses: seenSo(not(pipeline.TaskClaimed)),
	},
	{
		name: "Unpark", only: parked, row: status(pipeline.TaskParked),
		do: func(b *bench, seen pipeline.Task) (pipeline.Task, error) {
			return b.Store.Unpark(b.ctx, seen, soon)
		},
		sets: func(row *pipeline.Task) {
			row.Status, row.ReadyAt, row.DueAt, row.Rings = pipeline.TaskPending, soon, soon, 0
		},
		clauses: seenSo(not(pipeline.TaskParked)),
	},
	{name: "Close a pending row", only: waiting, row: status(pipeline.TaskPending), do: closeRow, sets: closed, clauses: seenSo(not(pipeline.TaskPending))},
	{name: "Close a parked row", only: waiting, row: status(pipeline.TaskParked), do: closeRow, sets: closed, clauses: seenSo(not(pipeline.TaskParked))},
	{
		name: "Buried", only: abandoned, row: status(pipeline.TaskAbandoned),
		do: func(b *bench, seen pipeline.Task) (pipeline.Task, error) {
			if err := b.Store.Buried(b.ctx, seen.Ref, seen.Generation); err != nil {
				return pipeline.Task{}, err
			}
			return b.read(seen.Ref), nil
		},
		sets: func(row *pipeline.Task) { row.Buried = true },
		clauses: append(not(pipeline.TaskAbandoned),
			clause{"it was redriven and given up again", func(row *pipeline.Task) { row.Generation++ }}),
		edges: []clause{{"it was buried already", func(row *pipeline.Task) { row.Buried = true }}},
	},
}

func closeRow(b *bench, seen pipeline.Task) (pipeline.Task, error) {
	return b.Store.Close(b.ctx, pipeline.CloseWrite{
		Seen: seen, Status: pipeline.TaskAbandoned, Reason: pipeline.Fail(pipeline.Exhausted, "used up"), Due: later,
	})
}

func closed(row *pipeline.Task) {
	row.Status, row.DueAt = pipeline.TaskAbandoned, later
	row.Reason = pipeline.Fail(pipeline.Exhausted, "used up")
}

func allRowWrites() []rowWrite { return append(append([]rowWrite{}, claimWrites...), reapWrites...) }

var clausePromises = []promise{
	{"each write sets what it says and nothing else", eachWriteSetsWhatItSays},
	{"each clause of each condition refuses alone, shows the row and changes nothing", eachClauseRefuses},
	{"a write at the very edge of its condition succeeds", eachEdgeSucceeds},
	{"no write takes a row that was seen in a status it is not for", wrongStatusRefuses},
	{"terminal stays terminal: no late write changes a row that ended", terminalStaysTerminal},
	{"a deleted row is not revived by any write", deletedRowsStayDeleted},
	{"a write about a row that never was makes none", missingRowsStayMissing},
}

func eachWriteSetsWhatItSays(t *testing.T, h Harness) {
	b := newBench(t, h)
	for _, w := range allRowWrites() {
		b.run(w.name, func(b *bench) {
			seen := b.row(w.row)
			got, err := w.do(b, seen)
			want := seen
			w.sets(&want)
			b.answers(got, err, want)
		})
	}
}

func eachClauseRefuses(t *testing.T, h Harness) {
	b := newBench(t, h)
	for _, w := range allRowWrites() {
		for _, c := range w.clauses {
			b.run(w.name+" when "+c.says, func(b *bench) {
				seen := NewRow(b.job, pipeline.WorkTask(1), w.row)
				stands := seen
				c.edit(&stands)
				b.put(stands)
				_, err := w.do(b, seen)
				b.refused(err, stands)
			})
		}
	}
}

func eachEdgeSucceeds(t *testing.T, h Harness) {
	b := newBench(t, h)
	for _, w := range allRowWrites() {
		for _, c := range w.edges {
			b.run(w.name+" when "+c.says, func(b *bench) {
				seen := NewRow(b.job, pipeline.WorkTask(1), w.row)
				c.edit(&seen)
				b.put(seen)
				got, err := w.do(b, seen)
				want := seen
				w.sets(&want)
				b.answers(got, err, want)
			})
		}
	}
}

func deletedRowsStayDeleted(t *testing.T, h Harness) {
	b := newBench(t, h)
	for _, w := range allRowWrites() {
		b.run(w.name, func(b *bench) {
			seen := b.row(w.row)
			b.Delete(b.T, seen.Ref)
			_, err := w.do(b, seen)
			b.missing(err, seen.Ref)
			b.listed(seen, later+1, false)
		})
	}
}

func missingRowsStayMissing(t *testing.T, h Harness) {
	b := newBench(t, h)
	for _, w := range allRowWrites() {
		b.run(w.name, func(b *bench) {
			never := NewRow(b.job, pipeline.WorkTask(2), w.row)
			_, err := w.do(b, never)
			b.missing(err, never.Ref)
		})
	}
}

// wrongStatusRefuses: seen and stored agree, so only the write's own clause about the status refuses.
func wrongStatusRefuses(t *testing.T, h Harness) {
	b := newBench(t, h)
	for _, w := range allRowWrites() {
		for _, s := range allStatuses {
			if w.name == "Postpone" || contains(w.only, s) {
				continue
			}
			b.run(w.name+" a row that is "+string(s), func(b *bench) {
				seen := b.row(w.row, func(row *pipeline.Task) { row.Status = s })
				_, err := w.do(b, seen)
				b.refused(err, seen)
			})
		}
	}
}

// terminalStaysTerminal: each write was prepared before the row ended, and arrives afterwards.
func terminalStaysTerminal(t *testing.T, h Harness) {
	b := newBench(t, h)
	for _, w := range allRowWrites() {
		for _, s := range []pipeline.TaskStatus{pipeline.TaskDone, pipeline.TaskAbandoned, pipeline.TaskCancelled} {
			if contains(w.only, s) {
				continue
			}
			b.run(w.name+" after it was "+string(s), func(b *bench) {
				seen := NewRow(b.job, pipeline.WorkTask(1), w.row)
				ended := seen
				ended.Status = s
				b.put(ended)
				_, err := w.do(b, seen)
				b.refused(err, ended)
			})
		}
	}
}
