package dynamostore

import (
	"context"

	"holdfast/pkg/pipeline"
)

// Claim takes a pending row. The attempt is counted here, before the work.
func (s *Store) Claim(ctx context.Context, w pipeline.ClaimWrite) (pipeline.Task, error) {
	return s.swap(ctx, "claim", w.Ref,
		all(
			reads("status", pipeline.TaskPending),
			atMost("ready_at", w.Now),
			equals("generation", w.Seen),
			below("attempts", w.MaxAttempts),
			company(w.Alone),
		),
		set("status", string(pipeline.TaskClaimed)),
		set("claimed_by", w.Worker),
		set(ClaimKey, w.ClaimID),
		set("claimed_at", int64(w.Now)),
		set("expires_at", int64(w.Expires)),
		set(DueAtKey, int64(w.Due)),
		set("generation", w.Seen+1),
		add("attempts", 1),
		set("rings", int64(0)),
		set("answers", int64(0)),
	)
}

// company lets a worker that holds other claims take only rows that were not lost too often.
func company(alone bool) clause {
	if alone {
		return present(PartitionKey)
	}
	return below("losses", pipeline.AloneLosses)
}

// mine is the fence: it holds of the row only while the claim that the write is made under lasts.
func mine(f pipeline.Fence) clause {
	return all(
		equals("generation", f.Generation),
		reads(ClaimKey, f.ClaimID),
		reads("status", pipeline.TaskClaimed),
	)
}

// Renew keeps a claim. A late copy never shortens it.
func (s *Store) Renew(ctx context.Context, w pipeline.RenewWrite) (pipeline.Task, error) {
	return s.swap(ctx, "renew", w.Ref,
		all(
			mine(w.Fence),
			below("expires_at", w.Expires),
			atMost("allowed", w.Allowed),
			atLeast("max_tries", w.Allowed),
		),
		set("expires_at", int64(w.Expires)),
		set("stage", int64(w.Stage)),
		set("stage_at", int64(w.StageAt)),
		set("answers", int64(w.Answers)),
		set("allowed", int64(w.Allowed)),
	)
}

// Checkpoint accepts a stage, with this generation's body.
func (s *Store) Checkpoint(ctx context.Context, w pipeline.CheckpointWrite) (pipeline.Task, error) {
	return s.swap(ctx, "checkpoint", w.Ref,
		all(
			mine(w.Fence),
			equals("accepted", w.Stage-1),
			atMost("allowed", w.Allowed),
			atLeast("max_tries", w.Allowed),
		),
		set("accepted", int64(w.Stage)),
		set(bodyColumn(w.Stage), w.Generation),
		set("attempts", int64(1)),
		set("losses", int64(0)),
		set("allowed", int64(w.Allowed)),
	)
}

// End closes a claim as the verdict says.
func (s *Store) End(ctx context.Context, w pipeline.EndWrite) (pipeline.Task, error) {
	return s.swap(ctx, "end", w.Ref,
		all(
			mine(w.Fence),
			atLeast("allowed", w.Allowed),
		),
		append(become(w.Ref, w.Verdict),
			set("allowed", int64(w.Allowed)),
			set("ready_at", int64(w.ReadyAt)),
			set(DueAtKey, int64(w.DueAt)),
			set("ended_by", w.EndedBy),
			set("reason", reasonText(w.Reason)),
		)...,
	)
}

// become sets what a verdict is about: all of it, none added to.
func become(ref pipeline.Ref, v pipeline.Verdict) []change {
	return []change{
		set("status", string(v.Status)),
		set("attempts", int64(v.Attempts)),
		set("deferrals", int64(v.Deferrals)),
		set("losses", int64(v.Losses)),
		listing(ref, v.Status),
	}
}
