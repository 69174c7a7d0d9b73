package dynamostore

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"holdfast/pkg/pipeline"
)

// The columns of a task's row have the names of its JSON. Each stage's body has a column of its own, so that accepting
// a stage is one assignment whatever an older row has.
const (
	taskPrefix = "task#"
	bodyPrefix = "body_"
)

func taskKey(ref pipeline.Ref) item { return keyOf(jobPartition(ref.Job), taskPrefix+string(ref.ID)) }

func bodyColumn(stage int) string { return bodyPrefix + strconv.Itoa(stage) }

// shardOf is the row's partition of the due index.
func shardOf(ref pipeline.Ref) string { return strconv.Itoa(ref.DueShard()) }

func taskItem(t pipeline.Task) item {
	row := taskKey(t.Ref)
	for column, v := range map[string]any{
		"tenant": t.Tenant, "status": string(t.Status), "generation": t.Generation,
		"attempts": int64(t.Attempts), "deferrals": int64(t.Deferrals), "losses": int64(t.Losses),
		"stages": int64(t.Stages), "accepted": int64(t.Accepted),
		"claimed_by": t.ClaimedBy, ClaimKey: t.ClaimID, "claimed_at": int64(t.ClaimedAt), "expires_at": int64(t.ExpiresAt),
		"stage": int64(t.Stage), "stage_at": int64(t.StageAt), "answers": int64(t.Answers),
		"allowed": int64(t.Allowed), "max_tries": int64(t.MaxTries),
		"ready_at": int64(t.ReadyAt), DueAtKey: int64(t.DueAt), "ring": t.Ring, "rings": int64(t.Rings),
		"ended_by": t.EndedBy, "reason": reasonText(t.Reason), "buried": t.Buried, FormatKey: int64(pipeline.FormatVersion),
	} {
		row[column] = valueOf(v)
	}
	for n, generation := range t.Bodies {
		row[bodyColumn(n+1)] = valueOf(generation)
	}
	if t.Listed() {
		row[DueShardKey] = valueOf(shardOf(t.Ref))
	}
	return row
}

// taskOf reads a row whatever an older version or a person left in it: one bad row must not hide the others of its
// page.
func taskOf(row item) pipeline.Task {
	instant := func(column string) pipeline.Instant { return pipeline.Instant(numberIn(row, column)) }
	whole := func(column string) int { return int(numberIn(row, column)) }
	t := pipeline.Task{
		Ref: pipeline.Ref{
			Job: pipeline.JobID(strings.TrimPrefix(textIn(row, PartitionKey), "job#")),
			ID:  pipeline.TaskID(strings.TrimPrefix(textIn(row, SortKey), taskPrefix)),
		},
		Tenant: textIn(row, "tenant"), Status: pipeline.TaskStatus(textIn(row, "status")), Generation: numberIn(row, "generation"),
		Attempts: whole("attempts"), Deferrals: whole("deferrals"), Losses: whole("losses"),
		Stages: whole("stages"), Accepted: whole("accepted"),
		ClaimedBy: textIn(row, "claimed_by"), ClaimID: textIn(row, ClaimKey), ClaimedAt: instant("claimed_at"), ExpiresAt: instant("expires_at"),
		Stage: whole("stage"), StageAt: instant("stage_at"), Answers: whole("answers"),
		Allowed: whole("allowed"), MaxTries: whole("max_tries"),
		ReadyAt: instant("ready_at"), DueAt: instant(DueAtKey), Ring: numberIn(row, "ring"), Rings: whole("rings"),
		EndedBy: textIn(row, "ended_by"), Reason: reasonOf(textIn(row, "reason")), Buried: flagIn(row, "buried"),
	}
	t.Bodies = bodiesIn(row, t.Accepted)
	if isNewer(row) {
		t.Format = int(numberIn(row, FormatKey))
	}
	return t
}

// bodiesIn is the bodies of the accepted stages. Those of later stages are left over from before a redrive.
func bodiesIn(row item, accepted int) []int64 {
	var bodies []int64
	for column := range row {
		number, is := strings.CutPrefix(column, bodyPrefix)
		stage, err := strconv.Atoi(number)
		if !is || err != nil || stage < 1 || stage > accepted {
			continue
		}
		for len(bodies) < stage {
			bodies = append(bodies, 0)
		}
		bodies[stage-1] = numberIn(row, column)
	}
	return bodies
}

// reasonText is empty where there is no reason, so that a person sees at a glance which rows have one.
func reasonText(f pipeline.Failure) string {
	if f == (pipeline.Failure{}) {
		return ""
	}
	return string(pipeline.Encode(f))
}

// reasonOf says so where the reason cannot be read.
func reasonOf(stored string) pipeline.Failure {
	if stored == "" {
		return pipeline.Failure{}
	}
	var reason pipeline.Failure
	if err := json.Unmarshal([]byte(stored), &reason); err != nil {
		return pipeline.Fail(pipeline.Broken, "the stored reason cannot be read: %v: %s", err, pipeline.Cut(stored, 100))
	}
	return reason
}

// listing keeps the due index in step with the status that a write sets.
func listing(ref pipeline.Ref, status pipeline.TaskStatus) change {
	if (pipeline.Task{Status: status}).Listed() {
		return set(DueShardKey, shardOf(ref))
	}
	return remove(DueShardKey)
}

func taskFits(t pipeline.Task) error {
	return fits(fmt.Sprintf("task %s", t.Ref), len(pipeline.Encode(t)))
}
