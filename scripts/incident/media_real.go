package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// scaled is the shipped policy with its times made short; the cap of 3 is the shipped one.
const scaled = `attempt_backoff: 50ms
try_backoff: 50ms
retry_wait: 1s
call_timeout: 3s
limiter_ahead: 2s
stall_timeout: 10s
attempt_timeout: 15s
ring_delay: 5s
`

// looping is a cap so high that it is none.
const looping = scaled + "max_attempts: 9999\nmax_receives: 10000\n"

// library is a folder of files, and the list of them.
type library struct {
	list    string
	good    []string
	corrupt []string
}

// library writes so many good files and four corrupt ones among them.
func (d *desk) library(good int) (l library) {
	d.Helper()
	var all []string
	for n := range good {
		l.good = append(l.good, d.write(fmt.Sprintf("good-%03d.media", n), string(media(3+n%5))))
	}
	all = append(all, l.good...)
	for n := range 4 {
		path := d.write(fmt.Sprintf("corrupt-%d.media", n+1), string(corrupt(6)))
		l.corrupt = append(l.corrupt, path)
		all = slices.Insert(all, (n*2+1)*good/8, path)
	}
	l.list = d.write("files.txt", strings.Join(all, "\n")+"\n")
	return l
}

// mediaForReal runs the decoder as a command: the naive system until it has shown that it does not stop, then ours.
func mediaForReal(t *testing.T, p *printer, full bool) {
	good, timeout, messages := 200, time.Second, 2000
	if !full {
		good, timeout, messages = 16, 600*time.Millisecond, 400
	}
	timeout = patient(t, timeout)
	p.say("For real: %d good files and 4 corrupt ones, the decoder a command, killed with SIGKILL after %v [3].", good, timeout)
	rounds := 6
	naive := naiveForReal(t, good, timeout, rounds)
	t.Run("ours", func(t *testing.T) { waysIn(t, p, good, timeout, messages, naive) })
	t.Run("the cap deployed", func(t *testing.T) { deployed(t, p, good, timeout) })
	p.notesFrom(3, fmt.Sprintf("Scaled: hard timeout 10 min to %v, wait after an attempt 30 s to 50 ms, time of an attempt 5 min to 15 s, second ring 1 min to 5 s, naive reaper 1 min to %v. The cap of 3 is the shipped one.", timeout, timeout/10),
		"Second rings that met a row somebody held: they come back once, and are deleted.")
}

// patient is the timeout, or more on a machine where the decoder is slow to start: no good file may meet it.
func patient(t *testing.T, timeout time.Duration) time.Duration {
	d := newDesk(t, scaled)
	file := d.write("measured.media", string(media(8)))
	for range 3 {
		begin := time.Now()
		d.must(runDecoder(t.Context(), d.self, file))
		timeout = max(timeout, 8*time.Since(begin).Round(100*time.Millisecond))
	}
	return min(timeout, 8*time.Second) // the scaled policy has no room for more
}

// naiveForReal lets the naive system loop until each of the four was killed so often.
func naiveForReal(t *testing.T, good int, timeout time.Duration, rounds int) (failures int) {
	var done int
	t.Run("naive", func(t *testing.T) {
		d := newDesk(t, scaled)
		l := d.library(good)
		ctx, stop := context.WithCancel(t.Context())
		var m *naiveMedia
		var mu sync.Mutex
		kills := map[string]int{}
		m = newNaiveMedia(func(ctx context.Context, name string) error {
			err := runDecoder(ctx, d.self, name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				kills[name]++
			}
			enough := true
			for _, name := range l.corrupt {
				enough = enough && kills[name] >= rounds
			}
			if enough {
				stop()
			}
			return err
		}, timeout, timeout/10)
		m.add(append(slices.Clone(l.corrupt), l.good...)...)
		m.run(ctx, 4)
		done, _ = m.standing()
		for _, name := range l.corrupt {
			failures += kills[name]
		}
		if done > good || failures < 4*rounds {
			t.Errorf("the naive system: %d files done of which %d are good, %d kills of the four", done, good, failures)
		}
	})
	return failures
}

