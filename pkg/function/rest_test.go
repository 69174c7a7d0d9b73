package function_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/pkg/config"
	"holdfast/pkg/function"
	"holdfast/pkg/pipeline"
)

// keeping is a model that keeps connections.
type keeping struct {
	*model
	closed atomic.Int64
}

func (k *keeping) Close() { k.closed.Add(1) }

// frozen is a clock of a machine that was frozen: the time of day has gone on, and what counts the seconds has not.
type frozen struct {
	pipeline.Clock
	by *time.Duration
}

func (f frozen) Now() pipeline.Instant { return f.Clock.Now().Add(*f.by) }

func TestConnectionsOfBeforeAFreezeAreNotTrusted(t *testing.T) {
	in(t, "an event after a long pause opens its own; one that comes soon uses those that are open", func(s *stack) {
		kept, stood := &keeping{model: s.model}, time.Duration(0)
		stores := 0
		back := *s.back
		back.CloseIdle = func() { stores++ }
		env := s.env(config.Work)
		p, err := function.New(env, function.Parts{Backend: &back, Model: kept, Clock: frozen{s.clock, &stood}, Log: function.Logger(&s.log, env)})
		s.must(err)
		asks := func(want int, when string) {
			s.Helper()
			_, err := s.invoke(config.Work, p.HandleQueue, events.SQSEvent{}, config.Timeout(config.Work, s.policy)+stood)
			s.must(err)
			if kept.closed.Load() != int64(want) || stores != want {
				s.Errorf("%s: those of the model were closed %d times and those of the backend %d times, want %d", when, kept.closed.Load(), stores, want)
			}
		}
		asks(0, "the first event")
		s.wait(20 * time.Second)
		asks(0, "one that comes soon")
		s.wait(20 * time.Second)
		asks(0, "another that comes soon after that")
		s.wait(time.Hour)
		asks(1, "after an hour")
		stood = time.Hour
		asks(2, "after an hour of which only the time of day tells")
		stood = 0
		asks(2, "after the time of day was set back")
	})
}
