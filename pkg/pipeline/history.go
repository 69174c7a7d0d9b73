package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// History is what is left of a task's attempts.
type History struct {
	Records    []Record  // every one, in order of generation
	Journals   []Journal // in order of generation and page
	Unreadable []string  // keys of what could not be decoded
}

// Pages is where items are read from, under a prefix: [Items], or what was read of them before.
type Pages interface {
	Items(ctx context.Context, job JobID, prefix, cursor string) (items []Item, next string, err error)
}

// ReadHistory reads all records and journals of a task. One that cannot be decoded is named and passed over: nothing
// that has to go on may wait for a reason that is lost.
func ReadHistory(ctx context.Context, items Pages, ref Ref) (History, error) {
	all, err := AllItems(ctx, items, ref.Job, RecordsPrefix(ref.ID))
	if err != nil {
		return History{}, fmt.Errorf("read the attempts of %s: %w", ref, err)
	}
	var h History
	for _, item := range all {
		switch {
		case strings.Contains(item.Key, "#end#"):
			r, err := Decode[Record](item.Body, item.Key)
			if err != nil {
				h.Unreadable = append(h.Unreadable, item.Key)
				continue
			}
			h.Records = append(h.Records, r)
		case strings.Contains(item.Key, "#tries#"):
			j, err := Decode[Journal](item.Body, item.Key)
			if err != nil {
				h.Unreadable = append(h.Unreadable, item.Key)
				continue
			}
			h.Journals = append(h.Journals, j)
		}
	}
	return h, nil
}

// Counting is one record per attempt, oldest first: of two enders' records of one attempt the one that the next
// record's previous, or the row's ended_by, names. Where neither names one, the worker's own comes before the
// reaper's, because it knows more. What closed a row that nobody held is no attempt, and takes no attempt's place.
func (t Task) Counting(records []Record) []Record {
	var sorted []Record
	for _, r := range records {
		if r.Ender != ClosedBy {
			sorted = append(sorted, r)
		}
	}
	slices.SortStableFunc(sorted, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(rankOfEnder(a), rankOfEnder(b)), cmp.Compare(a.Ender, b.Ender))
	})
	var counting []Record
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j].Generation == sorted[i].Generation {
			j++
		}
		names := t.EndedBy
		if j < len(sorted) {
			names = sorted[j].Previous
		}
		counts := sorted[i]
		for _, r := range sorted[i:j] {
			if r.Ender == names {
				counts = r
			}
		}
		counting = append(counting, counts)
		i = j
	}
	return counting
}

func rankOfEnder(r Record) int {
	if r.Ender == ExpiredBy {
		return 1
	}
	return 0
}

// AllItems is every item whose key begins with prefix.
func AllItems(ctx context.Context, items Pages, job JobID, prefix string) ([]Item, error) {
	return allPages(func(cursor string) ([]Item, string, error) { return items.Items(ctx, job, prefix, cursor) })
}

// AllTasks is every row of a job, in order of their ids.
func AllTasks(ctx context.Context, tasks Tasks, job JobID) ([]Task, error) {
	rows, err := allPages(func(cursor string) ([]Task, string, error) { return tasks.Tasks(ctx, job, cursor) })
	for _, row := range rows {
		if newer := row.Newer(); newer != nil {
			return nil, newer // whoever decides about a job by its rows has to know all of them
		}
	}
	return rows, err
}

func allPages[T any](read func(cursor string) (page []T, next string, err error)) ([]T, error) {
	var all []T
	for cursor := ""; ; {
		page, next, err := read(cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == "" {
			return all, nil
		}
		cursor = next
	}
}
