package submit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

// ErrNotSplit says that nobody knows yet how many chunks there are.
var ErrNotSplit = errors.New("the document is not split yet: wait for its split")

// Plan is what the job will cost: the one that is enforced if the job was started, else as things stand now.
func (s *Submitter) Plan(ctx context.Context, id pipeline.JobID) (pipeline.Plan, error) {
	plan, err := s.plan(ctx, id)
	if err != nil {
		return plan, fmt.Errorf("plan job %s: %w", id, err)
	}
	return plan, nil
}

// OpenBudget fixes the job's plan and opens its budget at the plan's ceiling. Repeating it changes neither. A job that
// was not held has no Start: whoever first needs its money calls this. Those who need it together wait for the first,
// since a plan renders every call.
func (s *Submitter) OpenBudget(ctx context.Context, id pipeline.JobID) (pipeline.Plan, error) {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return pipeline.Plan{}, context.Cause(ctx)
	}
	plan, err := s.Plan(ctx, id)
	if err != nil {
		return plan, err
	}
	body, err := s.cfg.Store.PutItemOnce(ctx, id, pipeline.PlanKey, pipeline.Encode(plan))
	if err != nil {
		return plan, fmt.Errorf("fix the plan of job %s: %w", id, err)
	}
	if plan, err = pipeline.Decode[pipeline.Plan](body, pipeline.PlanKey); err != nil {
		return plan, err
	}
	if err := s.cfg.Store.OpenBudget(ctx, id, plan.Ceiling); err != nil {
		return plan, fmt.Errorf("open the budget of job %s: %w", id, err)
	}
	return plan, nil
}

func (s *Submitter) plan(ctx context.Context, id pipeline.JobID) (pipeline.Plan, error) {
	body, err := s.cfg.Store.Item(ctx, id, pipeline.PlanKey)
	if err == nil {
		return pipeline.Decode[pipeline.Plan](body, pipeline.PlanKey)
	}
	if !errors.Is(err, pipeline.ErrNotFound) {
		return pipeline.Plan{}, err
	}
	job, err := s.cfg.Store.Job(ctx, id)
	if err != nil {
		return pipeline.Plan{}, err
	}
	manifest, err := s.manifest(ctx, id)
	if err != nil {
		return pipeline.Plan{}, err
	}
	model, err := item[pipeline.ModelInfo](ctx, s.cfg.Store, id, pipeline.ModelKey)
	if err != nil {
		return pipeline.Plan{}, err
	}
	d, err := s.definition(ctx, job)
	if err != nil {
		return pipeline.Plan{}, err
	}
	asks := priceAsks(d, manifest, model)
	if err := s.markStored(ctx, job, d, manifest, model, &asks); err != nil {
		return pipeline.Plan{}, err
	}
	return s.sum(job, d, manifest, model, asks), nil
}

func (s *Submitter) manifest(ctx context.Context, id pipeline.JobID) (pipeline.Manifest, error) {
	m, err := pipeline.ReadManifest(ctx, s.cfg.Store, id)
	switch {
	case errors.Is(err, pipeline.ErrNotFound):
		return m, ErrNotSplit
	case err != nil:
		return m, err
	case m.Closed || len(m.Chunks) == 0:
		return m, errors.New("its split found no chunk to ask about: see why")
	}
	return m, nil
}

func (s *Submitter) definition(ctx context.Context, job pipeline.Job) (pipeline.Definition, error) {
	body, err := s.cfg.Blobs.Blob(ctx, job.Fingerprint)
	if err != nil {
		return pipeline.Definition{}, fmt.Errorf("read the definition: %w", err)
	}
	return pipeline.DecodeDefinition(body)
}

func item[T any](ctx context.Context, items pipeline.Items, job pipeline.JobID, key string) (T, error) {
	body, err := items.Item(ctx, job, key)
	if err != nil {
		var none T
		return none, fmt.Errorf("read %s: %w", key, err)
	}
	return pipeline.Decode[T](body, key)
}

