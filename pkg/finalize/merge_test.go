package finalize_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"holdfast/pkg/finalize"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// reviewed is a definition in which call s2c1 stands for s1c1 and s1c2, and category "cap" may be absent.
func reviewed() pipeline.Definition {
	return pipelinetest.NewDefinition(2, 2, func(d *pipeline.Definition) {
		d.Stages[1].Calls[0].Replaces = []string{"s1c1", "s1c2"}
		d.Categories = []pipeline.Category{{
			ID: "cap", Title: "Cap", Presence: "s1c1", PresenceMin: 0.2,
			Absence: &pipeline.Absence{Severity: pipeline.High, Title: "No cap", Rationale: "nothing found"},
		}}
	})
}

// body is a stage's, every call answered with the value.
func body(d pipeline.Definition, stage, chunk int, value float64, findings ...pipeline.Finding) pipeline.StageBody {
	b := pipeline.StageBody{Stage: stage, Chunk: chunk, Findings: findings}
	for _, call := range d.Stages[stage-1].Calls {
		v := value
		b.Cells = append(b.Cells, pipeline.Cell{Chunk: chunk, Call: call.ID, State: pipeline.CellAnswered, Value: &v})
	}
	return b
}

func TestMerge(t *testing.T) {
	d := reviewed()
	job := pipelinetest.NewJob(jobID)
	chunks := func(n int) pipeline.Manifest {
		m := pipeline.Manifest{Document: "hash"}
		for i := range n {
			m.Chunks = append(m.Chunks, pipeline.Chunk{Index: i})
		}
		return m
	}
	with := func(f pipeline.Finding, severity pipeline.Severity, confidence float64) pipeline.Finding {
		f.Severity, f.Confidence = severity, confidence
		return f
	}
	titles := func(findings []pipeline.Finding) string {
		var all []string
		for _, f := range findings {
			all = append(all, fmt.Sprintf("%s %s %d", f.Call, f.Severity, f.Start))
		}
		return strings.Join(all, "; ")
	}
	for _, c := range []struct {
		name   string
		bodies []pipeline.StageBody
		want   string
	}{
		{
			"an answered call's findings stand for those it replaces",
			[]pipeline.StageBody{body(d, 1, 0, 1, finding(0, "s1c1", "a", 0, 9), finding(0, "s1c2", "a", 50, 59)), body(d, 2, 0, 1, finding(0, "s2c1", "a", 0, 9))},
			"s2c1 high 0",
		},
		{
			"a call that failed replaces nothing",
			[]pipeline.StageBody{
				body(d, 1, 0, 1, finding(0, "s1c1", "a", 0, 9)),
				{Stage: 2, Cells: []pipeline.Cell{{Call: "s2c1", State: pipeline.CellFailed}, {Call: "s2c2", State: pipeline.CellAnswered}}},
			},
			"s1c1 high 0",
		},
		{
			"it replaces those of its own chunk only",
			[]pipeline.StageBody{body(d, 1, 0, 1, finding(0, "s1c1", "a", 0, 9)), body(d, 1, 1, 1, finding(1, "s1c1", "a", 100, 109)), body(d, 2, 1, 1)},
			"s1c1 high 0",
		},
		{
			"of two about one place the gravest and surest stays",
			[]pipeline.StageBody{body(d, 1, 0, 1, with(finding(0, "s1c1", "a", 0, 20), pipeline.High, 0.5), with(finding(0, "s1c2", "a", 19, 40), pipeline.Medium, 0.9))},
			"s1c2 medium 19",
		},
		{
			"places that only touch are two findings",
			[]pipeline.StageBody{body(d, 1, 0, 1, finding(0, "s1c1", "a", 0, 20), finding(0, "s1c2", "a", 20, 40))},
			"s1c1 high 0; s1c2 high 20",
		},
		{
			"another category in the same place is another finding",
			[]pipeline.StageBody{body(d, 1, 0, 1, finding(0, "s1c1", "a", 0, 20), finding(0, "s1c2", "b", 0, 20))},
			"s1c1 high 0; s1c2 high 0",
		},
		{
			"what has no place comes last, however grave",
			[]pipeline.StageBody{body(d, 1, 0, 1, func() pipeline.Finding {
				f := with(finding(0, "s1c1", "a", -1, -1), pipeline.Critical, 1)
				f.Match = pipeline.MatchUngrounded
				return f
			}(), with(finding(0, "s1c2", "a", 5, 9), pipeline.Low, 0.4))},
			"s1c2 low 5; s1c1 critical -1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := titles(finalize.Merge(d, job, chunks(2), c.bodies).Stay); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("the one that stays is confirmed and names the calls of the others", func(t *testing.T) {
		got := finalize.Merge(d, job, chunks(1), []pipeline.StageBody{
			body(d, 1, 0, 1, finding(0, "s1c1", "a", 0, 20), with(finding(0, "s1c2", "a", 5, 9), pipeline.Low, 0.1)),
		}).Stay
		if len(got) != 1 || got[0].State != pipeline.Confirmed || fmt.Sprint(got[0].Contributors) != "[s1c2]" {
			t.Errorf("got %+v, want one confirmed finding with contributor s1c2", got)
		}
	})
	t.Run("a finding that was replaced contributes to the one that stands there, and none vanishes without a reason", func(t *testing.T) {
		merged := finalize.Merge(d, job, chunks(1), []pipeline.StageBody{
			body(d, 1, 0, 1, finding(0, "s1c1", "a", 0, 9), finding(0, "s1c2", "a", 8, 30), finding(0, "s1c1", "b", 0, 9), finding(0, "s1c2", "a", 30, 40)),
			body(d, 2, 0, 1, with(finding(0, "s2c1", "a", 5, 9), pipeline.Low, 0.9), with(finding(0, "s2c2", "a", 7, 31), pipeline.Low, 0.1)),
		})
		if got, want := titles(merged.Stay), "s2c1 low 5"; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if got, want := fmt.Sprint(merged.Stay[0].Contributors), "[s1c1 s1c2 s2c2]"; got != want {
			t.Errorf("got contributors %s, want %s", got, want)
		}
		if got, want := titles(merged.Withdrawn), "s1c1 high 0"; got != want {
			t.Fatalf("got %q withdrawn, want %q: the other category", got, want)
		}
		f := merged.Withdrawn[0]
		if want := "s2c1 stands for s1c1 and reports nothing there"; f.State != pipeline.Withdrawn || f.Why != want {
			t.Errorf("got %s because %q, want withdrawn because %q", f.State, f.Why, want)
		}
	})
	t.Run("a category is absent only if every chunk was judged and none reached the bar", func(t *testing.T) {
		unanswered := body(d, 1, 1, 0)
		unanswered.Cells[0].State = pipeline.CellFailed
		unasked := body(d, 1, 1, 0)
		unasked.Cells[0].State = pipeline.CellNotAsked
		gated := body(d, 1, 1, 0)
		gated.Cells[0].State = pipeline.CellGated
		beside := body(d, 1, 1, 0)
		beside.Cells[1].State = pipeline.CellFailed
		unneeded := body(d, 1, 1, 0)
		unneeded.Cells[1].State = pipeline.CellGated
		for _, c := range []struct {
			name   string
			bodies []pipeline.StageBody
			want   int
		}{
			{"another call that may find it failed", []pipeline.StageBody{body(d, 1, 0, 0), beside}, 0},
			{"another call that may find it was not needed", []pipeline.StageBody{body(d, 1, 0, 0), unneeded}, 1},
			{"all judged, none reached it", []pipeline.StageBody{body(d, 1, 0, 0.1), body(d, 1, 1, 0)}, 1},
			{"one reached it", []pipeline.StageBody{body(d, 1, 0, 0.2), body(d, 1, 1, 0)}, 0},
			{"one chunk failed", []pipeline.StageBody{body(d, 1, 0, 0), unanswered}, 0},
			{"one chunk was not asked", []pipeline.StageBody{body(d, 1, 0, 0), unasked}, 0},
			{"one chunk was gated", []pipeline.StageBody{body(d, 1, 0, 0), gated}, 0},
			{"one chunk is missing", []pipeline.StageBody{body(d, 1, 0, 0)}, 0},
			{"a finding shows the opposite", []pipeline.StageBody{body(d, 1, 0, 0, finding(0, "s2c2", "cap", 3, 9)), body(d, 1, 1, 0)}, 0},
		} {
			n := 0
			whole := append(c.bodies, body(d, 2, 0, 0), body(d, 2, 1, 0))
			for _, f := range finalize.Merge(d, job, chunks(2), whole).Stay {
				if f.Match != pipeline.MatchAbsence {
					continue
				}
				n++
				if f.Chunk != -1 || f.Start != -1 || fmt.Sprint(f.Chunks) != "[0 1]" || f.Model == "" || f.ID == "" {
					t.Errorf("%s: got %+v, want a finding of the document that names the chunks and the model", c.name, f)
				}
			}
			if n != c.want {
				t.Errorf("%s: got %d absences, want %d", c.name, n, c.want)
			}
		}
	})
}

