package pipeline

import "testing"

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
