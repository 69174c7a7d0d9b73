package function_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/config"
	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/sqsqueue"
	"holdfast/pkg/telemetry"
	"holdfast/pkg/telemetry/alarmtest"
)

// alarms are those of the deployment blue, as its template has them: a test of the stacks keeps the file true.
func (s *stack) alarms() map[string]alarmtest.Alarm {
	s.Helper()
	template, err := os.ReadFile("../../cdk/stacks/testdata/alarms.json")
	s.must(err)
	alarms, err := alarmtest.Read(template, "blue")
	s.must(err)
	return alarms
}

// watch measures the queues every minute as SQS does, until stop.
func (s *stack) watch() (seen *alarmtest.Seen, stop func()) {
	seen = &alarmtest.Seen{}
	ctx, cancel := context.WithCancel(s.ctx)
	var group pipeline.Group
	group.Go(func() {
		since := map[string]time.Time{} // since when a queue has not been empty
		for ; ctx.Err() == nil; _ = s.clock.Sleep(ctx, time.Minute) {
			for name, queue := range map[string]*memory.Queue{pipeline.ControlQueue: s.control, pipeline.WorkQueue: s.work} {
				s.measure(seen, name, queue, since)
			}
		}
	})
	return seen, func() { cancel(); group.Wait() }
}

func (s *stack) measure(seen *alarmtest.Seen, queue string, q *memory.Queue, since map[string]time.Time) {
	now := time.Now()
	live, dead := sqsqueue.Names("blue", queue)
	put := func(name, metric string, value float64) {
		seen.Put(alarmtest.Metric{Namespace: "AWS/SQS", Name: metric, Dimensions: "QueueName=" + name}, now, value)
	}
	visible, inFlight, err := q.Depth(s.ctx)
	letters, _, err2 := q.DeadLetters(s.ctx, "")
	if err != nil || err2 != nil {
		return // the test is over
	}
	if _, is := since[queue]; !is || visible+inFlight == 0 {
		since[queue] = now
	}
	put(live, "ApproximateNumberOfMessagesVisible", float64(visible))
	put(live, "ApproximateAgeOfOldestMessage", now.Sub(since[queue]).Seconds())
	if len(letters) > 0 { // of a queue in which nothing ever was SQS measures nothing
		put(dead, "ApproximateNumberOfMessagesVisible", float64(len(letters)))
	}
}

// rang is which alarms were raised between a time and now, once nobody measures any more.
func (s *stack) rang(seen *alarmtest.Seen, from time.Time) (rang []string) {
	s.Helper()
	s.must(seen.ReadLog(s.metrics.String()))
	for name, alarm := range s.alarms() {
		when, why, err := alarm.Rang(seen, from, time.Now())
		s.must(err)
		if !when.IsZero() {
			s.Log(why)
			rang = append(rang, name)
		}
	}
	slices.Sort(rang)
	return rang
}

// living is the metrics of the process of chunks: what it writes when it is dead is nowhere.
type living struct{ s *stack }

func (l living) Write(b []byte) (int, error) {
	if l.s.dead.Load() {
		return len(b), nil
	}
	return l.s.metrics.Write(b)
}

// kills lets chunks kill the process that works on them.
func (s *stack) kills(parts ...string) {
	s.model.react = func(_ int, r pipeline.Request) error {
		for _, part := range parts {
			if strings.Contains(r.Shared, "part "+part+".5") {
				s.dead.Store(true)
				return context.Canceled
			}
		}
		return nil
	}
}

// warmUp lets the reaper come until no window is from before the first time that it did.
func (s *stack) warmUp() time.Time {
	s.Helper()
	for range 6 {
		s.must(s.reap())
		s.wait(config.ReapEvery)
	}
	return time.Now()
}

