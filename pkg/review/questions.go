package review

import (
	"fmt"
	"strings"
	"text/template"

	"holdfast/pkg/pipeline"
)

// Questions renders the calls of the stage. gated are those whose gate's call was answered with too small a value, or
// was itself gated; where that call has no answer, the question is asked: nobody decided that it is not needed. The
// reply keys are left to whoever asks.
func (r *Reviewer) Questions(s pipeline.StageRequest) (questions []pipeline.Question, gated []pipeline.Call, err error) {
	if s.Stage < 1 || s.Stage > len(s.Definition.Stages) {
		return nil, nil, fmt.Errorf("there is no stage %d, the definition has %d", s.Stage, len(s.Definition.Stages))
	}
	if s.Definition.Handler != "" {
		q, err := itemQuestion(s)
		return []pipeline.Question{q}, nil, err
	}
	data, err := promptData(s)
	if err != nil {
		return nil, nil, err
	}
	shared, err := r.render("shared", s.Definition.Shared, data)
	if err != nil {
		return nil, nil, err
	}
	for _, call := range s.Definition.Stages[s.Stage-1].Calls {
		if closed(call, s.Bodies) {
			gated = append(gated, call)
			continue
		}
		data.Vars, data.Replies = call.Vars, used(call, s.Replies)
		prompt, err := r.render(call.Prompt, s.Definition.Prompts[call.Prompt], data)
		if err != nil {
			return nil, nil, fmt.Errorf("call %s: %w", call.ID, err)
		}
		questions = append(questions, pipeline.Question{Chunk: s.Chunk.Index, Call: call, Request: pipeline.Request{
			System: s.Definition.System, Shared: shared, Prompt: prompt,
			Schema: s.Definition.Schemas[call.Schema], MaxTokens: call.MaxTokens,
		}})
	}
	return questions, gated, nil
}

// promptData is what the templates see of the chunk.
func promptData(s pipeline.StageRequest) (pipeline.PromptData, error) {
	c := s.Chunk
	if c.Context < 0 || c.Context > c.Start || c.Start >= c.End || c.End > len(s.Text) {
		return pipeline.PromptData{}, fmt.Errorf("chunk %d (%d, %d, %d) does not fit a text of %d bytes", c.Index, c.Context, c.Start, c.End, len(s.Text))
	}
	return pipeline.PromptData{Text: s.Text[c.Start:c.End], Context: s.Text[c.Context:c.Start], Heading: c.Heading}, nil
}

// used are the replies that the call's template shows; a call without an answer is missing.
func used(call pipeline.Call, replies map[string]string) map[string]string {
	shown := map[string]string{}
	for _, id := range call.Uses {
		if text, ok := replies[id]; ok {
			shown[id] = text
		}
	}
	return shown
}

// closed says that the call's gate leaves it out.
func closed(call pipeline.Call, bodies []pipeline.StageBody) bool {
	if call.Gate == nil {
		return false
	}
	for _, body := range bodies {
		for _, cell := range body.Cells {
			if cell.Call != call.Gate.Call {
				continue
			}
			return cell.State == pipeline.CellGated ||
				cell.State == pipeline.CellAnswered && cell.Value != nil && *cell.Value < call.Gate.Min
		}
	}
	return false
}

// render executes a template, parsed once. What a map does not hold is shown as nothing.
func (r *Reviewer) render(name, text string, data pipeline.PromptData) (string, error) {
	parsed, ok := r.templates.Load(text)
	if !ok {
		t, err := template.New(name).Option("missingkey=zero").Parse(text)
		if err != nil {
			return "", fmt.Errorf("template %s: %w", name, err)
		}
		parsed, _ = r.templates.LoadOrStore(text, t)
	}
	var out strings.Builder
	if err := parsed.(*template.Template).Execute(&out, data); err != nil {
		return "", fmt.Errorf("template %s: %w", name, err)
	}
	return out.String(), nil
}
