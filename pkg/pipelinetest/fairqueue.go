package pipelinetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// TestFairQueue holds a queue to its order: the job with the fewest deliveries in flight first, among equal ones the one
// that was served longest ago, of its messages the oldest. Not every queue promises it: see [pipeline.Queue].
func TestFairQueue(t *testing.T, open func(t *testing.T, cfg QueueConfig) QueueHarness) {
	testQueue(t, fairPromises, open)
}

var fairPromises = []queuePromise{
	{"a job that has fewer in flight does not wait behind older messages", fewestFirst},
	{"a job whose messages are all in flight is in nobody's way", allInFlight},
	{"jobs that share one receiver are served in turn", servedInTurn},
	{"jobs that nobody has served come by the age of their messages", oldestFirst},
	{"of one job the message comes first that has been visible longest", oldestOfItsJob},
	{"a batch is shared too", sharedBatch},
	{"what was put off is not in flight", putOffIsNotInFlight},
	{"what came back is not in flight", returnedIsNotInFlight},
	{"bodies that are no message are one job together", undecodableIsOneJob},
	{"a batch goes on past what was received too often", pastTheExhausted},
	{"whoever works for some jobs only leaves the messages of the others as they are", leftToOthers},
}

func leftToOthers(b *queueBench) {
	whole := b.Queue
	b.Queue = whole.(pipeline.Choosy).For(func(_ context.Context, job pipeline.JobID) bool { return job == "b" })
	b.queue("aa")
	b.serve(3, "")
	b.queue("b?b")
	b.serve(10, "b?b")
	b.serve(3, "")
	b.Queue = whole
	for _, d := range b.serve(3, "aa") {
		if d.Receives != 1 {
			b.Errorf("a message that was left is received for the %d. time", d.Receives)
		}
	}
}

// queue sends a message for each letter: its job.
func (b *queueBench) queue(jobs string) {
	b.Helper()
	for n, job := range strings.Split(jobs, "") {
		if job == "?" {
			b.Raw(b.T, []byte("no message"))
			continue
		}
		failed, err := b.Queue.Send(b.ctx, []pipeline.Message{{Job: pipeline.JobID(job), Task: pipeline.WorkTask(n)}})
		if b.must(err); len(failed) > 0 {
			b.Fatal("a message was not taken")
		}
	}
}

// serve receives so many and returns them, having checked whose they are.
func (b *queueBench) serve(limit int, want string) []pipeline.Delivery {
	b.Helper()
	got, err := b.Queue.Receive(b.ctx, limit, 0)
	b.must(err)
	var jobs strings.Builder
	for _, d := range got {
		if m, err := pipeline.DecodeMessage(d.Body); err != nil {
			jobs.WriteString("?")
		} else {
			jobs.WriteString(string(m.Job))
		}
	}
	if jobs.String() != want {
		b.Fatalf("got messages of %q, want %q", &jobs, want)
	}
	return got
}

func fewestFirst(b *queueBench) {
	b.queue("aaaaaa")
	b.serve(3, "aaa")
	b.Advance(b.T, time.Millisecond)
	b.queue("bbbb")
	for _, want := range strings.Split("bbbabaa", "") {
		b.serve(1, want)
	}
}

func allInFlight(b *queueBench) {
	b.queue("a")
	b.serve(1, "a")
	b.queue("b")
	b.serve(1, "b")
}

func servedInTurn(b *queueBench) {
	b.queue("aaaabbbbcc")
	for _, want := range strings.Split("abcabcabab", "") {
		b.remove(b.serve(1, want)[0])
	}
}

func oldestFirst(b *queueBench) {
	b.queue("cb")
	b.Advance(b.T, time.Millisecond)
	b.queue("a")
	b.serve(3, "cba")
}

func oldestOfItsJob(b *queueBench) {
	b.queue("aab")
	first := b.serve(1, "a")[0]
	b.Advance(b.T, time.Millisecond)
	b.must(b.Queue.Delay(b.ctx, first, 0))
	b.serve(1, "b")
	if again := b.serve(1, "a")[0]; string(again.Body) == string(first.Body) {
		b.Error("got the one that was received and put off, before one that has waited longer")
	}
}

func sharedBatch(b *queueBench) {
	b.queue("aa")
	b.serve(2, "aa")
	b.queue("aaaabbbb")
	b.serve(4, "bbab")
}

func putOffIsNotInFlight(b *queueBench) {
	b.queue("aaa")
	putOff := b.serve(2, "aa")
	b.queue("bb")
	b.serve(1, "b")
	for _, d := range putOff {
		b.must(b.Queue.Delay(b.ctx, d, time.Hour))
	}
	b.serve(1, "a")
}

func returnedIsNotInFlight(b *queueBench) {
	b.queue("aaab")
	b.serve(3, "aba")
	b.Advance(b.T, visibility-time.Millisecond)
	b.queue("bb")
	b.serve(1, "b")
	b.Advance(b.T, time.Millisecond)
	b.serve(1, "a") // it has none in flight now, and b one
}

func undecodableIsOneJob(b *queueBench) {
	b.queue("????ab")
	b.serve(6, "?ab???")
}

func pastTheExhausted(b *queueBench) {
	b.queue("a")
	for range 3 {
		b.serve(1, "a")
		b.Advance(b.T, visibility)
	}
	b.queue("aabb")
	b.receive(4)
	if letters := b.letters(); len(letters) != 1 {
		b.Errorf("got %d dead letters, want 1", len(letters))
	}
}
