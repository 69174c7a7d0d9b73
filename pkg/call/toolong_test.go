package call_test

import (
	"testing"

	"holdfast/pkg/pipeline"
)

// holding lets the model refuse what does not fit its context, as providers do: input and all of max_tokens.
func holding(tokens int, stop pipeline.Stop) func(b *bench) {
	return func(b *bench) {
		b.model.info.ContextTokens = tokens
		b.model.react = func(string, int) reaction {
			sent := b.model.sendings("")
			if last := sent[len(sent)-1]; last.InputTokens()+last.MaxTokens > tokens {
				return failing(pipeline.TooLong, 0)
			}
			return reaction{text: "ok", stop: stop}
		}
	}
}

// Case M-06: a request that the context has no room for is never sent twice, and never grows.
func TestCaseM06ContextLengthExceeded(t *testing.T) {
	input := question("q").Request.InputTokens()
	shrinking := func(b *bench, want ...int) {
		b.Helper()
		sent := b.model.sendings("")
		if len(sent) != len(want) {
			b.Fatalf("got %d tries, want %d", len(sent), len(want))
		}
		for i, r := range sent {
			if r.MaxTokens != want[i] || len(r.Prompt) > len(sent[0].Prompt) {
				b.Errorf("try %d had max_tokens %d and a prompt of %d bytes, want %d and no more than %d", i+1, r.MaxTokens, len(r.Prompt), want[i], len(sent[0].Prompt))
			}
		}
	}
	in(t, "the input fits, and max_tokens beside it does not: one more try, with what there is room for", func(b *bench) {
		b.text(b.one(1, "q"), "ok")
		shrinking(b, 100, 60)
	}, holding(input+60, pipeline.StopEnd))
	in(t, "and if that is cut, the cell fails as truncated", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Truncated, false)
		shrinking(b, 100, 60)
	}, holding(input+60, pipeline.StopMaxTokens))
	in(t, "the input alone is too long: once", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.TooLong, false)
		shrinking(b, 100)
	}, holding(input, pipeline.StopEnd))
	in(t, "a provider that finds it too long whatever is asked for: twice", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.TooLong, false)
		shrinking(b, 100, 60)
	}, script(failing(pipeline.TooLong, 0)), func(b *bench) { b.model.info.ContextTokens = input + 60 })
	in(t, "a cut answer is asked for again only with the room that there is", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Truncated, false)
		shrinking(b, 100, 130)
	}, holding(input+130, pipeline.StopMaxTokens))
	in(t, "a cut answer for which there is no more room is not asked for again", func(b *bench) {
		b.kind(b.one(1, "q"), pipeline.Truncated, false)
		shrinking(b, 100)
	}, holding(input+100, pipeline.StopMaxTokens))
}
