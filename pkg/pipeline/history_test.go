package pipeline

import (
	"context"
	"slices"
	"testing"
)

func TestCounting(t *testing.T) {
	record := func(generation int64, ender, previous string) Record {
		return Record{Generation: generation, Ender: ender, Previous: previous}
	}
	for _, c := range []struct {
		name    string
		endedBy string
		records []Record
		want    []string
	}{
		{"one record each", "b", []Record{record(1, "a", ""), record(2, "b", "a")}, []string{"a", "b"}},
		{"the next record names the ender that counts", "b", []Record{record(1, "a", ""), record(1, ExpiredBy, ""), record(2, "b", ExpiredBy)}, []string{ExpiredBy, "b"}},
		{"the row names the ender of the last attempt", ExpiredBy, []Record{record(1, "a", ""), record(1, ExpiredBy, "")}, []string{ExpiredBy}},
		{"a generation that a redrive took leaves no gap", "c", []Record{record(1, "a", ""), record(1, ExpiredBy, ""), record(3, "c", "a")}, []string{"a", "c"}},
		{"the worker's own counts where nobody is named", "", []Record{record(1, ExpiredBy, ""), record(1, "z", "")}, []string{"z"}},
		{"what closed the row takes no attempt's place", ClosedBy, []Record{record(1, "a", ""), record(1, ClosedBy, "a")}, []string{"a"}},
		{"nothing of nothing", "", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Task{EndedBy: c.endedBy}.Counting(c.records)
			if len(got) != len(c.want) {
				t.Fatalf("got %d records, want %d", len(got), len(c.want))
			}
			for i, r := range got {
				if r.Ender != c.want[i] {
					t.Errorf("record %d: got ender %q, want %q", i, r.Ender, c.want[i])
				}
			}
		})
	}
}

// pageOf is items that can only be listed.
type pageOf struct {
	itemsPort
	all []Item
}

type itemsPort = Items

func (p pageOf) Items(context.Context, JobID, string, string) ([]Item, string, error) {
	return p.all, "", nil
}

func TestReadHistoryPassesOverWhatItCannotRead(t *testing.T) {
	good, bad := RecordKey("work#00001", 1, "a"), JournalKey("work#00001", 2, 0)
	h, err := ReadHistory(t.Context(), pageOf{all: []Item{
		{Key: good, Body: Encode(Record{Generation: 1, Ender: "a"})}, {Key: bad, Body: []byte("x")},
	}}, Ref{Job: "j", ID: "work#00001"})
	if err != nil || len(h.Records) != 1 || !slices.Equal(h.Unreadable, []string{bad}) {
		t.Errorf("got %d records, unreadable %v, error %v; want one, %s named, and no error", len(h.Records), h.Unreadable, err, bad)
	}
}
