package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

func init() { incidents["poller"] = pollerIncident }

// pollerIncident is a row that can never reach its terminal state behind a poller.
func pollerIncident(t *testing.T, p *printer, full bool) {
	marks := []int{60, 1440}
	if full {
		marks = append(marks, 365*1440)
	}
	price := newSummaries().price
	p.say("THE POLLER: %s can never be closed, and a poller looks every minute. A call is %s [1].", stuck, dollars(price))
	var naive []int
	synctest.Test(t, func(t *testing.T) { naive = pollFor(t, marks) })
	writeUp := pipeline.DefaultPolicy()
	writeUp.MaxAttempts, writeUp.MaxReceives, writeUp.MaxTries = 5, 6, 1
	var five, three closing
	synctest.Test(t, func(t *testing.T) { five = closeOurs(t, writeUp) })
	synctest.Test(t, func(t *testing.T) { three = closeOurs(t, pipeline.DefaultPolicy()) })

	row := func(what, before string, tell func(closing) string) []string {
		return []string{what, before, tell(five), tell(three)}
	}
	rows := [][]string{{"about " + stuck, "poller alone", "Holdfast, cap of five [2]", "Holdfast as shipped"}}
	for i, mark := range marks {
		n := naive[i]
		rows = append(rows, row("calls after "+spanOf(mark), fmt.Sprintf("%s (%s)", number(n), dollars(pipeline.Money(n)*price)),
			func(c closing) string {
				return fmt.Sprintf("%s (%s)", number(c.calls), dollars(pipeline.Money(c.calls)*price))
			}))
		if n != mark {
			t.Errorf("the poller alone made %d calls in %d ticks", n, mark)
		}
	}
	rows = append(rows,
		row("the most it can cost, printed before", "unbounded", func(c closing) string { return dollars(c.worst) }),
		row("attempts, each with its reason", "0", func(c closing) string { return number(len(c.records)) }),
		row("state after", inProgress, func(c closing) string { return string(c.row.Status) }),
		row("messages left in the queues", "-", func(c closing) string { return number(c.left) }),
		row("rings in the day after", "-", func(c closing) string { return number(c.rings) }),
		row("calls while the poller polls on for a day [3]", number(1440), func(c closing) string { return number(c.later) }),
		row("other rows closed", "5 of 5", func(c closing) string { return fmt.Sprintf("%d of 5", c.others) }),
	)
	p.table(rows...)
	p.say("  Why it stopped, as `holdfast why` has it (virtual time, which begins in 2000):")
	for _, r := range five.records {
		p.say("    attempt %d at %s: %s (%s)", r.Attempt, r.EndedAt, r.Failure, dollars(r.Cost))
	}
	p.say("")
	p.notes(
		fmt.Sprintf("%s tokens in, %s out, at %s's list price (pkg/config/prices.json).", number(promptTokens), number(summaryTokens), pricedAs),
		"The write-up's numbers: five attempts of one try each, a dollar. Shipped are 3 attempts of up to 4 tries; a failure that is not transient uses one try of an attempt.",
		"At every tick the poller submits the same rows again and sends a message about the stuck row straight into the queue. Holdfast was watched for these two days; nothing claims a row that has ended, so the year is the same.",
	)
	five.check(t, writeUp, price)
	three.check(t, pipeline.DefaultPolicy(), price)
}

func spanOf(minutes int) string {
	return map[int]string{60: "an hour", 1440: "a day", 365 * 1440: "a year"}[minutes]
}

// pollFor lets the naive poller tick, and says how often the model was asked about the stuck row at each mark.
func pollFor(t *testing.T, marks []int) (calls []int) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	rows, model := conversations(), newSummaries()
	ticks := 0
	naivePoller(ctx, rows, model, func() {
		if ticks++; ticks == marks[len(calls)] {
			calls = append(calls, model.calls[stuck])
		}
		if len(calls) == len(marks) {
			stop()
		}
	})
	for _, row := range rows {
		if (row.state == closed) != (row.id != stuck) {
			t.Errorf("the poller alone: %s is %s", row.id, row.state)
		}
	}
	return calls
}

