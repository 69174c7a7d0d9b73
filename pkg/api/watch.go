package api

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
)

// Times of a watch.
const (
	longestWatch = 20 * time.Second
	watchEvery   = time.Second
	watchMargin  = 4 * time.Second // of the request's time, for the answer
	groupsLimit  = 50
)

// watched is where a job stands, and what was found since a cursor.
type watched struct {
	Standing view.Standing           `json:"standing"`
	Findings []pipeline.FindingGroup `json:"findings"` // a group is provisional until the job has ended
	After    int64                   `json:"after"`    // the cursor of the next request
	Seen     string                  `json:"seen"`     // and what it has seen
	More     bool                    `json:"more"`     // the next request is answered at once
}

// watch answers GET /jobs/{job}/watch: at once if there is something after the cursor or the job is not as it was seen,
// else when that is so or the wait is over. Without a seen it does not wait.
func (r *request) watch() (any, error) {
	seconds, err := r.number("wait", 0, 0, int(longestWatch/time.Second))
	if err != nil {
		return nil, err
	}
	after, err := r.cursor()
	if err != nil {
		return nil, err
	}
	wait := time.Duration(seconds) * time.Second
	if deadline, has := r.ctx.Deadline(); has {
		wait = min(wait, pipeline.At(deadline).Sub(r.cfg.Clock.Now())-watchMargin)
	}
	seen := r.event.QueryStringParameters["seen"]
	for end := r.cfg.Clock.Mono() + wait; ; {
		job, err := r.job()
		if err != nil {
			return nil, err
		}
		groups, err := r.cfg.Backend.Store.Findings(r.ctx, job.ID, after, groupsLimit)
		if err != nil {
			return nil, err
		}
		news := len(groups) > 0 || seenOf(job) != seen
		if news || seen == "" || job.Status.Ended() || r.cfg.Clock.Mono()+watchEvery > end {
			return r.watched(job, groups, after)
		}
		if err := r.cfg.Clock.Sleep(r.ctx, watchEvery); err != nil {
			return nil, err
		}
	}
}

func (r *request) watched(job pipeline.Job, groups []pipeline.FindingGroup, after int64) (any, error) {
	standing, err := view.StandingOf(r.ctx, r.system, job)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		after = max(after, g.Seq)
	}
	return watched{standing, append([]pipeline.FindingGroup{}, groups...), after, seenOf(job), len(groups) == groupsLimit}, nil
}

func (r *request) cursor() (int64, error) {
	text, has := r.event.QueryStringParameters["after"]
	if !has {
		return 0, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 || after == math.MaxInt64 {
		return 0, bad("after is the cursor of the last answer: got %q", pipeline.Cut(text, 40))
	}
	return after, nil
}

// seenOf is what of a job a watcher wants to be told of when it changes.
func seenOf(job pipeline.Job) string { return fmt.Sprintf("%d-%s", job.Epoch, job.Status) }