func TestFeed(t *testing.T) {
	d := reviewed()
	d.Tolerance = 1
	put := func(b *bench, stage int, findings ...pipeline.Finding) {
		b.must(b.store.PutFindings(b.Context(), pipeline.FindingGroup{Job: jobID, Task: pipeline.WorkTask(0), Stage: stage, Generation: 1, Findings: findings}))
	}
	t.Run("what stays is confirmed and what does not is withdrawn, a zombie's included", func(t *testing.T) {
		b := newBench(t, d, 1)
		replaced, stays, zombie := finding(0, "s1c1", "a", 0, 9), finding(0, "s2c1", "a", 0, 9), finding(0, "s1c2", "a", 70, 79)
		put(b, 1, replaced, zombie)
		put(b, 2, stays)
		b.answerAll(1, func(body *pipeline.StageBody) {
			if body.Stage == 1 {
				body.Findings = []pipeline.Finding{replaced}
			} else {
				body.Findings = []pipeline.Finding{stays}
			}
		})
		b.run()
		feed := b.feed()
		for id, want := range map[string]string{
			replaced.ID: "withdrawn part of " + stays.ID, stays.ID: "confirmed ", zombie.ID: "withdrawn no accepted stage reports it",
		} {
			if got := string(feed[id].State) + " " + feed[id].Why; got != want {
				t.Errorf("finding %s is %s, want %s", id, got, want)
			}
		}
	})
	t.Run("a group that a worker puts only then changes nothing", func(t *testing.T) {
		b := newBench(t, d, 1)
		replaced, stays := finding(0, "s1c1", "a", 0, 9), finding(0, "s2c1", "a", 0, 9)
		b.answerAll(1, func(body *pipeline.StageBody) {
			body.Findings = [][]pipeline.Finding{{replaced}, {stays}}[body.Stage-1]
		})
		b.run()
		want := b.feed()
		put(b, 1, replaced)
		put(b, 2, stays)
		if got := b.feed(); !reflect.DeepEqual(got, want) || got[stays.ID].State != pipeline.Confirmed || got[replaced.ID].State != pipeline.Withdrawn {
			t.Errorf("the feed says %v in the end, and %v before what came late; want the one confirmed and the other withdrawn, both times", got, want)
		}
	})
	t.Run("what a redrive has made void, and comes only then, changes nothing: of a stage, and of the finalize before", func(t *testing.T) {
		b := newBench(t, d, 2)
		void, stays := finding(1, "s1c1", "a", 0, 9), finding(0, "s2c1", "a", 20, 29)
		b.answer(0, 2, pipeline.TaskDone, pipeline.Failure{}, func(body *pipeline.StageBody) {
			if body.Stage == 2 {
				body.Findings = []pipeline.Finding{stays}
			}
		})
		b.answer(1, 1, pipeline.TaskAbandoned, pipeline.Fail(pipeline.Lost, "died"), func(body *pipeline.StageBody) { body.Findings = []pipeline.Finding{void} })
		before := b.claim().claim // of a finalize that dies, with its first group on its way
		reopened, row := b.job(), b.row(pipeline.WorkTask(1))
		reopened.Epoch = 2
		_, _, err := b.store.Redrive(b.Context(), pipeline.RedriveWrite{Task: row, Job: b.job(), Reopened: reopened, Now: b.clock.Now()})
		b.must(err)
		b.answer(1, 2, pipeline.TaskDone, pipeline.Failure{}, nil)
		b.run()
		want := b.feed()
		confirmed := void
		confirmed.State = pipeline.Confirmed
		for _, late := range []pipeline.FindingGroup{
			{Job: jobID, Task: row.ID, Stage: 1, Generation: row.Generation, Findings: []pipeline.Finding{void}},
			{Job: jobID, Task: before.ID, Stage: 1, Generation: before.Generation, Findings: []pipeline.Finding{confirmed}},
		} {
			b.must(b.store.PutFindings(b.Context(), late))
			if got := b.feed(); !reflect.DeepEqual(got, want) || got[stays.ID].State != pipeline.Confirmed {
				t.Errorf("after the group of %s the feed says %v, and %v before it", late.Task, got, want)
			}
		}
	})
	t.Run("many long findings become several groups, each of them an item", func(t *testing.T) {
		b := newBench(t, d, 3)
		b.answerAll(3, func(body *pipeline.StageBody) {
			if body.Stage != 2 {
				return
			}
			for n := range 250 {
				f := finding(body.Chunk, "s2c2", "a", body.Chunk*10_000+n*10, body.Chunk*10_000+n*10+5)
				f.Rationale = strings.Repeat("because ", 100)
				body.Findings = append(body.Findings, f)
			}
		})
		if e := b.run(); e.Outcome != pipeline.Succeeded {
			t.Fatalf("got %s: %s", e.Outcome, e.Failure)
		}
		if got := len(b.feed()); got < 750 {
			t.Errorf("got %d findings on the feed, want all 750", got)
		}
	})
}
