package function_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/config"
	"holdfast/pkg/function"
	"holdfast/pkg/pipeline"
)

// agent is what stands at ECS_AGENT_URI: it keeps what it was asked for, or refuses.
type agent struct {
	s       *stack
	refuses bool

	mu    sync.Mutex
	asked []string // "on 10" or "off", each with its second
	at    []time.Duration
}

func (a *agent) do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Result(), nil
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPut || r.URL.Path != "/api/task-protection/v1/state" {
		a.s.Errorf("got %s %s (%v)", r.Method, r.URL.Path, err)
	}
	var state struct {
		ProtectionEnabled bool
		ExpiresInMinutes  int
	}
	if err := json.Unmarshal(body, &state); err != nil {
		a.s.Error(err)
	}
	if a.refuses {
		_, _ = io.WriteString(w, `{"failure": {"Arn": "task", "Reason": "DEPLOYMENT_BLOCKED", "Detail": "not now"}}`)
		return
	}
	what := "off"
	if state.ProtectionEnabled {
		what = "on"
		if state.ExpiresInMinutes != 10 {
			a.s.Errorf("got %d minutes", state.ExpiresInMinutes)
		}
	}
	a.asked, a.at = append(a.asked, what), append(a.at, a.s.clock.Mono())
	_, _ = io.WriteString(w, `{"protection": {"ProtectionEnabled": true, "TaskArn": "task"}}`)
}

func (a *agent) said() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

func (a *agent) times() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.at)
}

// poller starts the polling process; stop asks it to end and returns how long it took.
func (s *stack) poller(a *agent, pairs ...string) (p *function.Process, stop func() time.Duration) {
	s.Helper()
	p = s.process(config.Workd, pairs...)
	var protection *function.Protection
	if a != nil {
		protection = function.NewProtection("http://agent/api", s.clock, p.Log)
		protection.Do = a.do
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(protection)
	}()
	return p, func() time.Duration {
		began := s.clock.Mono()
		p.Terminate(0)
		<-done
		return s.clock.Mono() - began
	}
}