// runDecoder is the naive system's child process: SIGKILL at the hard timeout.
func runDecoder(ctx context.Context, self, name string) error {
	cmd := exec.CommandContext(ctx, self, "decode", name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Run()
}

// waysIn runs the files to the end of the job, then sends the four in by every way there is.
func waysIn(t *testing.T, p *printer, good int, timeout time.Duration, messages, naive int) {
	d := newDesk(t, scaled)
	l := d.library(good)
	r := d.runs(l.list, timeout)
	s := d.store()
	rows := d.fourRows(s, r.Job, l)
	first := d.decodes()
	begun := 0
	for _, name := range l.corrupt {
		begun += first[name]
	}
	table := [][]string{
		{"way in", "decodes of the four", "state of the four", "in the queues"},
		{"naive, until it was stopped for this table", number(naive) + ", no end", "4 going round", "-"},
		{"the list, once", number(begun), states(rows), number(depth(t, s)) + " [4]"},
	}
	before := total(first)
	step := func(what string, do func(), want int) {
		do()
		if depth(t, s) > 0 {
			d.meets(s)
		}
		after := d.decodes()
		rows = d.fourRows(s, r.Job, l)
		left := depth(t, s)
		table = append(table, []string{what, number(total(after) - before), states(rows), number(left)})
		if n := total(after) - before; n > want || left > 0 {
			t.Errorf("%s: %d decodes, want at most %d; %d messages left", what, n, want, left)
		}
		before = total(after)
	}
	step("the reaper, three sweeps", func() {
		for range 3 {
			d.does(0, "reap")
		}
	}, 0)
	step("the same list submitted again", func() { d.runs(l.list, timeout) }, 0)
	step(fmt.Sprintf("%s messages from another service", number(messages)), func() { d.floods(s, rows, messages) }, 0)
	step("a late duplicate of the first message", func() {
		var late []pipeline.Task
		for _, row := range rows {
			row.Generation, row.Ring = 0, 0
			late = append(late, row)
		}
		d.floods(s, late, len(late))
	}, 0)
	step("redrive: a person gives attempts back", func() {
		d.does(0, "redrive", string(r.Job))
		d.runs(l.list, timeout)
	}, 12)
	p.table(table...)
	d.reasons(p, s, rows)
	for _, row := range rows {
		if row.Generation != 7 || row.Status != pipeline.TaskAbandoned { // three attempts, the redrive, three attempts
			t.Errorf("%s is %s at generation %d, want abandoned at 7", row.ID, row.Status, row.Generation)
		}
	}
	if begun > 12 || r.Counts.Answered != good || r.Status != pipeline.JobPartial {
		t.Errorf("the job is %s with %d of %d good files, %d decodes of the four", r.Status, r.Counts.Answered, good, begun)
	}
}

// fourRows are the corrupt files' rows.
func (d *desk) fourRows(s *wiring.System, job pipeline.JobID, l library) (rows []pipeline.Task) {
	d.Helper()
	body, err := os.ReadFile(l.list)
	d.must(err)
	n := 0
	for line := range strings.Lines(string(body)) {
		if slices.Contains(l.corrupt, strings.TrimSpace(line)) {
			row, err := s.Backend.Store.Task(context.Background(), pipeline.Ref{Job: job, ID: pipeline.WorkTask(n)})
			d.must(err)
			rows = append(rows, row)
		}
		n++
	}
	return rows
}

// states is how many rows stand how.
func states(rows []pipeline.Task) string {
	count := map[pipeline.TaskStatus]int{}
	for _, row := range rows {
		count[row.Status]++
	}
	var all []string
	for _, status := range []pipeline.TaskStatus{pipeline.TaskPending, pipeline.TaskClaimed, pipeline.TaskDone, pipeline.TaskAbandoned} {
		if count[status] > 0 {
			all = append(all, fmt.Sprintf("%d %s", count[status], status))
		}
	}
	return strings.Join(all, ", ")
}

// floods sends so many messages about the rows straight into the queue, and lets a worker meet them all.
func (d *desk) floods(s *wiring.System, rows []pipeline.Task, n int) {
	d.Helper()
	for sent := 0; sent < n; sent += len(rows) {
		_, err := s.Backend.Queues.Work.Send(context.Background(), messagesOf(rows))
		d.must(err)
	}
	d.meets(s)
}

func messagesOf(rows []pipeline.Task) (all []pipeline.Message) {
	for _, row := range rows {
		all = append(all, row.Message())
	}
	return all
}

// meets lets a worker meet all messages that there are.
func (d *desk) meets(s *wiring.System) {
	d.Helper()
	stop := d.worker()
	d.until(func() bool { return depth(d.T, s) == 0 })
	stop()
}

// reasons prints what is kept of the first of the four.
func (d *desk) reasons(p *printer, s *wiring.System, rows []pipeline.Task) {
	d.Helper()
	p.say("  Why, of the first of the four:")
	for _, row := range rows {
		history, err := pipeline.ReadHistory(context.Background(), s.Backend.Store, row.Ref)
		d.must(err)
		records := row.Counting(history.Records)
		for _, r := range records {
			if row.ID == rows[0].ID {
				p.say("    attempt %d, generation %d: %s", r.Attempt, r.Generation, r.Failure)
			}
			if r.Failure.None() {
				d.Errorf("%s: attempt %d has no reason", row.ID, r.Attempt)
			}
		}
		if want := int(row.Generation); len(records) < want-1 || row.Reason.None() { // a redrive is a generation and no attempt
			d.Errorf("%s: %d records of %d generations, reason %q", row.ID, len(records), want, row.Reason)
		}
	}
	p.say("")
}