func TestAlarms(t *testing.T) {
	in(t, "none is raised by a review that goes well", func(s *stack) {
		seen, stop := s.watch()
		from := s.warmUp()
		s.whole(s.runs(s.submit(6).ID, 4*time.Hour))
		stop()
		if rang := s.rang(seen, from); len(rang) > 0 {
			s.Errorf("got %v", rang)
		}
		if paid, _ := s.metric("PaidCalls"); paid != 6*6 {
			s.Errorf("got %d calls", paid)
		}
	}, func(s *stack) { s.model.takes = 30 * time.Second })
	in(t, "two tasks given up are letters, and not yet a reason to wake somebody", func(s *stack) {
		seen, stop := s.watch()
		from := s.warmUp()
		s.kills("2", "4")
		s.runs(s.submit(6).ID, 4*time.Hour)
		s.wait(2 * time.Minute)
		stop()
		if rang := s.rang(seen, from); !slices.Equal(rang, []string{"WorkDeadLetters"}) {
			s.Errorf("got %v, want that of the letters alone", rang)
		}
	})
	in(t, "three tasks given up within five minutes are", func(s *stack) {
		seen, stop := s.watch()
		from := s.warmUp()
		s.kills("2", "4", "6")
		s.runs(s.submit(6).ID, 4*time.Hour)
		s.wait(2 * time.Minute)
		stop()
		if rang := s.rang(seen, from); !slices.Equal(rang, []string{"Abandoned", "WorkDeadLetters"}) {
			s.Errorf("got %v, want both", rang)
		}
		for name, alarm := range s.alarms() { // and none of them for ever: nothing grows any more
			if rings, why, err := alarm.Rings(seen, time.Now().Add(20*time.Minute)); err != nil || rings != (name == "SilentReaper") {
				s.Errorf("twenty minutes later, in which nothing happens: %v (%s), %v", rings, why, err)
			}
		}
	})
	in(t, "calls that are paid and finish nothing", func(s *stack) {
		seen, stop := s.watch()
		from := s.warmUp()
		s.model.react = func(int, pipeline.Request) error { return refuse(pipeline.Ambiguous) }
		s.runs(s.submit(2).ID, 20*time.Hour)
		stop()
		if rang := s.rang(seen, from); !slices.Contains(rang, "Waste") {
			s.Errorf("got %v, want that of waste", rang)
		}
	}, func(s *stack) { s.model.takes = 90 * time.Second })
	in(t, "a queue that nobody reads: its oldest message, then rows that nobody claims, as long as it lasts", func(s *stack) {
		seen, stop := s.watch()
		from := s.warmUp()
		s.submit(2)
		s.process(config.Control)
		for begin := time.Now(); time.Since(begin) < 8*time.Hour; s.wait(config.ReapEvery) {
			s.feed(config.Control, s.control)
			s.must(s.reap())
		}
		stop()
		if rang := s.rang(seen, from); !slices.Equal(rang, []string{"Unclaimable", "WorkWaits"}) {
			s.Errorf("got %v, want both", rang)
		}
		unclaimable := s.alarms()["Unclaimable"]
		first, _, err := unclaimable.Rang(seen, from, time.Now())
		s.must(err)
		for at := first; at.Before(time.Now()); at = at.Add(time.Minute) {
			if rings, why, err := unclaimable.Rings(seen, at); err != nil || !rings {
				s.Fatalf("%s, %v: want it raised all the time", why, err)
			}
		}
	})
	in(t, "a reaper that is silent for five minutes", func(s *stack) {
		seen, stop := s.watch()
		from := s.warmUp()
		stop()
		if rang := s.rang(seen, from); len(rang) > 0 {
			s.Errorf("got %v while it comes", rang)
		}
		seen, stop = s.watch()
		s.wait(6 * time.Minute)
		stop()
		if rang := s.rang(seen, from); !slices.Equal(rang, []string{"SilentReaper"}) {
			s.Errorf("got %v, want that of the reaper", rang)
		}
	})
}

// Every metric that is ours and that an alarm reads is one that a process writes, and each of them has its alarm.
func TestAlarmsReadWhatIsWritten(t *testing.T) {
	in(t, "all metrics", func(s *stack) {
		s.kills("1")
		s.runs(s.submit(2).ID, 4*time.Hour)
		s.submit(1)
		for begin := time.Now(); time.Since(begin) < 8*time.Hour; s.wait(config.ReapEvery) { // nobody reads any queue
			s.must(s.reap())
		}
		var seen alarmtest.Seen
		s.must(seen.ReadLog(s.metrics.String()))
		written := map[alarmtest.Metric]bool{}
		for _, m := range seen.Names() {
			written[m] = true
		}
		read := map[alarmtest.Metric]bool{}
		for name, alarm := range s.alarms() {
			for _, m := range alarm.Metrics() {
				if m.Namespace != telemetry.Namespace {
					continue
				}
				read[m] = true
				if !written[m] {
					s.Errorf("%s reads %+v, and nobody writes it; written are %v", name, m, seen.Names())
				}
			}
		}
		for m := range written {
			if !read[m] {
				s.Errorf("no alarm reads %+v", m)
			}
		}
		if len(written) != len(telemetry.Metrics()) {
			s.Errorf("got %v, want all of %v", seen.Names(), telemetry.Metrics())
		}
	})
}

func TestWhatIsKilledHasToldWhatItPaid(t *testing.T) {
	in(t, "in the middle of its event", func(s *stack) {
		s.model.react = func(n int, _ pipeline.Request) error {
			if n == 25 {
				s.dead.Store(true)
				return context.Canceled
			}
			return nil
		}
		s.submit(1)
		s.feed(config.Control, s.control)
		s.feed(config.Work, s.work)
		if paid, _ := s.metric("PaidCalls"); paid < 15 || paid > 24 {
			s.Errorf("got %d paid calls in the metrics, want those of the last ten seconds to be missing at most", paid)
		}
	}, oneAtATime, func(s *stack) { s.model.takes = time.Second })
}
