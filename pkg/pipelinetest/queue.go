package pipelinetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// TestQueue holds a queue to the promises of [pipeline.Queue], one subtest per promise. open makes an empty queue.
func TestQueue(t *testing.T, open func(t *testing.T, cfg QueueConfig) QueueHarness) {
	testQueue(t, queuePromises, open)
}

func testQueue(t *testing.T, promises []queuePromise, open func(t *testing.T, cfg QueueConfig) QueueHarness) {
	for _, promise := range promises {
		t.Run(promise.says, func(t *testing.T) {
			clock := NewClock()
			cfg := QueueConfig{Visibility: visibility, MaxReceives: 3, Now: clock.Now}
			h := open(t, cfg)
			if h.Advance == nil {
				h.Advance = func(_ testing.TB, d time.Duration) { clock.Advance(d) }
			}
			promise.holds(&queueBench{T: t, QueueHarness: h, ctx: t.Context()})
		})
	}
}

// visibility is that of every queue of the suite: short, since a queue with its own clock makes the suite wait.
const visibility = 2 * time.Second

type queuePromise struct {
	says  string
	holds func(b *queueBench)
}

var queuePromises = []queuePromise{
	{"a message arrives as it was sent, and its delivery is invisible until it comes back", deliveryIsInvisible},
	{"what is deleted does not come back", deletedIsGone},
	{"an old receipt never removes another delivery", oldReceipt},
	{"a message received too often is a dead letter on the next receive, and not before", tooManyReceives},
	{"a delay decides when a delivery comes back", delayDecides},
	{"an old receipt does not delay another delivery", oldReceiptDelaysNothing},
	{"a delayed delivery counts its receives on", delayedCounts},
	{"a body that is no message arrives as it is", rawArrives},
	{"a dead letter is kept with its reason and reading changes nothing", lettersAreKept},
	{"dead letters come in pages, each once", letterPages},
	{"batches have their limits", queueLimits},
	{"the depth tells visible and in flight apart", depthCounts},
	{"a receive that waits returns when a message arrives", receiveWaits},
	{"a receive that waits ends with its context", receiveIsCancelled},
	{"of many who receive, each gets other messages", crowdReceives},
}

type queueBench struct {
	*testing.T
	QueueHarness
	ctx context.Context
}

func message(n int) pipeline.Message {
	return pipeline.Message{Job: "job-1", Task: pipeline.WorkTask(n), Tenant: "tenant", Generation: int64(n), Ring: 3}
}

