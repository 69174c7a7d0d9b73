package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Setback is what tasks that have not ended last failed of, or were deferred for: those of one reason.
type Setback struct {
	Kind    Kind     `json:"kind"`
	Cause   string   `json:"cause"` // of the first of them
	Tasks   []TaskID `json:"tasks"`
	ReadyAt Instant  `json:"ready_at,omitempty"` // the next attempt of those that wait; 0 = none waits

	Unserved bool `json:"-"` // by no failure: they wait for a worker, as far as the rows tell
}

// Setbacks groups the last reasons of rows that have not ended, as [Gaps] does, the largest group first. What a person
// did is none: a paused job is not held back.
func Setbacks(rows []Task) []Setback {
	index := map[string]int{}
	var all []Setback
	for _, row := range rows {
		if row.Status.Ended() || row.Reason.None() || row.Reason.Kind == Paused {
			continue
		}
		key := string(row.Reason.Kind) + " " + withoutNumbers(row.Reason.Cause)
		i, known := index[key]
		if !known {
			i = len(all)
			index[key] = i
			all = append(all, Setback{Kind: row.Reason.Kind, Cause: row.Reason.Cause})
		}
		all[i].add(row)
	}
	slices.SortStableFunc(all, func(a, b Setback) int { return cmp.Compare(len(b.Tasks), len(a.Tasks)) })
	return all
}

func (s *Setback) add(row Task) {
	s.Tasks = append(s.Tasks, row.ID)
	if row.Status == TaskPending && (s.ReadyAt == 0 || row.ReadyAt < s.ReadyAt) {
		s.ReadyAt = row.ReadyAt
	}
}

// Text is the setback for people: of how many tasks, when the next attempt is, and why.
func (s Setback) Text(now Instant) string {
	text := CountOf(len(s.Tasks), "task", "tasks")
	if wait := s.ReadyAt.Sub(now); s.ReadyAt != 0 && wait > 0 {
		text += fmt.Sprintf(", next attempt in %.0f s", wait.Round(time.Second).Seconds())
	}
	return fmt.Sprintf("%s: %s", text, Failure{Kind: s.Kind, Cause: s.Cause})
}
