package submit

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"holdfast/pkg/pipeline"
)

// ask is the first asking of one cell: estimated input and the most it may answer.
type ask struct {
	input, output int
	once          pipeline.Money // of one asking, with the longest answer
	dearest       pipeline.Money // the most that a single try of it can come to
	stored        bool           // its reply is stored already
}

// cellKey names a cell.
type cellKey struct {
	chunk int
	call  string
}

// asks are all cells of a plan.
type asks struct {
	list  []ask
	index map[cellKey]int
}

// shownShare is how much of its max_tokens a shown reply is taken to have in the cost of one try and the expected cost: a quarter is
// more than answers had on contracts. The worst case does not rely on it.
const shownShare = 4

// priceAsks estimates every cell from the templates, without rendering them. Each cell's dearest try is an upper bound:
// re-asked, with the escalated max_tokens, and every reply that it shows as long as an escalated one may be.
func priceAsks(d pipeline.Definition, m pipeline.Manifest, model pipeline.ModelInfo) asks {
	a := asks{index: map[cellKey]int{}}
	if d.Handler != "" {
		return handlerAsks(d, m, a)
	}
	for _, chunk := range m.Chunks {
		for _, stage := range d.Stages {
			for _, call := range stage.Calls {
				shown := shownTokens(d, call)
				input := inputTokens(d, call, chunk)
				a.index[cellKey{chunk.Index, call.ID}] = len(a.list)
				input, most := input+shown/shownShare, input+pipeline.Escalation*shown
				a.list = append(a.list, ask{
					input: input, output: call.MaxTokens, once: model.Price.Of(input, call.MaxTokens),
					dearest: dearestTry(model, most, call.MaxTokens),
				})
			}
		}
	}
	return a
}

// handlerAsks are the cells of a handler: each try costs at most what the definition says, whatever the text.
func handlerAsks(d pipeline.Definition, m pipeline.Manifest, a asks) asks {
	call := d.Stages[0].Calls[0].ID
	for _, chunk := range m.Chunks {
		a.index[cellKey{chunk.Index, call}] = len(a.list)
		a.list = append(a.list, ask{once: d.TryCost, dearest: d.TryCost})
	}
	return a
}

// dearestTry is the price of a cell's longest re-ask with its largest answer, by the rule that sends it.
func dearestTry(model pipeline.ModelInfo, input, maxTokens int) pipeline.Money {
	return model.Price.Input*pipeline.Money(input) + pipeline.DearestTry(model, pipeline.Request{MaxTokens: maxTokens})
}

// shownTokens is the most that the replies which a call shows can add: each is shown once, at its full length.
func shownTokens(d pipeline.Definition, call pipeline.Call) int {
	sum := 0
	for _, id := range call.Uses {
		if used, _, ok := d.Find(id); ok {
			sum += used.MaxTokens
		}
	}
	return sum
}

func inputTokens(d pipeline.Definition, call pipeline.Call, chunk pipeline.Chunk) int {
	return pipeline.EstimateTokens(d.System) +
		templateTokens(d.Shared, call, chunk) +
		templateTokens(d.Prompts[call.Prompt], call, chunk) +
		pipeline.EstimateTokens(string(d.Schemas[call.Schema]))
}

// templateTokens is what a template comes to: itself, and what it shows as often as it names it.
func templateTokens(template string, call pipeline.Call, chunk pipeline.Chunk) int {
	uses := func(name string) int { return strings.Count(template, name) }
	sum := pipeline.EstimateTokens(template)
	sum += max(uses(".Text"), uses(".Context")) * chunk.Tokens
	sum += uses(".Heading") * pipeline.EstimateTokens(chunk.Heading)
	whole := uses(".Vars")
	all := 0
	for name, value := range call.Vars {
		tokens := pipeline.EstimateTokens(value)
		named := uses(".Vars." + name)
		sum += named * tokens
		whole -= named
		all += tokens
	}
	return sum + max(0, whole)*all
}

// markStored renders the calls that show no other call's reply and looks which have a reply stored. It also holds the
// bound of the dearest try against what was really rendered.
func (s *Submitter) markStored(ctx context.Context, job pipeline.Job, d pipeline.Definition, m pipeline.Manifest, model pipeline.ModelInfo, a *asks) error {
	if s.cfg.Reviewer == nil {
		return nil
	}
	text, err := s.cfg.Blobs.Blob(ctx, pipeline.DocumentKey(m.Document))
	if err != nil {
		return fmt.Errorf("read the text: %w", err)
	}
	plain := withoutUses(d)
	cells := map[pipeline.ReplyKey][]int{}
	var keys []pipeline.ReplyKey
	for _, chunk := range m.Chunks {
		if ctx.Err() != nil {
			return context.Cause(ctx) // a large document takes its time
		}
		for stage := range plain.Stages {
			request := pipeline.StageRequest{Definition: plain, Job: job, Text: string(text), Chunk: chunk, Stage: stage + 1}
			questions, _, err := s.cfg.Reviewer.Questions(request)
			if err != nil {
				return fmt.Errorf("render stage %s of chunk %d: %w", plain.Stages[stage].Name, chunk.Index, err)
			}
			for i, key := range keysOf(job, questions) {
				q := questions[i]
				if cells[key] == nil {
					keys = append(keys, key)
				}
				cell := a.index[cellKey{chunk.Index, q.Call.ID}]
				cells[key] = append(cells[key], cell)
				a.list[cell].dearest = max(a.list[cell].dearest, pipeline.DearestTry(model, q.Request))
			}
		}
	}
	return s.lookUp(ctx, keys, func(key pipeline.ReplyKey) {
		for _, i := range cells[key] {
			a.list[i].stored = true
		}
	})
}

// keysOf are the questions' reply keys, where the reviewer has not set them.
func keysOf(job pipeline.Job, questions []pipeline.Question) []pipeline.ReplyKey {
	requests := make([]pipeline.Request, len(questions))
	for i, q := range questions {
		requests[i] = q.Request
	}
	keys := pipeline.KeysOf(job.Tenant, job.Model, job.Sample, requests)
	for i, q := range questions {
		keys[i] = cmp.Or(q.Request.Key, keys[i])
	}
	return keys
}

// lookUp tells which keys have a reply. What cannot be read now counts as not stored: this is an estimate.
func (s *Submitter) lookUp(ctx context.Context, keys []pipeline.ReplyKey, stored func(pipeline.ReplyKey)) error {
	for len(keys) > 0 {
		n := min(len(keys), pipeline.MaxRead)
		found, _, err := s.cfg.Store.Replies(ctx, keys[:n])
		if err != nil {
			return fmt.Errorf("look for stored replies: %w", err)
		}
		for key := range found {
			stored(key)
		}
		keys = keys[n:]
	}
	return nil
}

// withoutUses is the definition with only the calls that can be rendered now, ungated.
func withoutUses(d pipeline.Definition) pipeline.Definition {
	var stages []pipeline.Stage
	for _, stage := range d.Stages {
		var calls []pipeline.Call
		for _, call := range stage.Calls {
			if len(call.Uses) > 0 {
				continue
			}
			call.Gate = nil
			calls = append(calls, call)
		}
		if len(calls) > 0 {
			stages = append(stages, pipeline.Stage{Name: stage.Name, Calls: calls})
		}
	}
	d.Stages = stages
	return d
}