func (b *queueBench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// send sends messages 1 to n, in batches.
func (b *queueBench) send(n int) {
	b.Helper()
	var all []pipeline.Message
	for i := range n {
		all = append(all, message(i+1))
	}
	for batch := range slices.Chunk(all, pipeline.MaxBatch) {
		failed, err := b.Queue.Send(b.ctx, batch)
		if err != nil || len(failed) > 0 {
			b.Fatalf("send: %d failed, %v", len(failed), err)
		}
	}
}

// receive takes what is there, until want deliveries have come or nothing comes any more.
func (b *queueBench) receive(want int) []pipeline.Delivery {
	b.Helper()
	var all []pipeline.Delivery
	for empty := 0; len(all) < want && empty < 3; {
		some, err := b.Queue.Receive(b.ctx, pipeline.MaxBatch, b.Lag)
		b.must(err)
		all = append(all, some...)
		if len(some) == 0 {
			empty++
		}
	}
	if len(all) != want {
		b.Fatalf("got %d deliveries, want %d", len(all), want)
	}
	return all
}

func (b *queueBench) one() pipeline.Delivery {
	b.Helper()
	return b.receive(1)[0]
}

// none checks that nothing is visible.
func (b *queueBench) none() {
	b.Helper()
	some, err := b.Queue.Receive(b.ctx, pipeline.MaxBatch, 0)
	b.must(err)
	if len(some) > 0 {
		b.Fatalf("got %d deliveries, want none: the first is %s", len(some), some[0].Body)
	}
}

// remove deletes with a receipt that may be old: then it may fail, but must do no harm.
func (b *queueBench) remove(d pipeline.Delivery) {
	_, _ = b.Queue.Delete(b.ctx, []pipeline.Delivery{d})
}

func (b *queueBench) letters() []pipeline.DeadLetter {
	b.Helper()
	var all []pipeline.DeadLetter
	for cursor := ""; ; {
		page, next, err := b.Queue.DeadLetters(b.ctx, cursor)
		b.must(err)
		all = append(all, page...)
		if next == "" {
			return all
		}
		cursor = next
	}
}

func deliveryIsInvisible(b *queueBench) {
	b.send(1)
	first := b.one()
	got, err := pipeline.DecodeMessage(first.Body)
	if err != nil || got != message(1) {
		b.Errorf("got %s, error %v; want %s", first.Body, err, pipeline.Encode(message(1)))
	}
	if first.Receives != 1 || first.Receipt == "" || first.SentAt == 0 {
		b.Errorf("got receives %d, receipt %q, sent at %s; want 1, a receipt, a time", first.Receives, first.Receipt, first.SentAt)
	}
	b.none()
	b.Advance(b.T, visibility-time.Second)
	b.none()
	b.Advance(b.T, time.Second)
	second := b.one()
	if second.Receives != 2 || second.Receipt == first.Receipt || second.SentAt != first.SentAt {
		b.Errorf("got receives %d, the same receipt %v, sent at %s; want 2, another receipt, %s", second.Receives, second.Receipt == first.Receipt, second.SentAt, first.SentAt)
	}
}

func deletedIsGone(b *queueBench) {
	b.send(3)
	all := b.receive(3)
	failed, err := b.Queue.Delete(b.ctx, all[:2])
	if err != nil || len(failed) > 0 {
		b.Fatalf("delete: %d failed, %v", len(failed), err)
	}
	b.remove(all[0]) // once more
	b.Advance(b.T, visibility)
	if got := b.one(); string(got.Body) != string(all[2].Body) {
		b.Errorf("got %s, want the one that was not deleted: %s", got.Body, all[2].Body)
	}
	b.none()
}

func oldReceipt(b *queueBench) {
	b.send(1)
	first := b.one()
	b.Advance(b.T, visibility)
	second := b.one()
	b.remove(first)
	b.remove(pipeline.Delivery{Receipt: ""})
	b.Advance(b.T, visibility)
	third := b.one()
	if third.Receives != second.Receives+1 {
		b.Errorf("got receives %d, want %d", third.Receives, second.Receives+1)
	}
	failed, err := b.Queue.Delete(b.ctx, []pipeline.Delivery{third})
	if err != nil || len(failed) > 0 {
		b.Fatalf("delete: %d failed, %v", len(failed), err)
	}
	b.Advance(b.T, visibility)
	b.none()
	if letters := b.letters(); len(letters) > 0 {
		b.Errorf("got %d dead letters, want none", len(letters))
	}
}

func tooManyReceives(b *queueBench) {
	b.send(1)
	for n := 1; n <= 3; n++ {
		if got := b.one(); got.Receives != n {
			b.Errorf("got receives %d, want %d", got.Receives, n)
		}
		b.Advance(b.T, visibility)
	}
	b.Advance(b.T, b.Lag)
	b.none()
	letters := b.letters()
	if len(letters) != 1 {
		b.Fatalf("got %d dead letters, want 1", len(letters))
	}
	l := letters[0]
	if got, err := pipeline.DecodeMessage(l.Body); err != nil || got != message(1) {
		b.Errorf("got %s, error %v; want the message", l.Body, err)
	}
	if !l.Native || !l.Reason.None() || l.Job != "job-1" || l.Task != pipeline.WorkTask(1) || l.SentAt == 0 {
		b.Errorf("got %s, want a native letter of the task, without a reason", pipeline.Encode(l))
	}
	b.Advance(b.T, visibility)
	b.none()
}

func delayDecides(b *queueBench) {
	b.send(2)
	all := b.receive(2)
	b.must(b.Queue.Delay(b.ctx, all[0], 0))
	if got := b.one(); string(got.Body) != string(all[0].Body) {
		b.Errorf("got %s, want the one that was to come at once", got.Body)
	} else {
		b.remove(got)
	}
	b.must(b.Queue.Delay(b.ctx, all[1], visibility+2*time.Second))
	b.Advance(b.T, visibility+time.Second)
	b.none()
	b.Advance(b.T, time.Second)
	b.one()
}

func oldReceiptDelaysNothing(b *queueBench) {
	b.send(1)
	first := b.one()
	b.Advance(b.T, visibility)
	b.one()
	_ = b.Queue.Delay(b.ctx, first, 0) // may fail, must do nothing
	_ = b.Queue.Delay(b.ctx, first, time.Hour)
	b.Advance(b.T, visibility)
	b.one()
}

func delayedCounts(b *queueBench) {
	b.send(1)
	for n := 1; n <= 3; n++ {
		d := b.one()
		if d.Receives != n {
			b.Errorf("got receives %d, want %d", d.Receives, n)
		}
		b.must(b.Queue.Delay(b.ctx, d, 0))
	}
	b.Advance(b.T, b.Lag)
	b.none()
	if letters := b.letters(); len(letters) != 1 {
		b.Errorf("got %d dead letters, want 1", len(letters))
	}
}

func rawArrives(b *queueBench) {
	b.Raw(b.T, []byte("no message at all"))
	d := b.one()
	if string(d.Body) != "no message at all" {
		b.Errorf("got %q, want what was sent", d.Body)
	}
	if _, err := pipeline.DecodeMessage(d.Body); err == nil {
		b.Error("it was decoded")
	}
}

func lettersAreKept(b *queueBench) {
	letter := pipeline.DeadLetter{
		Body: pipeline.Encode(message(1)), Job: "job-1", Task: pipeline.WorkTask(1), Receives: 2, SentAt: T0, BuriedAt: T0 + 5,
		Reason:  pipeline.Fail(pipeline.Exhausted, "three attempts").At("score", "s1c1"),
		Context: []pipeline.Record{{Task: pipeline.WorkTask(1), Generation: 3, Ender: "c3", Failures: map[pipeline.Kind]int{pipeline.Ambiguous: 2}}},
	}
	b.must(b.Queue.Bury(b.ctx, letter))
	for range 2 {
		letters := b.letters()
		if len(letters) != 1 {
			b.Fatalf("got %d dead letters, want 1", len(letters))
		}
		if got, want := string(pipeline.Encode(letters[0])), string(pipeline.Encode(letter)); got != want {
			b.Errorf("got %s\nwant %s", got, want)
		}
	}
	b.none()
}

func letterPages(b *queueBench) {
	const n = 25
	for i := range n {
		b.must(b.Queue.Bury(b.ctx, pipeline.DeadLetter{
			Body: pipeline.Encode(message(i)), Job: "job-1", Task: pipeline.WorkTask(i), SentAt: T0, BuriedAt: T0 + pipeline.Instant(i),
			Reason: pipeline.Fail(pipeline.Invalid, "number %d", i),
		}))
	}
	for range 2 {
		var got []pipeline.TaskID
		for _, l := range b.letters() {
			got = append(got, l.Task)
		}
		if !slices.IsSorted(got) || len(got) != n || len(slices.Compact(got)) != n {
			b.Errorf("got %v, want %d letters, oldest first, each once", got, n)
		}
	}
}

func queueLimits(b *queueBench) {
	var many []pipeline.Message
	for n := range pipeline.MaxBatch + 1 {
		many = append(many, message(n))
	}
	if _, err := b.Queue.Send(b.ctx, many); err == nil {
		b.Errorf("a batch of %d messages was taken", len(many))
	}
	b.none()
	if _, err := b.Queue.Receive(b.ctx, pipeline.MaxBatch+1, 0); err == nil {
		b.Errorf("%d messages were asked for at once", pipeline.MaxBatch+1)
	}
	b.send(pipeline.MaxBatch + 1)
	all := b.receive(pipeline.MaxBatch + 1)
	if _, err := b.Queue.Delete(b.ctx, all); err == nil {
		b.Errorf("a batch of %d deliveries was deleted", len(all))
	}
	b.Advance(b.T, visibility)
	b.receive(pipeline.MaxBatch + 1)
}

func depthCounts(b *queueBench) {
	check := func(visible, inFlight int) {
		b.Helper()
		v, f, err := b.Queue.Depth(b.ctx)
		if err != nil || v != visible || f != inFlight {
			b.Errorf("got %d visible, %d in flight, error %v; want %d, %d", v, f, err, visible, inFlight)
		}
	}
	check(0, 0)
	b.send(3)
	check(3, 0)
	some, err := b.Queue.Receive(b.ctx, 1, 0)
	b.must(err)
	if len(some) != 1 {
		b.Fatalf("got %d deliveries, want 1", len(some))
	}
	check(2, 1)
	b.remove(some[0])
	check(2, 0)
}

func receiveWaits(b *queueBench) {
	var got []pipeline.Delivery
	var err error
	var group pipeline.Group
	group.Go(func() { got, err = b.Queue.Receive(b.ctx, 1, 20*time.Second) })
	b.send(1)
	group.Wait()
	if err != nil || len(got) != 1 {
		b.Errorf("got %d deliveries, error %v; want 1", len(got), err)
	}
}

func receiveIsCancelled(b *queueBench) {
	ctx, cancel := context.WithCancel(b.ctx)
	var got []pipeline.Delivery
	var group pipeline.Group
	group.Go(func() { got, _ = b.Queue.Receive(ctx, 1, time.Hour) })
	cancel()
	group.Wait()
	if len(got) != 0 {
		b.Errorf("got %d deliveries, want none", len(got))
	}
}

func crowdReceives(b *queueBench) {
	const messages, workers = 40, 8
	b.send(messages)
	bodies := make([][]string, workers)
	errs := make([]error, workers)
	together(workers, func(i int) {
		for empty := 0; empty < 3 && errs[i] == nil; {
			var some []pipeline.Delivery
			errs[i] = steadily(func() (err error) { some, err = b.Queue.Receive(b.ctx, 3, 0); return err })
			if len(some) == 0 {
				empty++
			}
			for _, d := range some {
				bodies[i] = append(bodies[i], string(d.Body))
			}
		}
	})
	all := slices.Concat(bodies...)
	slices.Sort(all)
	if len(all) != messages || len(slices.Compact(all)) != messages {
		b.Errorf("got %d deliveries, want each of %d messages once: %v", len(all), messages, fmt.Sprint(errs))
	}
}
