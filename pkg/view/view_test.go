package view_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parts answers every read of an item or a blob with what it is told.
type parts struct {
	pipeline.Store
	pipeline.Blobs
	body []byte
	err  error
}

func (p parts) Item(context.Context, pipeline.JobID, string) ([]byte, error) { return p.body, p.err }

func (p parts) Blob(context.Context, string) ([]byte, error) { return p.body, p.err }

func TestWhatAJobNeverHadIsLeftOutAndWhatCannotBeReadIsNot(t *testing.T) {
	clock := pipeline.NewRealClock()
	back := wiring.InMemory(pipeline.DefaultPolicy(), clock)
	ask := func(body string, err error) (model, origin error) {
		of := parts{back.Store, back.Blobs, []byte(body), err}
		seen := *back
		seen.Store, seen.Blobs = of, of
		s := wiring.New(&seen, wiring.Config{Policy: pipeline.DefaultPolicy(), Clock: clock})
		_, model = view.Model(t.Context(), s, "1")
		_, origin = view.Origin(t.Context(), s, pipeline.Job{})
		return model, origin
	}
	if model, origin := ask("", pipeline.ErrNotFound); model != nil || origin != nil {
		t.Errorf("got %v and %v for what is not there", model, origin)
	}
	if model, origin := ask("", pipeline.ErrBusy); !errors.Is(model, pipeline.ErrBusy) || !errors.Is(origin, pipeline.ErrBusy) {
		t.Errorf("got %v and %v from a busy store: a report would say less than is known", model, origin)
	}
	if model, origin := ask("{", nil); model == nil || origin == nil {
		t.Errorf("got %v and %v for what is no JSON", model, origin)
	}
}