// closing is how it goes with Holdfast.
type closing struct {
	worst   pipeline.Money
	calls   int // about the stuck row, until the job ended
	later   int // in the days after
	others  int // rows that were closed
	rings   int64
	left    int // messages
	row     pipeline.Task
	after   pipeline.Task // the same row two days later
	records []pipeline.Record
}

// closeOurs closes the same rows with the same model, as a task in Go: a line is a row.
func closeOurs(t *testing.T, policy pipeline.Policy) (c closing) {
	const name = "close-conversation@1"
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	rows, model := map[string]*conversation{}, newSummaries()
	var list []string
	for _, row := range conversations() {
		rows[row.id] = row
		list = append(list, row.id)
	}
	var mu sync.Mutex
	closeRow := func(ctx context.Context, item pipeline.WorkItem) (pipeline.Output, error) {
		if err := model.ask(ctx, item.Text); err != nil {
			return pipeline.Output{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		if rows[item.Text].close() == 0 {
			return pipeline.Output{Cost: model.price}, errors.New("no row was updated: ended_at is null")
		}
		return pipeline.Output{Text: "closed", Cost: model.price}, nil
	}
	e := newEngine(t, ctx, policy, nil)
	e.sweep = 10 * time.Second
	w := e.start("worker", wiring.Config{Functions: map[string]pipeline.Function{name: closeRow}, InFlight: 4, Poll: 10 * time.Second})
	defer w.kill()

	d := pipeline.LinesOf(name)
	d.TryCost = model.price
	submission := submit.Submission{Name: "conversations.txt", Source: []byte(strings.Join(list, "\n") + "\n"), Definition: d, Hold: true}
	job, _, err := e.desk.Submitter.Submit(ctx, submission)
	e.must(err)
	plan := e.begins(job.ID)
	c.worst = plan.Worst / pipeline.Money(plan.Cells)
	e.ends(job.ID)
	c.calls = model.calls[stuck]
	ref := pipeline.Ref{Job: job.ID, ID: pipeline.WorkTask(3)}
	c.row = e.task(ref)
	history, err := pipeline.ReadHistory(ctx, e.back.Store, ref)
	e.must(err)
	c.records = c.row.Counting(history.Records)
	for _, row := range rows {
		if row.state == closed {
			c.others++
		}
	}
	e.quiet(time.Hour)
	time.Sleep(24 * time.Hour)
	c.left, c.rings = e.depth(), e.task(ref).Ring-c.row.Ring
	for range 1440 {
		time.Sleep(tick)
		_, stood, err := e.desk.Submitter.Submit(ctx, submission)
		e.must(err)
		if !stood {
			t.Error("the poller began another job")
		}
		e.must(e.back.Queues.Ring(ctx, c.row))
	}
	time.Sleep(tick)
	c.later, c.after = model.calls[stuck]-c.calls, e.task(ref)
	if left := e.depth(); left > 0 {
		t.Errorf("%d messages are left after the poller's day", left)
	}
	return c
}

// check holds it to the promises.
func (c closing) check(t *testing.T, policy pipeline.Policy, price pipeline.Money) {
	t.Helper()
	if c.calls != policy.MaxAttempts || c.later != 0 {
		t.Errorf("%d calls and %d later, want %d and none", c.calls, c.later, policy.MaxAttempts)
	}
	if most := pipeline.Money(policy.TriesPerCell()) * price; c.worst != most || pipeline.Money(c.calls)*price > c.worst {
		t.Errorf("the worst case was told as %s, want %s", c.worst, most)
	}
	if c.row.Status != pipeline.TaskAbandoned || c.after.Generation != c.row.Generation || c.rings != 0 || c.left != 0 || c.others != 5 {
		t.Errorf("the row is %s, %d claims and %d after, %d rings, %d messages, %d other rows closed", c.row.Status, c.row.Generation, c.after.Generation, c.rings, c.left, c.others)
	}
	if len(c.records) != policy.MaxAttempts {
		t.Errorf("%d attempts have a record, want %d", len(c.records), policy.MaxAttempts)
	}
	for _, r := range c.records {
		if !strings.Contains(r.Failure.Cause, "ended_at is null") || r.Cost != price {
			t.Errorf("attempt %d says %q for %s", r.Attempt, r.Failure, r.Cost)
		}
	}
}
