package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/report"
)

// someRefused is a run in which the model refuses some of the cells: a partial job, fast.
func someRefused(d *desk) outcome {
	d.Helper()
	return d.runs(exitPartial, d.doc("contract.txt", contract(0, 9000)), "--fail", "refused=12%", "--seed", "3")
}

func TestOperatorsView(t *testing.T) {
	d := newDesk(t, "")
	o := someRefused(d)
	job := string(o.Job)
	decode := func(text string, into any) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	t.Run("status tells answered, not needed and failed apart, in words and for programs", func(t *testing.T) {
		var st standing
		decode(d.does(exitCompleted, "status", job, "--json"), &st)
		c := st.Counts
		if c != o.Counts || c.Failed == 0 || c.Answered+c.Failed+c.Gated+c.NotAsked != c.Cells || st.Open != 0 {
			t.Errorf("got %+v with %d open, want those of the result, %+v", c, st.Open, o.Counts)
		}
		d.says(d.does(exitCompleted, "status", job), pipeline.Count(c.Answered)+" answered, 0 not needed, "+pipeline.Count(c.Failed)+" failed")
	})
	t.Run("the list for programs has the same job", func(t *testing.T) {
		var st standing
		var jobs []pipeline.Job
		decode(d.does(exitCompleted, "status", job, "--json"), &st)
		decode(d.does(exitCompleted, "jobs", "--json"), &jobs)
		if len(jobs) != 1 || jobs[0] != st.Job || string(jobs[0].ID) != job {
			t.Errorf("got %+v, want %+v", jobs, st.Job)
		}
	})
	t.Run("every form of the report says partial, how many of how many, and why", func(t *testing.T) {
		read := func(name string) string {
			body, err := os.ReadFile(filepath.Join(d.out, name))
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		n := pipeline.Count(o.Counts.Answered) + " of " + pipeline.Count(o.Counts.Cells) + " questions answered"
		for _, name := range []string{"report.html", "report.md", "findings.json"} {
			d.says(read(name), n, "artial", "refused", "holdfast redrive "+job)
		}
		lines := strings.Split(strings.TrimSpace(read("answers.jsonl")), "\n")
		failed := 0
		for _, line := range lines {
			var a report.Answer
			decode(line, &a)
			switch {
			case a.State == pipeline.CellFailed && !a.Failure.None() && a.Text == "":
				failed++
			case a.State != pipeline.CellAnswered || !json.Valid([]byte(a.Text)) || a.Key == "":
				t.Errorf("got %+v, want an answer or a reason", a)
			}
		}
		if failed == 0 {
			t.Errorf("none of %d lines tells of a failed cell", len(lines))
		}
		if out := d.does(exitCompleted, "report", job, "--answers"); out != read("answers.jsonl") {
			t.Error("report --answers prints something else than the file holds")
		}
	})
	t.Run("a job of another tenant is not there, by its id or the beginning of it, and stays as it is", func(t *testing.T) {
		s := d.system()
		before := d.job(s)
		for _, id := range []string{job, job[:4]} {
			for _, command := range []string{"status", "why", "watch", "pause", "resume", "cancel", "redrive", "report"} {
				d.says(d.does(exitUsage, "--tenant", "other", command, id), "there is no job")
			}
		}
		if after := d.job(s); after != before {
			t.Errorf("got %+v, want %+v", after, before)
		}
		d.says(d.does(exitCompleted, "--tenant", "other", "jobs"), "no jobs in", "for tenant other (--tenant names another)")
	})
	t.Run("after a redrive the report says that it changed", func(t *testing.T) {
		d.says(d.does(exitCompleted, "redrive", job), "redriven")
		again := d.runs(exitCompleted, filepath.Join(d.dir, "contract.txt"))
		if again.Counts.Failed != 0 || again.Job != o.Job {
			t.Fatalf("got %+v, want the same job, whole", again)
		}
		var changed bytes.Buffer
		body, err := os.ReadFile(filepath.Join(d.out, "report.md"))
		d.must(err)
		changed.Write(body)
		d.says(changed.String(), "The job was redriven", "Before: "+pipeline.Count(o.Counts.Answered)+" of "+pipeline.Count(o.Counts.Cells)+" questions answered", "Complete:")
	})
	t.Run("the build says what it is", func(t *testing.T) {
		d.says(d.does(exitCompleted, "version"), "holdfast ", "go1.")
	})
}
