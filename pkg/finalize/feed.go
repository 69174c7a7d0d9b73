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

// readFeed is the last that the feed says of each finding.
func (f *Finalizer) readFeed(ctx context.Context, job pipeline.JobID) (map[string]pipeline.Finding, error) {
	last := map[string]pipeline.Finding{}
	var after int64
	for {
		groups, err := f.cfg.Store.Findings(ctx, job, after, feedPage)
		if err != nil {
			return nil, fmt.Errorf("read the feed: %w", err)
		}
		if len(groups) == 0 {
			return last, nil
		}
		for _, group := range groups {
			after = max(after, group.Seq)
			for _, finding := range group.Findings {
				last[finding.ID] = finding
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