// sum adds the asks up. The worst case is for all cells, stored or not, because a stored reply may be gone when it is
// needed: so many tries as the policy ever allows, each as dear as the cell's dearest.
func (s *Submitter) sum(job pipeline.Job, d pipeline.Definition, m pipeline.Manifest, model pipeline.ModelInfo, a asks) pipeline.Plan {
	plan := pipeline.Plan{
		Chunks: len(m.Chunks), Calls: d.Calls(), Cells: len(m.Chunks) * d.Calls(),
		PerTry: job.TriesPerCell(s.cfg.Policy), FailShare: s.cfg.FailShare, Model: model,
	}
	for _, ask := range a.list {
		plan.Input += ask.input
		plan.MaxOutput += ask.output
		plan.Dearest += ask.dearest
		plan.Largest = max(plan.Largest, ask.dearest)
		if ask.stored {
			plan.Stored++
			continue
		}
		plan.Once += ask.once
	}
	plan.Expected = plan.Once + pipeline.Money(float64(plan.Once)*plan.FailShare)
	plan.Worst = pipeline.Money(plan.PerTry) * plan.Dearest
	plan.Ceiling = plan.Worst
	if job.MaxCost > 0 {
		plan.Ceiling = min(plan.Worst, job.MaxCost)
	}
	return plan
}

// Lines is the plan with its arithmetic, for people.
func Lines(p pipeline.Plan) []string {
	n := pipeline.Count
	asked := p.Cells - p.Stored
	if p.Model.Handler {
		return handlerLines(p)
	}
	lines := []string{
		fmt.Sprintf("%s x %s = %s, one question each: %s input tokens, at most %s output tokens",
			pipeline.CountOf(p.Chunks, "chunk", "chunks"), pipeline.CountOf(p.Calls, "call", "calls"), pipeline.CountOf(p.Cells, "cell", "cells"), n(p.Input), n(p.MaxOutput)),
	}
	if p.Stored > 0 {
		lines = append(lines, fmt.Sprintf("%s of them with a stored reply, which costs nothing: at most %s left to ask", n(p.Stored), n(asked)))
	}
	if caveat := p.Model.Caveat(p.Chunks, p.Calls); caveat != "" {
		lines = append(lines, "note: "+caveat)
	}
	lines = append(lines,
		fmt.Sprintf("once      %10s  one try of each of %s, every answer as long as it may be: most are shorter", p.Once, n(asked)),
		fmt.Sprintf("expected  %10s  once x %.2f: %.0f %% of the tries fail and are sent again", p.Expected, 1+p.FailShare, 100*p.FailShare),
		fmt.Sprintf("worst     %10s  %s tries of each cell, each at its dearest: %s x %s for all %s%s", p.Worst, n(p.PerTry), n(p.PerTry), p.Dearest, n(p.Cells), ifUnused(p)),
		fmt.Sprintf("ceiling   %10s  %s", p.Ceiling, ceilingNote(p)),
		priceLine(p.Model),
	)
	return lines
}

// ifUnused says that the worst case takes nothing off for what is stored: that may be gone when it is needed.
func ifUnused(p pipeline.Plan) string {
	if p.Stored == 0 {
		return ""
	}
	return ", if no stored reply is used"
}

func ceilingNote(p pipeline.Plan) string {
	if p.Ceiling < p.Worst {
		return "as asked for; enforced: what it does not cover is not asked, and the job ends partial"
	}
	return "enforced: the worst case is never exceeded"
}

func priceLine(m pipeline.ModelInfo) string {
	const million = 1_000_000
	name := m.Name
	if m.PricedAs != "" {
		name = m.PricedAs
	}
	line := fmt.Sprintf("at the price of %s: %s per million tokens in, %s out", name, m.Price.Input*million, m.Price.Output*million)
	if m.Free {
		line += fmt.Sprintf(" (%s itself costs nothing: $0 is spent)", strings.TrimSpace(m.Name))
	}
	return line
}
