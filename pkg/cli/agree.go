package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"holdfast/pkg/pipeline"
)

// askAbove is from which worst case on a person at a terminal is asked before the job starts.
const askAbove = 100 * pipeline.Dollar

// manyCells is from how many cells on planning takes so long that a person is told what goes on.
const manyCells = 20_000

// errDeclined says that a person did not want to start the job.
var errDeclined = errors.New("not started")

// mustAsk says whether a person has to agree to the plan: its money is real, much, and somebody is there to be asked.
func mustAsk(p pipeline.Plan, yes, somebody bool) bool {
	return somebody && !yes && !p.Model.Free && p.Ceiling > askAbove
}

// agreed asks about a large plan. Only "yes" starts it.
func (r *run) agreed(in *os.File) error {
	if !mustAsk(r.plan, r.cmd.Yes, r.screen.width != nil && term.IsTerminal(int(in.Fd()))) {
		return nil
	}
	r.screen.say("This may cost up to %s. Type yes to start it:", r.plan.Ceiling)
	answer, err := readLine(r.a.drain, in)
	if err != nil {
		return errInterrupted
	}
	if !strings.EqualFold(answer, "yes") {
		return errDeclined
	}
	return nil
}

// readLine reads one line, or ends with the context: then the read goes on until the process ends.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	lines := make(chan string, 1)
	var group pipeline.Group
	group.Go(func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // without an end it is no yes
		lines <- strings.TrimSpace(line)
	})
	select {
	case line := <-lines:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// sayPlanning says what takes a while, of a large document.
func (r *run) sayPlanning() {
	m, err := pipeline.ReadManifest(r.a.drain, r.s.Backend.Store, r.job.ID)
	if err != nil {
		return // the plan will say it
	}
	if cells := len(m.Chunks) * m.Calls; cells > manyCells {
		r.screen.say("  pricing %s cells of %s and looking for stored replies; Ctrl-C stops it", pipeline.Count(cells), pipeline.CountOf(len(m.Chunks), "chunk", "chunks"))
	}
}
