package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// deployed lets the rows loop under a policy without a cap, then starts workers with the shipped one.
func deployed(t *testing.T, p *printer, good int, timeout time.Duration) {
	d := newDesk(t, looping)
	l := d.library(good)
	job := pipeline.JobID(strings.TrimSpace(d.does(0, append([]string{"submit", l.list, "--start"}, d.exec(timeout)...)...)))
	s := d.store()
	stop := d.worker()
	d.until(func() bool {
		if split, err := s.Backend.Store.Task(context.Background(), pipeline.Ref{Job: job, ID: pipeline.SplitTask}); err != nil || split.Status != pipeline.TaskDone {
			return false // there are no rows yet
		}
		loops := true
		for _, row := range d.fourRows(s, job, l) {
			loops = loops && row.Generation > 5 // the one that the drain stops is given back
		}
		return loops
	})
	stop()
	rows := d.fourRows(s, job, l)
	before := d.decodes()
	attempts := 0
	for _, row := range rows {
		attempts += row.Attempts
	}
	loopState := states(rows)
	_, err := s.Backend.Queues.Work.Send(context.Background(), messagesOf(rows)) // another service is still at it
	d.must(err)
	d.policy = d.write("policy.yaml", scaled)
	stop = d.worker()
	d.until(func() bool {
		row, err := s.Backend.Store.Job(context.Background(), job)
		d.must(err)
		return row.Status.Ended() && depth(t, s) == 0
	})
	stop()
	rows = d.fourRows(s, job, l)
	after, more := d.decodes(), 0
	for _, name := range l.corrupt {
		more += after[name] - before[name]
	}
	p.table(
		[]string{"the cap deployed on a queue that loops", "decodes of the four", "state of the four"},
		[]string{"workers with a cap of 9,999, stopped", number(attempts), loopState},
		[]string{"workers with the shipped cap, nothing else", number(more), states(rows)},
	)
	d.reasons(p, s, rows)
	ended, err := s.Backend.Store.Job(context.Background(), job)
	d.must(err)
	if ended.Status != pipeline.JobPartial || len(after) != good+4 {
		t.Errorf("the job is %s, %d files were decoded, want partial and all %d", ended.Status, len(after), good+4)
	}
	if states(rows) != "4 abandoned" || more > 0 || attempts < 20 {
		t.Errorf("the four: %s after %d attempts and %d decodes more, want 4 abandoned after at least 20 and none more", states(rows), attempts, more)
	}
}
