package work

import (
	"context"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// ByModel is the handler of work tasks in a worker that knows several: each works for the jobs of the model, or of the
// definition's handler, whose name@version it stands under.
type ByModel map[string]pipeline.Handler

// Handle hands the attempt to the job's handler. A worker without it uses up no attempt: another one has it.
func (m ByModel) Handle(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
	wanted := a.Job().Model
	if handler := m[wanted]; handler != nil {
		return handler.Handle(ctx, a)
	}
	return ending(pipeline.Fail(pipeline.Rejected, "the job needs %s, and this worker has %s; start one that has it: %s", wanted, m.Names(), pipeline.WorkerFor(wanted)))
}

// Names are what the worker knows, for people.
func (m ByModel) Names() string {
	if len(m) == 0 {
		return "nothing"
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
