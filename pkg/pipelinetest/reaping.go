package pipelinetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

var reapPromises = []promise{
	{"a claim is expired only once it lapsed by more than clocks may differ, or its worker has exited", expiresOnTime},
	{"an expired claim at its cap becomes what Next says, with its ender and reason", expiredAtItsCap},
	{"a claim whose worker died with new answers is expired as a deferral", lostWithAnswers},
	{"a renewal that crosses an expiry saves the claim or loses it, never both", renewalCrossesExpiry},
	{"rings are counted, the ring number never goes back, and a claim resets the count", ringsAreCounted},
	{"a row whose job holds too many claims is rung without fault", ringsWithoutFault},
	{"the due index holds exactly the listed rows", dueIsListed},
	{"the most overdue row comes first", mostOverdueFirst},
	{"the due index comes in pages that end, none over the limit", duePages},
	{"a job's rows come in pages, in order, each once", taskPages},
	{"an abandoned row stays listed until its dead letter was sent", listedUntilBuried},
	{"a parked row is unparked ready and due at once", unparked},
}

func expiresOnTime(t *testing.T, h Harness) {
	b := newBench(t, h)
	again := pipeline.Verdict{Status: pipeline.TaskPending, Attempts: 1, Losses: 1}
	lapse := T0 + 20_000 + 5_000
	for _, test := range []struct {
		name   string
		now    pipeline.Instant
		exited string
		want   bool
	}{
		{"not before it expires", T0 + 19_999, "", false},
		{"not within the skew", lapse, "", false},
		{"a millisecond later", lapse + 1, "", true},
		{"at once when its worker has exited", T0, "A", true},
		{"not when another worker has exited", T0, "B", false},
	} {
		b.run(test.name, func(b *bench) {
			claimed := b.claim(b.row(), "A", T0)
			w := ExpireOf(claimed, again, test.now)
			w.Exited = test.exited
			row, err := h.Store.Expire(b.ctx, w)
			if !test.want {
				b.refused(err, claimed)
				return
			}
			b.must(err)
			if row.Status != pipeline.TaskPending || row.EndedBy != pipeline.ExpiredBy {
				b.Errorf("got %s, ended by %s; want pending, ended by %s", row.Status, row.EndedBy, pipeline.ExpiredBy)
			}
		})
	}
	b.run("nobody who has no name has exited", func(b *bench) {
		seen := b.row(status(pipeline.TaskClaimed), func(row *pipeline.Task) { row.ClaimedBy = "" })
		_, err := h.Store.Expire(b.ctx, ExpireOf(seen, again, T0))
		b.refused(err, seen)
	})
}

func expiredAtItsCap(t *testing.T, h Harness) {
	b := newBench(t, h)
	p := pipeline.DefaultPolicy()
	claimed := b.claim(b.row(func(row *pipeline.Task) { row.Attempts = 2 }), "A", T0)
	now := T0.Add(p.ClaimTTL+p.MaxSkew) + 1
	v := pipeline.Next(p, pipeline.StandingOf(claimed, 0), pipeline.Ending{Outcome: pipeline.Died}, now, 0)
	w := ExpireOf(claimed, v, now)
	row, err := h.Store.Expire(b.ctx, w)
	want := claimed
	want.Status, want.Attempts, want.Losses = pipeline.TaskAbandoned, 3, 1
	want.ReadyAt, want.DueAt, want.EndedBy, want.Reason = now, w.DueAt, pipeline.ExpiredBy, w.Reason
	b.answers(row, err, want)
	_, err = h.Store.Expire(b.ctx, w)
	b.refused(err, want)
	b.listed(row, w.DueAt, true)
}

func lostWithAnswers(t *testing.T, h Harness) {
	b := newBench(t, h)
	p := pipeline.DefaultPolicy()
	claimed := b.claim(b.row(func(row *pipeline.Task) { row.Attempts = 2 }), "A", T0)
	renewed, err := h.Store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: claimed}.Fence(), Expires: T0 + 25_000, Answers: 3})
	b.must(err)
	now := renewed.ExpiresAt.Add(p.MaxSkew) + 1
	v := pipeline.Next(p, pipeline.StandingOf(renewed, 0), pipeline.Ending{Outcome: pipeline.Died}, now, 0)
	row, err := h.Store.Expire(b.ctx, ExpireOf(renewed, v, now))
	b.must(err)
	if row.Status != pipeline.TaskPending || row.Attempts != 2 || row.Deferrals != 1 || row.Losses != 1 {
		t.Errorf("got %s, attempts %d, deferrals %d, losses %d; want pending, 2, 1, 1", row.Status, row.Attempts, row.Deferrals, row.Losses)
	}
}