func TestWorkd(t *testing.T) {
	in(t, "a whole job by the polling process only: it splits, works, reaps and finalizes", func(s *stack) {
		job := s.submit(8)
		_, stop := s.poller(nil)
		s.whole(s.ends(job.ID, time.Hour))
		s.wait(10 * time.Second)
		stop()
		if n, _ := s.metric("CellsFinished"); n != 48 {
			s.Errorf("got %d finished cells in the metrics, want 48", n)
		}
		if n, _ := s.metric("Sweeps"); n == 0 {
			s.Error("it did not sweep")
		}
		if bytes := len(s.log.String()) + len(s.metrics.String()); bytes > 200*48 {
			s.Errorf("got %d bytes of log for 48 calls", bytes)
		}
	})
	in(t, "beside the functions", func(s *stack) {
		job := s.submit(20)
		_, stop := s.poller(nil)
		s.whole(s.runs(job.ID, time.Hour))
		stop()
		if s.model.count() != 120 {
			s.Errorf("got %d calls, want each of 120 once", s.model.count())
		}
	})
	in(t, "it protects its task while it works, once, renews that, and gives it up when it is idle", func(s *stack) {
		a := &agent{s: s}
		_, stop := s.poller(a, config.ClaimsVar, "1")
		s.wait(time.Minute)
		if asked := a.said(); len(asked) != 0 {
			s.Errorf("got %v from an idle process", asked)
		}
		job := s.submit(10) // two minutes each, one after the other
		s.whole(s.ends(job.ID, 3*time.Hour))
		if asked := a.said(); len(asked) < 4 || len(asked) > 7 || slices.Contains(asked, "off") {
			s.Errorf("got %v in twenty minutes of work, want it protected, and that renewed every four", asked)
		}
		for i, at := range a.times() {
			if i == 0 {
				continue
			}
			if gap := at - a.times()[i-1]; gap >= 10*time.Minute {
				s.Errorf("it was renewed after %v, when it had expired", gap)
			}
		}
		s.wait(time.Minute)
		if asked := a.said(); asked[len(asked)-1] != "off" || slices.Index(asked, "off") != len(asked)-1 {
			s.Errorf("got %v, want it given up once", asked)
		}
		n := len(a.said())
		stop()
		if len(a.said()) != n {
			s.Error("an idle process asked when it ended")
		}
	}, func(s *stack) { s.model.takes, s.inFlight = 40*time.Second, "2" })
	in(t, "asked to end in the middle: it ends within its stop time, gives its protection up, and nothing is lost", func(s *stack) {
		a := &agent{s: s}
		job := s.submit(3)
		_, stop := s.poller(a)
		s.wait(10 * time.Second)
		if asked := a.said(); len(asked) == 0 {
			s.Fatal("it is not protected")
		}
		// Terminate drops at once; the drain alone is what SIGTERM begins.
		if took := stop(); took > time.Second {
			s.Errorf("it took %v", took)
		}
		if asked := a.said(); asked[len(asked)-1] != "off" {
			s.Errorf("got %v, want the protection given up", asked)
		}
		rows, err := pipeline.AllTasks(s.ctx, s.back.Store, job.ID)
		s.must(err)
		for _, row := range rows {
			if row.Status == pipeline.TaskClaimed || row.Attempts > 1 {
				s.Errorf("%s is %s with %d attempts, want it released", row.ID, row.Status, row.Attempts)
			}
		}
	}, func(s *stack) { s.model.takes = 90 * time.Second })
	in(t, "a drain lets calls in flight finish, but not longer than the stop time", func(s *stack) {
		s.submit(3)
		p := s.process(config.Workd, config.StopTimeVar, "60s")
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Run(nil)
		}()
		s.wait(10 * time.Second)
		began := s.clock.Mono()
		go p.Terminate(time.Hour) // whoever drops is not what ends it
		<-done
		if took := s.clock.Mono() - began; took < 35*time.Second || took > 60*time.Second {
			s.Errorf("it took %v to end, want the grace of 40 s and a little", took)
		}
		p.Terminate(0)
		if s.model.aborted == 0 {
			s.Error("no call was dropped")
		}
	}, func(s *stack) { s.model.takes = 99 * time.Second })
	in(t, "an agent that refuses is told in the log, and the work goes on", func(s *stack) {
		job := s.submit(2)
		_, stop := s.poller(&agent{s: s, refuses: true})
		s.whole(s.ends(job.ID, time.Hour))
		stop()
		if !strings.Contains(s.log.String(), "DEPLOYMENT_BLOCKED: not now") {
			s.Errorf("got the log %s", s.log.String())
		}
	}, func(s *stack) { s.model.takes = time.Second })
	in(t, "an agent that does not give the protection up keeps nobody from ending", func(s *stack) {
		a := &agent{s: s}
		job := s.submit(1)
		_, stop := s.poller(a)
		s.whole(s.ends(job.ID, time.Hour))
		a.mu.Lock()
		a.refuses = true
		a.mu.Unlock()
		s.wait(time.Minute)
		stop()
		if a.said()[0] != "on" {
			s.Errorf("got %v", a.said())
		}
	})
	in(t, "it is well while it sweeps, sick when it is silent, and no health check ends one that drains", func(s *stack) {
		p, stop := s.poller(nil)
		health := func() int {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			return w.Code
		}
		s.wait(time.Hour)
		if got := health(); got != http.StatusOK {
			s.Errorf("got %d after an hour, want it to be well", got)
		}
		stop()
		s.wait(time.Hour)
		if got := health(); got != http.StatusOK {
			s.Errorf("got %d while it drains", got)
		}
		idle, err := function.New(s.env(config.Workd), function.Parts{Backend: s.back, Model: s.model, Clock: s.clock, Log: p.Log})
		s.must(err)
		p = idle
		if health() != http.StatusOK {
			s.Error("sick at its beginning")
		}
		s.wait(10 * time.Minute)
		if health() != http.StatusServiceUnavailable {
			s.Error("well after ten minutes of silence")
		}
	})
}
