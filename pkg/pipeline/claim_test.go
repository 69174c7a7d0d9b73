package pipeline

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestWhyRefused(t *testing.T) {
	w := ClaimWrite{Seen: 4, MaxAttempts: 3, ClaimID: "mine", Now: noon}
	// Each row has every later reason too, so that the order shows.
	row := Task{Status: TaskPending, ReadyAt: noon + 1, Attempts: 3, Losses: 2, Generation: 5}
	status := func(s TaskStatus) *Task { r := row; r.Status = s; return &r }
	ready := row
	ready.ReadyAt = noon
	fresh := ready
	fresh.Attempts = 2
	trusted := fresh
	trusted.Losses = 1
	alone := w
	alone.Alone = true
	for _, test := range []struct {
		row  *Task
		w    ClaimWrite
		want Refusal
	}{
		{nil, w, RefusedMissing},
		{status(TaskDone), w, RefusedEnded},
		{status(TaskAbandoned), w, RefusedEnded},
		{status(TaskCancelled), w, RefusedEnded},
		{status(TaskClaimed), w, RefusedHeld},
		{status(TaskParked), w, RefusedParked},
		{&row, w, RefusedEarly},
		{&ready, w, RefusedExhausted},
		{&fresh, w, RefusedAlone},
		{&fresh, alone, RefusedMoved},
		{&trusted, w, RefusedMoved},
	} {
		if got := WhyRefused(test.row, test.w); got != test.want {
			t.Errorf("%+v: got %s, want %s", test.row, got, test.want)
		}
	}
	t.Run("more attempts than a lower cap are exhausted", func(t *testing.T) {
		many := ready
		many.Attempts = 9
		if got := WhyRefused(&many, w); got != RefusedExhausted {
			t.Errorf("got %s, want %s", got, RefusedExhausted)
		}
	})
}

func TestLanded(t *testing.T) {
	p := DefaultPolicy()
	w := ClaimWrite{ClaimID: "mine"}
	ours := Task{Status: TaskClaimed, ClaimID: "mine"}
	theirs, over := ours, ours
	theirs.ClaimID, over.Status = "theirs", TaskPending
	last := p.ClaimTTL - p.MaxSkew
	for name, test := range map[string]struct {
		row   *Task
		since time.Duration
		want  bool
	}{
		"our claim, a moment ago":                {&ours, 0, true},
		"our claim, as long as it cannot expire": {&ours, last - 1, true},
		"our claim, when it may have expired":    {&ours, last, false},
		"another's claim":                        {&theirs, 0, false},
		"our claim, ended since":                 {&over, 0, false},
		"no row":                                 {nil, 0, false},
	} {
		if got := w.Landed(test.row, test.since, p); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestExpirable(t *testing.T) {
	row := Task{Status: TaskClaimed, ClaimedBy: "A", ExpiresAt: noon}
	ended, nobody := row, row
	ended.Status, nobody.ClaimedBy = TaskDone, ""
	skew := 5 * time.Second
	for name, test := range map[string]struct {
		row    Task
		now    Instant
		exited string
		want   bool
	}{
		"before it expires":                 {row, noon - 1, "", false},
		"lapsed by no more than the skew":   {row, noon + 5000, "", false},
		"lapsed by more":                    {row, noon + 5001, "", true},
		"its worker has exited":             {row, noon - 9000, "A", true},
		"another worker has exited":         {row, noon - 9000, "B", false},
		"a claim without a worker's name":   {nobody, noon - 9000, "", false},
		"a row that ended":                  {ended, noon + 99_000, "", false},
		"a row that ended, its worker gone": {ended, noon + 99_000, "A", false},
	} {
		if got := test.row.Expirable(ExpireWrite{Now: test.now, MaxSkew: skew, Exited: test.exited}); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestConditionError(t *testing.T) {
	row := Task{Status: TaskDone, Generation: 3}
	refused := fmt.Errorf("end: %w", &ConditionError{Op: "end", Ref: Ref{"j", "split"}, Old: &row})
	if old, ok := Old(refused); !ok || old != &row {
		t.Errorf("got %v, %v; want the row", old, ok)
	}
	if old, ok := Old(&ConditionError{}); !ok || old != nil {
		t.Errorf("got %v, %v; want a refusal without a row", old, ok)
	}
	if _, ok := Old(ErrBusy); ok {
		t.Error("a busy store is taken for a refusal")
	}
	if !errors.Is(refused, ErrFenced) || errors.Is(refused, ErrBusy) {
		t.Error("a refusal is ErrFenced and nothing else")
	}
	for _, err := range []error{refused, &ConditionError{Op: "claim"}} {
		if err.Error() == "" {
			t.Error("a refusal without words")
		}
	}
}

func TestTask(t *testing.T) {
	t.Run("an id names its kind and number", func(t *testing.T) {
		for id, want := range map[TaskID]struct {
			kind   TaskKind
			number int
		}{
			SplitTask: {TaskSplit, -1}, WorkTask(7): {TaskWork, 7}, FinalizeTask(12): {TaskFinalize, 12},
			"work#": {TaskWork, -1}, "work#x": {TaskWork, -1}, "": {"", -1},
		} {
			if id.Kind() != want.kind || id.Number() != want.number {
				t.Errorf("%q: got %s %d, want %s %d", id, id.Kind(), id.Number(), want.kind, want.number)
			}
		}
	})
	t.Run("only the body of an accepted stage counts", func(t *testing.T) {
		row := Task{Accepted: 2, Bodies: []int64{4, 5, 6}}
		for stage, want := range []int64{0, 4, 5, 0, 0} {
			if got := row.Body(stage); got != want {
				t.Errorf("stage %d: got %d, want %d", stage, got, want)
			}
		}
		if got := (Task{Accepted: 3, Bodies: []int64{4}}).Body(2); got != 0 {
			t.Errorf("a list that is too short: got %d, want 0", got)
		}
	})
	t.Run("a row is listed until it ended and its dead letter was sent", func(t *testing.T) {
		for _, test := range []struct {
			s      TaskStatus
			buried bool
			want   bool
		}{
			{TaskPending, false, true},
			{TaskClaimed, false, true},
			{TaskParked, false, true},
			{TaskDone, false, false},
			{TaskCancelled, false, false},
			{TaskAbandoned, false, true},
			{TaskAbandoned, true, false},
			{TaskPending, true, true},
		} {
			if got := (Task{Status: test.s, Buried: test.buried}).Listed(); got != test.want {
				t.Errorf("%s, buried %v: got %v, want %v", test.s, test.buried, got, test.want)
			}
		}
	})
	t.Run("the due shards share the rows", func(t *testing.T) {
		var counts [DueShards]int
		for n := range 4000 {
			counts[Ref{"job-1", WorkTask(n)}.DueShard()]++
		}
		for shard, n := range counts {
			if n < 3000/DueShards {
				t.Errorf("shard %d has %d of 4000 rows", shard, n)
			}
		}
	})
	t.Run("a row that was rung too often is unclaimable until it is claimed", func(t *testing.T) {
		p := DefaultPolicy()
		for want, row := range map[bool]Task{true: {Status: TaskPending, Rings: p.MaxRings + 1}, false: {Status: TaskPending, Rings: p.MaxRings}} {
			if got := row.Unclaimable(p); got != want {
				t.Errorf("%d rings: got %v, want %v", row.Rings, got, want)
			}
		}
		if (Task{Status: TaskParked, Rings: 99}).Unclaimable(p) {
			t.Error("a parked row is shown as unclaimable")
		}
	})
}
