package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

func TestAPersonIsAskedOnlyAboutMuchRealMoney(t *testing.T) {
	for _, c := range []struct {
		name                string
		ceiling             pipeline.Money
		free, yes, somebody bool
		want                bool
	}{
		{"much, real, at a terminal", 101 * pipeline.Dollar, false, false, true, true},
		{"not more than the amount", 100 * pipeline.Dollar, false, false, true, false},
		{"a model that costs nothing", 101 * pipeline.Dollar, true, false, true, false},
		{"who said yes before", 101 * pipeline.Dollar, false, true, true, false},
		{"a script", 101 * pipeline.Dollar, false, false, false, false},
	} {
		p := pipeline.Plan{Ceiling: c.ceiling, Worst: 2 * c.ceiling, Model: pipeline.ModelInfo{Free: c.free}}
		if got := mustAsk(p, c.yes, c.somebody); got != c.want {
			t.Errorf("%s: asked %v, want %v", c.name, got, c.want)
		}
	}
}

func TestReadLine(t *testing.T) {
	t.Run("a line is read, without its end", func(t *testing.T) {
		if line, err := readLine(t.Context(), strings.NewReader(" yes \nno\n")); line != "yes" || err != nil {
			t.Errorf("got %q, %v", line, err)
		}
	})
	t.Run("Ctrl-C ends the wait", func(t *testing.T) {
		in, out := io.Pipe()
		defer out.Close() // ends the read
		ctx, stop := context.WithCancelCause(t.Context())
		stop(pipeline.ErrDraining)
		if _, err := readLine(ctx, in); !errors.Is(err, pipeline.ErrDraining) {
			t.Errorf("got %v, want the cause", err)
		}
	})
}

func TestAPipelineThatAsksForMoreThanTheModelGivesIsRefused(t *testing.T) {
	d := newDesk(t, "")
	yaml, err := os.ReadFile("../pipelines/examples/support-tickets.yaml")
	d.must(err)
	long := d.doc("long.yaml", strings.Replace(string(yaml), "max_tokens: 200", "max_tokens: 9000", 1))
	for _, command := range []string{"run", "submit"} {
		d.says(d.does(exitUsage, command, d.doc("t.txt", "Ticket 1\nIt is broken.\n"), "--pipeline", long),
			"max_tokens is more than the 4,096 tokens that offline-rules-1", "sum-up (9,000)", "lower it there")
	}
	if exists(d.store) {
		t.Error("a store was made for a job that was refused")
	}
}
