package main

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

func init() { incidents["pipeline"] = pipelineIncident }

// shape is how large a job is.
type shape struct{ Chunks, Calls int }

func (s shape) cells() int { return s.Chunks * s.Calls }

// What both systems have of workers.
const (
	places  = 12               // worker processes, one chunk at a time each
	atOnce  = 11               // calls in flight about a chunk
	restart = 10 * time.Second // until a dead process has a successor
)

// pricedAs is the model at whose list price money is told.
const pricedAs = "claude-sonnet-5-5"

func listPrice() pipeline.Price {
	price, err := config.Price(pricedAs)
	if err != nil {
		panic(err) // the price list is part of the program
	}
	return price
}

// perCall is what an answer costs: about what a call of the shipped review needs.
func perCall() pipeline.Money { return listPrice().Of(2000, 300) }

// pipelineIncident is 3,248 calls about a contract.
func pipelineIncident(t *testing.T, p *printer, full bool) {
	s, jobs, hard, many := shape{28, 116}, 100, 20, 400
	if !full {
		s, jobs, hard, many = shape{28, 40}, 3, 4, 20
	}
	w := weather{Seed: 3300, Fail: 0.05, Hang: 0.00002, Takes: 4 * time.Second, Lives: 4 * time.Hour}
	p.say("THE 3,300-CALL PIPELINE: %d chunks x %d calls = %s calls a job, 5 %% of the tries fail, workers die.", s.Chunks, s.Calls, number(s.cells()))
	p.say("\nA worker process dies every 4 hours (deploys, memory, spot instances). The same %d jobs:", jobs)
	compare(t, p, s, w, jobs)
	p.say("Over %d jobs, one retry tier leaves %s of the reports without a chunk, and the redelivery bills %s answers again.", many,
		share(naiveSeason(t, s, w, many, false).Incomplete, many), number(naiveSeason(t, s, w, many, true).Bill.Repeats))
	w.Lives = 5 * time.Minute
	p.say("\nA worker process dies every 5 minutes, in %d of these jobs:", hard)
	compare(t, p, s, w, hard)
	p.notes(
		"One retry tier: a call is tried 4 times (at once, after 1, 2, 4 s); a message is deleted when it is received; the report is written when the queue is empty and nobody is busy.",
		"With redelivery: the message is deleted when its chunk is stored; it comes back after 5 min, 3 times at most. Nobody claims a chunk; a call waits 10 min for its answer.",
		fmt.Sprintf("Simulated in virtual time, all three on the same draw of failures, hangs (1 try in 50,000), latencies (2 to 6 s) and deaths (counted until the queues are empty); %d processes, %d calls at once each.", places, atOnce),
		fmt.Sprintf("Asked and billed is what the provider saw, no system's own books. An answer is %s: 2,000 tokens in, 300 out, at %s's list price.", perCall(), pricedAs),
		"Cut: nobody waited for the answer any more (the worker had died, or had given up waiting). It may have been billed; nobody can tell.",
	)
	realJob(t, p, full)
}

// compare runs the same jobs through three systems.
func compare(t *testing.T, p *printer, s shape, w weather, jobs int) {
	one, two, ours := naiveSeason(t, s, w, jobs, false), naiveSeason(t, s, w, jobs, true), oursSeason(t, s, w, jobs)
	row := func(what string, tell func(*season) string) []string {
		return []string{what, tell(one), tell(two), tell(ours)}
	}
	p.table(
		[]string{"", "one retry tier [1]", "+ redelivery, no claim [2]", "Holdfast"},
		row("jobs", func(s *season) string { return number(s.Jobs) }),
		row("worker processes that died meanwhile", func(s *season) string { return number(s.Deaths) }),
		row("reports with a chunk missing", func(s *season) string { return fmt.Sprintf("%d (%s)", s.Incomplete, share(s.Incomplete, s.Jobs)) }),
		row("chunks missing", func(s *season) string { return number(s.Chunks) }),
		row("attempts that failed, with the reason kept", func(s *season) string { return number(s.Reasons) }),
		row("answers needed", func(*season) string { return number(jobs * s.cells()) }),
		row("answers billed again", func(s *season) string {
			return fmt.Sprintf("%s (%s)", number(s.Bill.Repeats), dollars(pipeline.Money(s.Bill.Repeats)*perCall()))
		}),
		row("calls that were cut and asked again", func(s *season) string { return number(s.Bill.Cut) }),
		row("mean time of a job", func(s *season) string { return (s.Time / time.Duration(s.Jobs)).Round(time.Second).String() }),
	)
	lost, billed := one.Incomplete > 0 || jobs*s.cells() < 100_000 && w.Lives > time.Hour, two.Bill.Repeats > 0
	if !lost {
		t.Errorf("one retry tier lost nothing: the incident does not show")
	}
	if !billed && w.Lives < time.Hour {
		t.Errorf("redelivery without a claim billed nothing again: the incident does not show")
	}
	if ours.Incomplete > 0 || ours.Bill.Repeats > 0 || ours.Bill.Answers != jobs*s.cells() {
		t.Errorf("%d jobs of ours incomplete, %d answers billed again, %d answers for %d calls", ours.Incomplete, ours.Bill.Repeats, ours.Bill.Answers, jobs*s.cells())
	}
}

// season is many jobs in one weather.
type season struct {
	mu                                        sync.Mutex
	Jobs, Incomplete, Chunks, Deaths, Reasons int
	Time                                      time.Duration
	Bill                                      bill
}

// outcome is one job.
type outcome struct {
	missing, deaths, reasons int
	took                     time.Duration
	bill                     bill
}

func (sum *season) add(o outcome) {
	sum.mu.Lock()
	defer sum.mu.Unlock()
	sum.Jobs++
	sum.Chunks += o.missing
	sum.Deaths += o.deaths
	sum.Reasons += o.reasons
	sum.Time += o.took
	sum.Bill = sum.Bill.plus(o.bill)
	if o.missing > 0 {
		sum.Incomplete++
	}
}

// jobsOf runs so many jobs, each in a virtual time of its own, as many at once as there are processors.
func jobsOf(t *testing.T, jobs int, do func(t *testing.T, n int) outcome) *season {
	sum := &season{}
	t.Run("jobs", func(t *testing.T) {
		for n := range jobs {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { sum.add(do(t, n)) })
			})
		}
	})
	return sum
}

func naiveSeason(t *testing.T, s shape, w weather, jobs int, redelivers bool) *season {
	return jobsOf(t, jobs, func(t *testing.T, n int) outcome {
		job := newNaiveJob(s, newProvider(w), n, redelivers)
		return job.run(t.Context(), places)
	})
}

func oursSeason(t *testing.T, s shape, w weather, jobs int) *season {
	return jobsOf(t, jobs, func(t *testing.T, n int) outcome { return oursJob(t, s, newProvider(w), n, places) })
}
