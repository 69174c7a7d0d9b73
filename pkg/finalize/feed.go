package finalize

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// feedPage is how many groups of the feed are read at once.
const feedPage = 100

// groupBytes bounds the findings of one group, so that it is an item whatever they say.
const groupBytes = pipeline.MaxItem / 4

// maxGroups is more groups than one emission has: the groups of a claim are numbered, and each number counts once.
const maxGroups = 100_000

// groupOf names a group of a task's stage: it is on the feed once.
type groupOf struct {
	task       pipeline.TaskID
	stage      int
	generation int64
}

// heard is what the feed said when it was read.
type heard struct {
	last   map[string]pipeline.Finding // of each finding
	groups map[groupOf]int             // that are on it, and how many findings each has
	late   []pipeline.FindingGroup     // not on the feed yet, and perhaps on their way
}

// readFeed is what the feed says. Groups of accepted bodies that are not on it may be on their way: a worker that lost
// its claim may still put one.
func (f *Finalizer) readFeed(ctx context.Context, job pipeline.Job, state State, left *stored, bodies stageBodies) (heard, error) {
	h := heard{last: map[string]pipeline.Finding{}, groups: map[groupOf]int{}}
	if err := f.hear(ctx, job.ID, h); err != nil {
		return heard{}, err
	}
	now := f.cfg.Clock.Now()
	for n, row := range state.Work {
		for _, body := range bodies[n] {
			if len(body.Findings) > 0 {
				h.expect(job.ID, groupOf{row.ID, body.Stage, body.Generation}, body.Findings, now)
			}
		}
	}
	if job.Epoch > 1 {
		h.supersede(ctx, job, state, left, now)
	}
	return h, nil
}

// expect adds a group to those that may be on their way, unless it is on the feed.
func (h *heard) expect(job pipeline.JobID, g groupOf, findings []pipeline.Finding, now pipeline.Instant) {
	if _, on := h.groups[g]; !on {
		h.late = append(h.late, pipeline.FindingGroup{Job: job, Task: g.task, Stage: g.stage, Generation: g.generation, Findings: findings, At: now})
	}
}

// supersede puts nothing in the place of what a redrive has made void and may still be on its way: the next group of each
// finalize of an epoch before, and stages that were accepted then and are done again. A finding of theirs that arrived
// after the end would stand on the feed, and nobody would take it back.
func (h *heard) supersede(ctx context.Context, job pipeline.Job, state State, left *stored, now pipeline.Instant) {
	nothing := []pipeline.Finding{}
	for epoch := int64(1); epoch < job.Epoch; epoch++ {
		row := state.Finalize[pipeline.FinalizeTask(epoch)]
		for generation := int64(1); generation <= row.Generation; generation++ {
			for round := range rounds {
				next := groupOf{row.ID, round*maxGroups + 1, generation}
				for h.groups[next] > 0 {
					next.stage++
				}
				h.expect(job.ID, next, nothing, now)
			}
		}
	}
	for _, row := range state.Work {
		items, _, _ := left.Items(ctx, job.ID, pipeline.TasksPrefix+string(row.ID)+pipeline.BodyInfix, "")
		for _, item := range items {
			body, err := pipeline.Decode[pipeline.StageBody](item.Body, item.Key)
			if err == nil && row.Body(body.Stage) != body.Generation && len(body.Findings) > 0 {
				h.expect(job.ID, groupOf{row.ID, body.Stage, body.Generation}, nothing, now)
			}
		}
	}
}

// catchUp puts what may be on its way, so that it changes nothing when it arrives: a group is on the feed once.
func (f *Finalizer) catchUp(ctx context.Context, h heard) error {
	for _, group := range h.late {
		if err := f.cfg.Store.PutFindings(ctx, group); err != nil {
			return fmt.Errorf("put the findings of %s on the feed: %w", group.Task, err)
		}
		for _, finding := range group.Findings {
			h.last[finding.ID] = finding
		}
	}
	return nil
}

func (f *Finalizer) hear(ctx context.Context, job pipeline.JobID, h heard) error {
	var after int64
	for {
		groups, err := f.cfg.Store.Findings(ctx, job, after, feedPage)
		if err != nil {
			return fmt.Errorf("read the feed: %w", err)
		}
		if len(groups) == 0 {
			return nil
		}
		for _, group := range groups {
			after = max(after, group.Seq)
			h.groups[groupOf{group.Task, group.Stage, group.Generation}] = len(group.Findings)
			for _, finding := range group.Findings {
				h.last[finding.ID] = finding
			}
		}
	}
}

// emit puts on the feed what a reader does not know yet: the findings that stay, as confirmed, and those that do not,
// as withdrawn. What the feed says already is not said again, so a repeat after a crash adds little or nothing.
//
// Who was frozen at one group, and has lost its claim since, puts no further one.
func (f *Finalizer) emit(ctx context.Context, a pipeline.Attempt, round int, job pipeline.Job, merged Merged, feed map[string]pipeline.Finding) error {
	claim, news := a.Claim(), newsOf(merged, feed)
	first := round*maxGroups + 1
	for part := first; len(news) > 0; part++ {
		if part > first {
			if err := a.Fence(ctx); err != nil {
				return err
			}
		}
		n := fitting(news)
		group := pipeline.FindingGroup{
			Job: job.ID, Task: claim.ID, Stage: part, Generation: claim.Generation,
			Findings: news[:n], At: f.cfg.Clock.Now(),
		}
		if err := f.cfg.Store.PutFindings(ctx, group); err != nil {
			return fmt.Errorf("put the confirmed findings on the feed: %w", err)
		}
		news = news[n:]
	}
	return nil
}

func newsOf(merged Merged, feed map[string]pipeline.Finding) []pipeline.Finding {
	stays := map[string]bool{}
	var news []pipeline.Finding
	for _, finding := range merged.Stay {
		stays[finding.ID] = true
		if known, ok := feed[finding.ID]; !ok || !reflect.DeepEqual(known, finding) {
			news = append(news, finding)
		}
	}
	var gone []pipeline.Finding
	for id, finding := range feed {
		if !stays[id] && finding.State != pipeline.Withdrawn {
			finding.State, finding.Why = pipeline.Withdrawn, merged.why(id)
			gone = append(gone, finding)
		}
	}
	slices.SortFunc(gone, func(a, b pipeline.Finding) int { return strings.Compare(a.ID, b.ID) })
	return append(news, gone...)
}

// fitting is how many of the findings fit into one group: at least one.
func fitting(findings []pipeline.Finding) int {
	size := 0
	for i, finding := range findings {
		size += len(pipeline.Encode(finding)) + 1
		if size > groupBytes && i > 0 {
			return i
		}
	}
	return len(findings)
}