func renewalCrossesExpiry(t *testing.T, h Harness) {
	b := newBench(t, h)
	again := pipeline.Verdict{Status: pipeline.TaskPending, Attempts: 1, Losses: 1}
	now := T0 + 25_001
	b.run("the renewal first", func(b *bench) {
		row := b.claim(b.row(), "A", T0)
		late := NewLate(1, "Expire")
		_, err := Wrap(h.Store, late.Around).Expire(b.ctx, ExpireOf(row, again, now))
		b.fails(err, pipeline.ErrBusy)
		renewed, err := h.Store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: now + 20_000})
		b.must(err)
		for _, err := range late.Release(b.ctx) {
			b.refused(err, renewed)
		}
	})
	b.run("the expiry first", func(b *bench) {
		row := b.claim(b.row(), "A", T0)
		expired, err := h.Store.Expire(b.ctx, ExpireOf(row, again, now))
		b.must(err)
		_, err = h.Store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: now + 20_000})
		b.refused(err, expired)
	})
	b.run("both at once", func(b *bench) {
		for n := range 40 {
			row := NewRow(b.job, pipeline.WorkTask(n))
			b.put(row)
			row = b.claim(row, "A", T0)
			errs := make([]error, 2)
			together(2, func(i int) {
				errs[i] = steadily(func() (err error) {
					if i == 0 {
						_, err = h.Store.Renew(b.ctx, pipeline.RenewWrite{Fence: pipeline.Claim{Task: row}.Fence(), Expires: now + 20_000})
					} else {
						_, err = h.Store.Expire(b.ctx, ExpireOf(row, again, now))
					}
					return err
				})
			})
			saved := b.read(row.Ref).Status == pipeline.TaskClaimed
			if (errs[0] == nil) == (errs[1] == nil) || saved != (errs[0] == nil) {
				b.Fatalf("renewal: %v, expiry: %v, saved: %v; want exactly one of them to have happened", errs[0], errs[1], saved)
			}
		}
	})
}

func ringsAreCounted(t *testing.T, h Harness) {
	b := newBench(t, h)
	p := pipeline.DefaultPolicy()
	row := b.row()
	now := row.DueAt
	for n := range 5 {
		due := now.Add(p.RingWait(n))
		rung, err := h.Store.Ring(b.ctx, pipeline.RingWrite{Seen: row, Due: due, Count: row.Rings + 1})
		want := row
		want.Ring, want.Rings, want.DueAt = int64(n+1), n+1, due
		b.answers(rung, err, want)
		b.listed(rung, due-1, false)
		b.listed(rung, due, true)
		row, now = rung, due
	}
	claimed := b.claim(row, "A", now)
	if claimed.Rings != 0 || claimed.Ring != 5 {
		t.Errorf("got rings %d, ring %d after a claim; want 0, 5", claimed.Rings, claimed.Ring)
	}
	ended, err := h.Store.End(b.ctx, EndOf(claimed, pipeline.Verdict{Status: pipeline.TaskPending}, pipeline.Failure{}, now))
	b.must(err)
	if ended.Ring != 5 {
		t.Errorf("got ring %d after an end, want 5", ended.Ring)
	}
	rung, err := h.Store.Ring(b.ctx, pipeline.RingWrite{Seen: ended, Due: later, Count: 1})
	b.must(err)
	if rung.Ring != 6 || rung.Rings != 1 {
		t.Errorf("got ring %d, rings %d; want 6, 1", rung.Ring, rung.Rings)
	}
}

func ringsWithoutFault(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.row(func(row *pipeline.Task) { row.Ring, row.Rings = 8, 5 })
	rung, err := h.Store.Ring(b.ctx, pipeline.RingWrite{Seen: row, Due: later, Count: 0})
	want := row
	want.Ring, want.Rings, want.DueAt = 9, 0, later
	b.answers(rung, err, want)
}

func dueIsListed(t *testing.T, h Harness) {
	b := newBench(t, h)
	var rows, want []pipeline.Task
	n := 0
	for _, s := range allStatuses {
		for _, due := range []pipeline.Instant{T0 - 1, T0, T0 + 1} {
			for _, buried := range []bool{false, true} {
				n++
				row := NewRow(b.job, pipeline.WorkTask(n), status(s), func(row *pipeline.Task) { row.DueAt, row.Buried = due, buried })
				rows = append(rows, row)
				if row.Listed() && row.DueAt <= T0 {
					want = append(want, row)
				}
			}
		}
	}
	b.put(rows...)
	b.eventually(func() bool { return slices.Equal(ids(b.due(T0)), ids(want)) },
		fmt.Sprintf("got %v, want %v", ids(b.due(T0)), ids(want)))
	for _, got := range b.due(T0) {
		b.same("what the index shows", got, rows[got.ID.Number()-1])
	}
}

// ids are sorted.
func ids(rows []pipeline.Task) []pipeline.TaskID {
	var all []pipeline.TaskID
	for _, row := range rows {
		all = append(all, row.ID)
	}
	slices.Sort(all)
	return all
}

