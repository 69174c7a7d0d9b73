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
	groups map[groupOf]bool
	late   []pipeline.FindingGroup // of accepted bodies, and not on the feed yet
}

// readFeed is what the feed says. Groups of accepted bodies that are not on it may be on their way: a worker that lost
// its claim may still put one.
func (f *Finalizer) readFeed(ctx context.Context, job pipeline.JobID, state State, bodies stageBodies) (heard, error) {
	h := heard{last: map[string]pipeline.Finding{}, groups: map[groupOf]bool{}}
	if err := f.hear(ctx, job, h); err != nil {
		return heard{}, err
	}
	for n, row := range state.Work {
		for _, body := range bodies[n] {
			if len(body.Findings) > 0 && !h.groups[groupOf{row.ID, body.Stage, body.Generation}] {
				h.late = append(h.late, pipeline.FindingGroup{
					Job: job, Task: row.ID, Stage: body.Stage, Generation: body.Generation, Findings: body.Findings, At: f.cfg.Clock.Now(),
				})
			}
		}
	}
	return h, nil
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
			h.groups[groupOf{group.Task, group.Stage, group.Generation}] = true
			for _, finding := range group.Findings {
				h.last[finding.ID] = finding
			}
		}
	}
}

// emit puts on the feed what a reader does not know yet: the findings that stay, as confirmed, and those that do not,
// as withdrawn. What the feed says already is not said again, so a repeat after a crash adds little or nothing.
func (f *Finalizer) emit(ctx context.Context, claim pipeline.Claim, round int, job pipeline.Job, merged Merged, feed map[string]pipeline.Finding) error {
	news := newsOf(merged, feed)
	for part := round*maxGroups + 1; len(news) > 0; part++ {
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
