package call_test

import (
	"context"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

func TestReplyFresh(t *testing.T) {
	in(t, "what another stores while a question waits for its slot is not asked", func(b *bench) {
		b.cfg.InFlight = 1
		b.Caller = b.again()
		b.model.react = func(name string, n int) reaction {
			return reaction{text: "ok", takes: b.policy.ReplyFresh + time.Second}
		}
		job := newAttempt(1).Job()
		late := question("late")
		var group pipeline.Group
		group.Go(func() {
			time.Sleep(time.Second) // the reading at the beginning of the stage was before
			_, err := b.store.PutReply(b.ctx, pipeline.Reply{Key: pipeline.KeyOf(job.Tenant, job.Model, job.Sample, late.Request), Text: "theirs"})
			b.must(err)
		})
		answers := b.ask(1, "first", "late")
		group.Wait()
		b.text(answers[0], "ok")
		b.text(answers[1], "theirs")
		if !answers[1].Reused {
			b.Error("the second answer does not say that it is reused")
		}
		b.sent(1)
	})
	in(t, "replies are not read again for each question", func(b *bench) {
		reads := 0
		b.ports(func(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
			if op.Name == "Replies" {
				reads++
			}
			return do(ctx)
		})
		b.cfg.InFlight = 1
		b.Caller = b.again()
		b.model.react = func(name string, n int) reaction { return reaction{text: "ok", takes: time.Second} }
		b.ask(1, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")
		if reads > 4 {
			b.Errorf("got %d reads of stored replies in 12 s, want one at the beginning and one every %v", reads, b.policy.ReplyFresh)
		}
	})
}

func TestMeter(t *testing.T) {
	in(t, "a provider that counts more input than was estimated is reserved for from then on", func(b *bench) {
		counts := func(name string, n int) reaction {
			return reaction{text: "ok", usage: pipeline.Usage{Input: 10 * question(name).Request.InputTokens(), Output: 100}}
		}
		b.model.react = counts
		b.text(b.one(1, "a"), "ok")
		before := b.budget().Spent
		var most pipeline.Money
		b.model.react = func(name string, n int) reaction {
			budget := b.budget()
			most = budget.Ceiling - budget.Spent - budget.Remaining
			return counts(name, n)
		}
		b.text(b.one(2, "b"), "ok")
		if spent := b.budget().Spent - before; most < spent {
			b.Errorf("%s were reserved for a try that cost %s", most, spent)
		}
	})
}