func mostOverdueFirst(t *testing.T, h Harness) {
	b := newBench(t, h)
	for n := range 40 {
		b.put(NewRow(b.job, pipeline.WorkTask(n), func(row *pipeline.Task) { row.DueAt = T0 - pipeline.Instant((n*7)%40) }))
	}
	total := 0
	b.eventually(func() bool { return len(b.due(T0)) == 40 }, "not all 40 rows are due")
	for shard := range pipeline.DueShards {
		rows, _ := b.dueShard(shard, T0)
		total += len(rows)
		if !slices.IsSortedFunc(rows, func(x, y pipeline.Task) int { return int(x.DueAt - y.DueAt) }) {
			t.Errorf("shard %d: the rows are not in order of due_at", shard)
		}
	}
	if total != 40 {
		t.Errorf("got %d rows due, want 40", total)
	}
}

// fat fills a row to about a kilobyte, which is what a row may have.
func fat(row *pipeline.Task) {
	text := make([]byte, pipeline.MaxDetail)
	for i := range text {
		text[i] = 'x'
	}
	row.Reason = pipeline.Failure{Kind: pipeline.Ambiguous, Cause: string(text), Detail: string(text)}
}

// pageful is how many fat rows are more than one page.
const pageful = 1300

func duePages(t *testing.T, h Harness) {
	b := newBench(t, h)
	var rows []pipeline.Task
	for n := 0; len(rows) < pageful; n++ {
		if row := NewRow(b.job, pipeline.WorkTask(n), fat); row.DueShard() == 0 {
			rows = append(rows, row)
		}
	}
	b.put(rows...)
	var got []pipeline.Task
	pages := 0
	b.eventually(func() bool { got, pages = b.dueShard(0, later); return len(got) >= pageful }, "not all rows are due")
	if !slices.Equal(ids(got), ids(rows)) {
		t.Errorf("got %d rows, want each of %d once", len(got), len(rows))
	}
	if pages < 2 {
		t.Errorf("got %d pages of %d rows, want more than one", pages, len(rows))
	}
}

func taskPages(t *testing.T, h Harness) {
	b := newBench(t, h)
	var rows []pipeline.Task
	for n := range pageful {
		rows = append(rows, NewRow(b.job, pipeline.WorkTask(n), fat))
	}
	rows = append(rows, NewRow(b.job, pipeline.SplitTask), NewRow(b.job, pipeline.FinalizeTask(1)))
	b.put(rows...)
	var got []pipeline.Task
	pages, cursor := 0, ""
	for {
		page, next, err := h.Store.Tasks(b.ctx, b.job, cursor)
		b.must(err)
		if size := len(pipeline.Encode(page)); len(page) > 1 && size > pipeline.MaxPage+len(page) {
			t.Errorf("a page has %d bytes, want at most %d", size, pipeline.MaxPage)
		}
		got = append(got, page...)
		pages++
		if next == "" {
			break
		}
		cursor = next
	}
	if pages < 2 {
		t.Errorf("got %d pages of %d rows, want more than one", pages, len(rows))
	}
	if !slices.IsSortedFunc(got, func(x, y pipeline.Task) int { return compare(x.ID, y.ID) }) {
		t.Error("the rows are not in order of their ids")
	}
	if !slices.Equal(ids(got), ids(rows)) {
		t.Errorf("got %d rows, want each of %d once", len(got), len(rows))
	}
	none, next, err := h.Store.Tasks(b.ctx, b.job+"-other", "")
	if len(none) != 0 || next != "" || err != nil {
		t.Errorf("another job: got %d rows, cursor %q, error %v; want none", len(none), next, err)
	}
}

func compare(a, b pipeline.TaskID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func listedUntilBuried(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.claim(b.row(), "A", T0)
	w := EndOf(row, pipeline.Verdict{Status: pipeline.TaskAbandoned, Attempts: 1}, pipeline.Fail(pipeline.Invalid, "never"), T0)
	row, err := h.Store.End(b.ctx, w)
	b.must(err)
	b.listed(row, later, true)
	b.fails(h.Store.Buried(b.ctx, row.Ref, row.Generation+1), pipeline.ErrFenced)
	b.fails(h.Store.Buried(b.ctx, row.Ref, row.Generation-1), pipeline.ErrFenced)
	b.listed(row, later, true)
	b.must(h.Store.Buried(b.ctx, row.Ref, row.Generation))
	b.listed(row, later, false)
	b.must(h.Store.Buried(b.ctx, row.Ref, row.Generation))
}

func unparked(t *testing.T, h Harness) {
	b := newBench(t, h)
	row := b.row(status(pipeline.TaskParked), func(row *pipeline.Task) { row.ReadyAt, row.DueAt = later, later })
	now := T0.Add(time.Second)
	b.listed(row, now, false)
	got, err := h.Store.Unpark(b.ctx, row, now)
	b.must(err)
	b.listed(got, now, true)
	b.claim(got, "A", now)
}
