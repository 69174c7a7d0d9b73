package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/work"
)

// firstly is where a screen writes to: it does something after the first line.
type firstly struct {
	bytes.Buffer
	once sync.Once
	do   func()
}

func (f *firstly) Write(line []byte) (int, error) {
	n, err := f.Buffer.Write(line)
	f.once.Do(f.do)
	return n, err
}

// A run whose work others do shows what they do.
func TestProgressOfARunWithoutWorkers(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	o := someRefused(d)
	d.does(exitCompleted, "redrive", string(o.Job)) // open again, its money spent, and nobody at work
	s := d.system()
	budget, err := s.Backend.Store.Budget(t.Context(), o.Job)
	d.must(err)
	if budget.Spent == 0 {
		t.Fatal("nothing was spent: there is nothing to show")
	}
	follows := func(drain context.Context, workers int, do func(), tried ...work.Event) (string, error) {
		a := &app{
			grammar: &grammar{Store: d.store, Tenant: defaultTenant, backendFlags: d.backend}, clock: pipeline.NewRealClock(),
			ctx: context.Background(), drain: drain, policy: s.Policy(),
		}
		out := &firstly{do: do}
		r := &run{cmd: &runCmd{Workers: workers}, a: a, s: s, job: d.job(s), looks: a.looks(), screen: &screen{out: out}}
		r.boss, r.tally.job = newSupervisor(a, s, nil, r.tally.add), r.job.ID
		for _, e := range tried {
			r.tally.add(e)
		}
		err := r.follow()
		first, _, _ := strings.Cut(out.String(), "\n")
		return first, err
	}
	looks := func(tried work.Event) string { // once, with workers of its own
		drain, stop := context.WithCancel(context.Background())
		defer stop()
		text, err := follows(drain, 1, stop, tried)
		if !errors.Is(err, errInterrupted) {
			t.Fatal(err)
		}
		return text
	}
	spent := "spend " + budget.Spent.String()
	t.Run("with workers its own tries are told, and the money of all", func(t *testing.T) {
		text := looks(work.Event{What: "try", Job: o.Job, Cost: 1})
		d.says(text, "1 try", "by stored replies", spent)
	})
	t.Run("and its own, where the store has not heard of it yet", func(t *testing.T) {
		text := looks(work.Event{What: "try", Job: o.Job, Cost: budget.Spent + pipeline.Dollar})
		d.says(text, "spend "+(budget.Spent+pipeline.Dollar).String())
	})
	t.Run("without any, what the store knows is told and nothing that nobody counted, until others ended it", func(t *testing.T) {
		text, err := follows(context.Background(), 0, func() { d.starts("worker", "--idle", "--ledger", d.ledger) })
		d.must(err)
		d.says(text, spent)
		if strings.Contains(text, "tries") || strings.Contains(text, "stored replies") {
			t.Errorf("got %q, want no counts of workers that it does not have", text)
		}
		if job := d.job(s); job.Status != pipeline.JobCompleted {
			t.Errorf("the job is %s, want it completed by the worker beside it", job.Status)
		}
	})
}
