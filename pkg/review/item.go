package review

import (
	"strings"

	"holdfast/pkg/pipeline"
)

// itemQuestion is the one question about a chunk that a handler works on. Its request holds what can change the answer,
// for the reply's key: the handler is the job's model.
func itemQuestion(s pipeline.StageRequest) (pipeline.Question, error) {
	data, err := promptData(s)
	if err != nil {
		return pipeline.Question{}, err
	}
	d, text := s.Definition, data.Text
	if d.Chunking.Lines {
		text = pipeline.Line(text)
	}
	var how string
	if len(d.Command) > 0 {
		how = string(pipeline.Encode(append([]string{d.Dir}, d.Command...)))
	}
	return pipeline.Question{
		Chunk: s.Chunk.Index, Call: d.Stages[s.Stage-1].Calls[0],
		Request: pipeline.Request{
			System: how, Shared: text, Timeout: d.TryTimeout,
			Item: &pipeline.WorkItem{
				Text: text, Number: s.Chunk.Index, Name: s.Job.Name, Command: d.Command, Dir: d.Dir, TryCost: d.TryCost,
			},
		},
	}, nil
}

// checkItem says what is wrong with a handler's answer: any text will do, an empty one too.
func checkItem(text string) (string, bool, error) {
	return strings.ToValidUTF8(text, "?"), false, nil
}
