package function

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// How long a protection lasts, when it is renewed, and how long a process must have been idle before it is given up:
// tasks come one after the other, and each would otherwise be two requests.
const (
	protectFor   = 10 * time.Minute
	protectAgain = 4 * time.Minute
	idleFor      = 20 * time.Second
)

// localTimeout is how long something on this machine may take to answer: ECS's agent, the process that is asked how it is.
const localTimeout = 5 * time.Second

// busy tells one listener whether the process works on anything.
type busy struct {
	mu   sync.Mutex
	is   bool
	tell func(bool)
}

func (b *busy) set(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.is = is
	if b.tell != nil {
		b.tell(is)
	}
}

func (b *busy) listen(tell func(bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell = tell
	tell(b.is)
}

// Protection keeps a task of ECS from being chosen by a scale-in or a deployment while it works. Without it nothing is
// lost either: the task would drain, and others would do again what was not saved.
type Protection struct {
	Agent string // ECS_AGENT_URI
	Clock pipeline.Clock
	Log   *slog.Logger
	Do    func(*http.Request) (*http.Response, error)

	mu      sync.Mutex
	wanted  bool
	changed chan struct{}
}

// NewProtection asks the agent at that address.
func NewProtection(agent string, clock pipeline.Clock, log *slog.Logger) *Protection {
	client := &http.Client{Timeout: localTimeout}
	return &Protection{Agent: strings.TrimSuffix(agent, "/"), Clock: clock, Log: log, Do: client.Do, changed: make(chan struct{}, 1)}
}

// wants says whether the process works on anything now.
func (p *Protection) wants(busy bool) {
	p.mu.Lock()
	p.wanted = busy
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *Protection) isWanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// keep protects while it is wanted, renews, and gives the protection up when the process has been idle for a while, or
// ends.
func (p *Protection) keep(ctx context.Context) {
	protected := false
	again := p.Clock.Mono() // when to ask for it the next time
	for {
		wanted := p.isWanted()
		wait := protectAgain
		switch now := p.Clock.Mono(); {
		case wanted && now >= again:
			again = now + idleFor // if the agent does not do it: soon again
			if p.set(ctx, true) {
				protected, again = true, now+protectAgain
			}
			wait = again - now
		case wanted:
			wait = again - now
		case protected:
			if !p.idle(ctx) && ctx.Err() == nil {
				continue // work came meanwhile, and it is protected still
			}
			protected, again = !p.set(context.WithoutCancel(ctx), false), p.Clock.Mono()
			if ctx.Err() != nil {
				return // what the agent did not give up expires
			}
			continue
		}
		if ctx.Err() != nil || p.sleep(ctx, wait, wanted) != nil {
			if protected {
				p.set(context.WithoutCancel(ctx), false)
			}
			return
		}
	}
}

// idle says that nothing came for idleFor.
func (p *Protection) idle(ctx context.Context) bool {
	wait, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	group.Go(func() {
		select {
		case <-p.changed:
			stop()
		case <-wait.Done():
		}
	})
	slept := p.Clock.Sleep(wait, idleFor) == nil
	stop()
	group.Wait()
	return slept && !p.isWanted()
}

// sleep waits, or until what is wanted is not what it was.
func (p *Protection) sleep(ctx context.Context, d time.Duration, wanted bool) error {
	wait, stop := context.WithCancel(ctx)
	defer stop()
	var group pipeline.Group
	group.Go(func() {
		for {
			select {
			case <-wait.Done():
				return
			case <-p.changed:
				if p.isWanted() != wanted {
					stop()
					return
				}
			}
		}
	})
	_ = p.Clock.Sleep(wait, d)
	stop()
	group.Wait()
	return ctx.Err()
}

// set asks the agent, and says whether it has done it.
func (p *Protection) set(ctx context.Context, on bool) bool {
	if err := p.ask(ctx, on); err != nil {
		p.Log.WarnContext(ctx, "scale-in protection was not changed; without it a scale-in drains this task", "protect", on, "error", err)
		return false
	}
	return true
}

func (p *Protection) ask(ctx context.Context, on bool) error {
	state := map[string]any{"ProtectionEnabled": on}
	if on {
		state["ExpiresInMinutes"] = int(protectFor / time.Minute)
	}
	body, err := json.Marshal(state)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, p.Agent+"/task-protection/v1/state", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return err
	}
	var answer struct {
		Error   *struct{ Code, Message string }  `json:"error"`
		Failure *struct{ Reason, Detail string } `json:"failure"`
	}
	decoded := json.Unmarshal(text, &answer)
	switch {
	case answer.Error != nil:
		return fmt.Errorf("%s: %s", answer.Error.Code, answer.Error.Message)
	case answer.Failure != nil:
		return fmt.Errorf("%s: %s", answer.Failure.Reason, answer.Failure.Detail)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the agent answers %s", response.Status)
	case decoded != nil:
		return errors.New("the agent's answer is no JSON")
	}
	return nil
}
