package submit_test

import (
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
)

func TestPlan(t *testing.T) {
	t.Run("the worst case is every cell at its dearest, as often as it may be tried", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		plan, err := b.Plan(t.Context(), job.ID)
		b.must(err)
		if plan.Chunks != 3 || plan.Calls != 4 || plan.Cells != 12 || plan.PerTry != 12 {
			t.Errorf("got %d chunks x %d calls = %d cells of %d tries", plan.Chunks, plan.Calls, plan.Cells, plan.PerTry)
		}
		if want := 12 * plan.Dearest; plan.Worst != want || plan.Ceiling != want {
			t.Errorf("got worst %s and ceiling %s, want %s", plan.Worst, plan.Ceiling, want)
		}
		if plan.Once <= 0 || plan.Once >= plan.Expected || plan.Expected >= plan.Worst {
			t.Errorf("got once %s, expected %s, worst %s; want them to grow", plan.Once, plan.Expected, plan.Worst)
		}
	})
	t.Run("no request that can be sent is dearer than the dearest try", func(t *testing.T) {
		b := newBench(t)
		sub := submission()
		sub.Hold = true
		sub.Definition.Shared = "<text>{{.Heading}} {{.Text}} and again {{.Text}}</text>"
		text := strings.Repeat("Der Höchstbetrag (§ 4.2) ist 1.000.000,00 €. ", 2000)
		job, _ := b.submit(sub)
		b.split(job, text, 3, pipeline.TaskParked)
		plan, err := b.Plan(t.Context(), job.ID)
		b.must(err)
		manifest, err := pipeline.ReadManifest(t.Context(), b.store, job.ID)
		b.must(err)
		reply := strings.Repeat("abcdef", 400) // an answer as long as the escalated max_tokens of 200
		for _, chunk := range manifest.Chunks {
			for stage := range sub.Definition.Stages {
				questions, _, _ := renderer{reply}.Questions(pipeline.StageRequest{Definition: sub.Definition, Job: job, Text: text, Chunk: chunk, Stage: stage + 1})
				for _, q := range questions {
					if got := pipeline.DearestTry(model, q.Request); got > plan.Largest {
						t.Errorf("chunk %d, call %s can cost %s, the plan's dearest try is %s", chunk.Index, q.Call.ID, got, plan.Largest)
					}
				}
			}
		}
	})
	t.Run("what is stored already is counted and costs nothing more", func(t *testing.T) {
		b := newBench(t, func(c *submit.Config) { c.Reviewer = renderer{} })
		job := planned(b)
		before, err := b.Plan(t.Context(), job.ID)
		b.must(err)
		text, err := b.store.Blob(t.Context(), pipeline.DocumentKey("hash"))
		b.must(err)
		manifest, err := pipeline.ReadManifest(t.Context(), b.store, job.ID)
		b.must(err)
		body, err := b.store.Blob(t.Context(), job.Fingerprint)
		b.must(err)
		d, err := pipeline.DecodeDefinition(body)
		b.must(err)
		questions, _, _ := renderer{}.Questions(pipeline.StageRequest{Definition: d, Job: job, Text: string(text), Chunk: manifest.Chunks[1], Stage: 1})
		for _, q := range questions {
			_, err := b.store.PutReply(t.Context(), pipeline.Reply{Key: q.Request.Key, Text: "{}"})
			b.must(err)
		}
		after, err := b.Plan(t.Context(), job.ID)
		b.must(err)
		if before.Stored != 0 || after.Stored != 2 {
			t.Errorf("got %d and then %d stored, want 0 and 2", before.Stored, after.Stored)
		}
		if after.Once >= before.Once || after.Worst != before.Worst {
			t.Errorf("got once %s after %s and worst %s after %s; want once smaller and the worst the same", after.Once, before.Once, after.Worst, before.Worst)
		}
	})
	t.Run("the plan that was started is the one that is shown from then on", func(t *testing.T) {
		b := newBench(t)
		job := planned(b)
		_, err := b.Start(t.Context(), job.ID)
		b.must(err)
		want, err := b.Plan(t.Context(), job.ID)
		b.must(err)
		cfg := b.cfg
		cfg.Policy.MaxAttempts = 1
		got, err := submit.New(cfg).OpenBudget(t.Context(), job.ID)
		b.must(err)
		if got != want {
			t.Errorf("got %+v, want the fixed %+v", got, want)
		}
	})
	t.Run("the lines show the arithmetic", func(t *testing.T) {
		lines := strings.Join(submit.Lines(pipeline.Plan{
			Chunks: 20, Calls: 116, Cells: 2320, PerTry: 12, Input: 4_988_000, MaxOutput: 580_000, Stored: 320,
			Dearest: 46 * pipeline.Dollar, Once: 20 * pipeline.Dollar, Expected: 21 * pipeline.Dollar, Worst: 557 * pipeline.Dollar, Ceiling: 100 * pipeline.Dollar,
			FailShare: 0.05, Model: pipeline.ModelInfo{Name: "offline", Free: true, PricedAs: "sonnet", Price: pipeline.Price{Input: 2000, Output: 10000}},
		}), "\n")
		for _, want := range []string{
			"20 chunks x 116 calls = 2,320 cells", "4,988,000 input tokens", "at most 2,000 left to ask", "12 x $46.00 for all 2,320, if no stored reply is used",
			"$100.00", "at the price of sonnet: $2.00 per million tokens in, $10.00 out", "$0 is spent",
		} {
			if !strings.Contains(lines, want) {
				t.Errorf("the lines do not say %q:\n%s", want, lines)
			}
		}
	})
}
