package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// A day of media in virtual time.
const (
	hardTimeout = 10 * time.Minute
	scanEvery   = time.Minute
	slots       = 6
)

// day is what comes in: so many good files at every hour, four corrupt ones in the first, and one good file in the
// middle of the day that the disk fails to read once: the signal that somebody should see.
type day struct {
	hours, hourly int
	began         time.Time
	weather       weather

	mu      sync.Mutex
	files   map[string]*watched
	corrupt []string
	real    string
}

// watched is what the decoder, which is the witness, saw of a file.
type watched struct {
	arrived, done time.Time
	decodes       int
	held          time.Duration // of a slot
}

func newDay(hours, hourly int) *day {
	return &day{hours: hours, hourly: hourly, began: time.Now(), weather: weather{Seed: 4}, files: map[string]*watched{}}
}

// errDisk is the one real failure.
var errDisk = errors.New("read: input/output error on /mnt/media3")

// arrivals are the files of an hour.
func (d *day) arrivals(hour int) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if hour == 0 {
		for n := range 4 {
			names = append(names, fmt.Sprintf("corrupt-%d.media", n+1))
		}
		d.corrupt = names
	}
	for n := range d.hourly {
		names = append(names, fmt.Sprintf("h%02d-%03d.media", hour, n))
	}
	if hour == d.hours/2 {
		d.real = names[len(names)/2]
	}
	for _, name := range names {
		d.files[name] = &watched{arrived: time.Now()}
	}
	return names
}

// decode is the decoder: a good file takes 20 to 60 s, a corrupt one makes no progress.
func (d *day) decode(ctx context.Context, name string) error {
	d.mu.Lock()
	f, isReal := d.files[name], name == d.real
	f.decodes++
	first := f.decodes == 1
	d.mu.Unlock()
	begin := time.Now()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		f.held += time.Since(begin)
	}()
	takes := time.Duration((20 + 40*d.weather.draw("takes", name)) * float64(time.Second))
	if strings.HasPrefix(name, "corrupt") {
		takes = 1000 * time.Hour
	}
	if err := sleep(ctx, takes); err != nil {
		return err
	}
	if isReal && first {
		return errDisk
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f.done = time.Now()
	return nil
}

// daily is how the day went.
type daily struct {
	failures, ofCorrupt int // failed attempts, and those at corrupt files
	decodes             int // of corrupt files
	held                time.Duration
	good, goodDone      int
	wait, longest       time.Duration // from arrival to done, of good files
	reasons             int           // failed attempts with a reason kept
	disk                int           // of these, those that name the disk
	abandoned           int
	later               int // decodes of corrupt files in the second half of the day
	left                int // messages in the queues at the end
}

// read sums up what the decoder saw.
func (d *day) read(s *daily) {
	for name, f := range d.files {
		if strings.HasPrefix(name, "corrupt") {
			s.decodes += f.decodes
			s.held += f.held
			continue
		}
		s.good++
		if !f.done.IsZero() {
			s.goodDone++
			s.wait += f.done.Sub(f.arrived)
			s.longest = max(s.longest, f.done.Sub(f.arrived))
		}
	}
	s.wait /= time.Duration(max(1, s.goodDone))
}

// decodesOfCorrupt so far.
func (d *day) decodesOfCorrupt() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range d.corrupt {
		n += d.files[name].decodes
	}
	return n
}

// hoursOf brings the files of every hour, and says how many decodes of corrupt files the second half of the day had.
func (d *day) hoursOf(add func(hour int, names []string)) (later int) {
	half := 0
	for hour := range d.hours {
		if hour == d.hours/2 {
			half = d.decodesOfCorrupt()
		}
		add(hour, d.arrivals(hour))
		time.Sleep(time.Hour)
	}
	return d.decodesOfCorrupt() - half
}

func naiveDay(t *testing.T, d *day) (s daily) {
	ctx, stop := context.WithCancel(t.Context())
	m := newNaiveMedia(d.decode, hardTimeout, scanEvery)
	var group pipeline.Group
	group.Go(func() { m.run(ctx, slots) })
	s.later = d.hoursOf(func(_ int, names []string) { m.add(names...) })
	stop()
	group.Wait()
	_, failures := m.standing()
	for name, n := range failures {
		s.failures += n
		if strings.HasPrefix(name, "corrupt") {
			s.ofCorrupt += n
		}
	}
	d.read(&s)
	return s
}

// oursDay is the same day with the same slots; each hour's files are a job, whose task is the same decoder.
func oursDay(t *testing.T, d *day) (s daily) {
	const name = "decode@1"
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	policy := pipeline.DefaultPolicy()
	policy.StallTimeout, policy.AttemptTimeout = hardTimeout+time.Minute, hardTimeout+2*time.Minute
	e := newEngine(t, ctx, policy, nil)
	e.sweep = scanEvery
	task := func(ctx context.Context, item pipeline.WorkItem) (pipeline.Output, error) {
		return pipeline.Output{Free: true}, d.decode(ctx, item.Text)
	}
	w := e.start("worker", wiring.Config{Functions: map[string]pipeline.Function{name: task}, InFlight: slots, Claims: slots, Poll: 10 * time.Second})
	defer w.kill()
	definition := pipeline.LinesOf(name)
	definition.TryTimeout = hardTimeout
	var jobs []pipeline.JobID
	s.later = d.hoursOf(func(hour int, names []string) {
		job, _, err := e.desk.Submitter.Submit(ctx, submit.Submission{
			Name: fmt.Sprintf("files-%02d.txt", hour), Source: []byte(strings.Join(names, "\n") + "\n"), Definition: definition,
		})
		e.must(err)
		jobs = append(jobs, job.ID)
	})
	for _, id := range jobs {
		e.readJob(&s, e.ends(id))
	}
	s.left = e.depth()
	d.read(&s)
	return s
}

// readJob takes the attempts that failed from a job's result.
func (e *engine) readJob(s *daily, job pipeline.Job) {
	r := e.result(job)
	for _, end := range r.Tasks {
		if end.Status == pipeline.TaskAbandoned {
			s.abandoned++
		}
	}
	for _, a := range r.Attempts {
		if a.Outcome == pipeline.Succeeded {
			continue
		}
		s.failures++
		switch {
		case a.Failure.None() || a.Failure.Cause == "":
			e.Errorf("attempt %d of %s has no reason", a.Attempt, a.Task)
		case strings.Contains(a.Failure.Cause, errDisk.Error()):
			s.disk++
		case a.Failure.Kind == pipeline.TimedOut:
			s.ofCorrupt++
		}
		s.reasons++
	}
}
