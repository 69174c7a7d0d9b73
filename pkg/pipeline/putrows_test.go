package pipeline

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// trickle is a store that takes, or reads, at most so many of a batch at once.
type trickle struct {
	shelf
	most int
	has  map[TaskID]int
}

func (s *trickle) PutTasks(_ context.Context, rows []Task) ([]Task, error) {
	n := min(s.most, len(rows))
	for _, row := range rows[:n] {
		s.has[row.ID]++
	}
	return rows[n:], nil
}

func (s *trickle) Replies(_ context.Context, keys []ReplyKey) (map[ReplyKey]Reply, []ReplyKey, error) {
	found, n := map[ReplyKey]Reply{}, min(s.most, len(keys))
	for _, key := range keys[:n] {
		found[key] = Reply{Key: key, Text: "text"}
	}
	return found, keys[n:], nil
}

// Case S-07: what a batch leaves out is done in the end, however little is taken at once, and nothing goes on for ever.
func TestCaseS07BatchesThatSucceedInPart(t *testing.T) {
	var rows []Task
	var keys []ReplyKey
	for n := range 260 {
		rows = append(rows, Task{Ref: Ref{Job: "job", ID: WorkTask(n)}})
		keys = append(keys, ReplyKey(fmt.Sprint("key-", n)))
	}
	for _, most := range []int{1, 2, 24, 25, 99, 100} {
		t.Run(fmt.Sprintf("rows and replies, %d at once", most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &trickle{most: most, has: map[TaskID]int{}}
				batches := 0
				if err := PutRows(t.Context(), s, NewRealClock(), rows, func() { batches++ }); err != nil || len(s.has) != len(rows) {
					t.Errorf("got %d rows of %d (%v)", len(s.has), len(rows), err)
				}
				for id, n := range s.has {
					if n != 1 {
						t.Errorf("%s was put %d times", id, n)
					}
				}
				if want := (len(rows) + MaxWrite - 1) / MaxWrite; batches != want {
					t.Errorf("told of %d batches, want %d", batches, want)
				}
				if found, err := ReadReplies(t.Context(), s, s, NewRealClock(), keys); err != nil || len(found) != len(keys) {
					t.Errorf("got %d replies of %d (%v)", len(found), len(keys), err)
				}
			})
		})
	}
	t.Run("a store that takes nothing is busy, soon", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, clock := &trickle{has: map[TaskID]int{}}, NewRealClock()
			if err := PutRows(t.Context(), s, clock, rows, nil); !errors.Is(err, ErrBusy) {
				t.Errorf("got %v, want busy", err)
			}
			if found, err := ReadReplies(t.Context(), s, s, clock, keys); !errors.Is(err, ErrBusy) {
				t.Errorf("got %d replies, %v, want busy", len(found), err)
			}
			if took := clock.Mono(); took.Minutes() > 1 {
				t.Errorf("gave up after %v", took)
			}
		})
	})
}
