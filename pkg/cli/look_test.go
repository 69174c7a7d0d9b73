package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
)

// Case D-09: who looks at a job leaves a busy store to those who work.
func TestLooks(t *testing.T) {
	busy := fmt.Errorf("read: %w", pipeline.ErrBusy)
	a := &app{grammar: &grammar{backendFlags: backendFlags{Backend: awsBackend}}}
	t.Run("a busy store is looked at less and less often, and again as before once it has time", func(t *testing.T) {
		l := a.looks()
		var waits []time.Duration
		for _, err := range []error{nil, busy, busy, busy, busy, busy, nil} {
			if was, wrong := l.took(err, time.Second); wrong != nil || was != (err != nil) {
				t.Fatalf("got busy %v, error %v after %v", was, wrong, err)
			}
			waits = append(waits, l.wait)
		}
		if got, want := fmt.Sprint(waits), "[1s 2s 4s 8s 15s 15s 1s]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("what else is wrong ends it", func(t *testing.T) {
		if _, wrong := a.looks().took(pipeline.ErrNotFound, 0); !errors.Is(wrong, pipeline.ErrNotFound) {
			t.Errorf("got %v", wrong)
		}
	})
	t.Run("a store that is busy for ten minutes ends it, one that had time in between does not", func(t *testing.T) {
		l := a.looks()
		for now := time.Second; now < time.Hour; now += 9 * time.Minute {
			_, first := l.took(busy, now)
			_, second := l.took(busy, now+8*time.Minute)
			if _, third := l.took(nil, now+9*time.Minute); first != nil || second != nil || third != nil {
				t.Fatal(first, second, third)
			}
		}
		_, first := l.took(busy, 2*time.Hour)
		if _, second := l.took(busy, 2*time.Hour+lookPatience); first != nil || !errors.Is(second, pipeline.ErrBusy) || !strings.Contains(second.Error(), "10m0s") {
			t.Errorf("got %v, then %v; want the second to say that it was too long", first, second)
		}
	})
	t.Run("a folder is looked at five times a second", func(t *testing.T) {
		if l := (&app{grammar: &grammar{}}).looks(); l.wait != 200*time.Millisecond {
			t.Errorf("got %v", l.wait)
		}
	})
	t.Run("what was seen before says when", func(t *testing.T) {
		p := progress{Progress: view.Progress{Job: pipeline.Job{Status: pipeline.JobRunning}, Cells: 10}, AsOf: 1}
		if text := strings.Join(progressLines(p, pipeline.ModelInfo{}, 5001, time.Second, 77), "; "); !strings.Contains(text, "5 s old: the store is busy") {
			t.Errorf("got %q", text)
		}
	})
}
