package cli

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

// reasonsQuery is the query that the README shows, as it stands there.
func reasonsQuery(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, begins := strings.Cut(string(readme), "sqlite3 -box .holdfast/holdfast.db \"")
	query, _, ends := strings.Cut(after, "\"")
	if !begins || !ends {
		t.Fatal("the README shows no query in quotes after sqlite3 -box .holdfast/holdfast.db")
	}
	return query
}

func TestTheReadmesQueryTellsEveryReason(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	items := d.doc("items.txt", "good\nbad\nfine\nworse\n")
	command := `sh -c 'case "$1" in *d|w*) echo "$1 at attempt $HOLDFAST_ATTEMPT" >&2; exit 3;; esac' sh {}`
	d.does(exitPartial, "run", items, "--exec", command, "--try-cost", "0.03", "--out", d.out)
	s := d.system()
	job := d.job(s)
	want := map[string]int{} // what the records say, by triage
	abandoned, failed := 0, 0
	for _, row := range d.rows(s, job.ID) {
		if row.Status != pipeline.TaskAbandoned {
			continue
		}
		abandoned++
		story, err := s.Triage.Why(t.Context(), job.ID, row.ID)
		d.must(err)
		for _, a := range story.Attempts {
			r := a.Record
			want[fmt.Sprintf("%s %s attempt %d %s %s: %s, stage %s, %s", job.ID, row.ID, r.Attempt, r.Outcome, r.Failure.Kind, r.Failure.Cause, r.Failure.Stage, r.Worker)]++
			failed += r.Failures[pipeline.Broken]
		}
	}
	if abandoned != 3 || len(want) != 3*s.Policy().MaxAttempts {
		t.Fatalf("%d tasks were abandoned after %d attempts, want 3 after %d each", abandoned, len(want), s.Policy().MaxAttempts)
	}
	db, err := sql.Open("sqlite", filepath.Join(d.store, "holdfast.db"))
	d.must(err)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), reasonsQuery(t))
	d.must(err)
	defer rows.Close()
	told := 0
	for rows.Next() {
		var job, task, outcome, kind, cause, worker, ended, tries string
		var stage sql.NullString
		var attempt int
		var dollars float64
		d.must(rows.Scan(&job, &task, &attempt, &outcome, &kind, &cause, &stage, &worker, &ended, &dollars, &tries))
		line := fmt.Sprintf("%s %s attempt %d %s %s: %s, stage %s, %s", job, task, attempt, outcome, kind, cause, stage.String, worker)
		if want[line]--; want[line] < 0 {
			t.Errorf("the query tells %q, no record does", line)
		}
		var n int
		if _, err := fmt.Sscanf(tries, "%d x broken: the command exited with 3: ", &n); err != nil || !strings.HasSuffix(tries, fmt.Sprintf("at attempt %d", attempt)) || dollars != 0.03 || !strings.HasPrefix(ended, "20") {
			t.Errorf("%s: tries %q, ended %q, %f dollars; want all of them told", line, tries, ended, dollars)
		}
		told += n
	}
	d.must(rows.Err())
	for line, n := range want {
		if n > 0 {
			t.Errorf("the query does not tell %q", line)
		}
	}
	if told != failed {
		t.Errorf("the query tells of %d tries that failed, the records of %d", told, failed)
	}
}
