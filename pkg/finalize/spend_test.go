package finalize_test

import (
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestAnAnswerThatSeveralCellsShareIsPaidOnce(t *testing.T) {
	const price = 1000 // more than the records say: their worker was killed
	for name, c := range map[string]struct {
		key  func(chunk int) pipeline.ReplyKey
		want pipeline.Money
	}{
		"equal lines share a key":       {func(int) pipeline.ReplyKey { return "same" }, price},
		"each has its own":              {func(n int) pipeline.ReplyKey { return pipeline.ReplyKey(rune('a' + n)) }, 3 * price},
		"without a key none is another": {func(int) pipeline.ReplyKey { return "" }, 3 * price},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, pipelinetest.NewDefinition(1, 1), 3)
			b.answerAll(3, func(body *pipeline.StageBody) {
				body.Cells[0].Key, body.Cells[0].Cost = c.key(body.Chunk), price
			})
			b.run()
			if got := b.result().Spend.Cost; got != c.want {
				t.Errorf("got %s spent, want %s", got, c.want)
			}
		})
	}
}
