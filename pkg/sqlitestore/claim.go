package sqlitestore

import (
	"context"
	"database/sql"

	"holdfast/pkg/pipeline"
)

const claim = `UPDATE tasks
SET status = 'claimed',
	claimed_by = :worker,
	claim_id = :claim_id,
	claimed_at = :now,
	expires_at = :expires,
	due_at = :due,
	generation = :seen + 1,
	attempts = COALESCE(attempts, 0) + 1,
	rings = 0,
	answers = 0
WHERE job = :job AND task = :task
	AND status = 'pending'
	AND COALESCE(ready_at, 0) <= :now
	AND COALESCE(generation, 0) = :seen
	AND COALESCE(attempts, 0) < :max_attempts
	AND (COALESCE(losses, 0) < :alone_losses OR :alone)`

// Claim counts the attempt, raises the generation and checks the cap in the one statement that takes the row.
func (s *Store) Claim(ctx context.Context, w pipeline.ClaimWrite) (pipeline.Task, error) {
	return s.change(ctx, "claim", w.Ref, claim,
		sql.Named("worker", w.Worker),
		sql.Named("claim_id", w.ClaimID),
		sql.Named("now", w.Now),
		sql.Named("expires", w.Expires),
		sql.Named("due", w.Due),
		sql.Named("seen", w.Seen),
		sql.Named("max_attempts", w.MaxAttempts),
		sql.Named("alone_losses", pipeline.AloneLosses),
		sql.Named("alone", w.Alone))
}

const renew = `UPDATE tasks
SET expires_at = :expires,
	stage = :stage,
	stage_at = :stage_at,
	answers = :answers,
	allowed = :allowed
WHERE job = :job AND task = :task
	AND status = 'claimed'
	AND generation = :generation
	AND claim_id = :claim_id
	AND COALESCE(expires_at, 0) < :expires
	AND COALESCE(allowed, 0) <= :allowed
	AND COALESCE(max_tries, 0) >= :allowed`

// Renew never shortens a claim, nor takes back or exceeds what was allowed.
func (s *Store) Renew(ctx context.Context, w pipeline.RenewWrite) (pipeline.Task, error) {
	return s.change(ctx, "renew", w.Ref, renew,
		sql.Named("generation", w.Generation),
		sql.Named("claim_id", w.ClaimID),
		sql.Named("expires", w.Expires),
		sql.Named("stage", w.Stage),
		sql.Named("stage_at", w.StageAt),
		sql.Named("answers", w.Answers),
		sql.Named("allowed", w.Allowed))
}

const checkpoint = `UPDATE tasks
SET accepted = :stage,
	bodies = json_insert(` + keptBodies + `, '$[#]', :generation),
	attempts = 1,
	losses = 0,
	allowed = :allowed
WHERE job = :job AND task = :task
	AND status = 'claimed'
	AND generation = :generation
	AND claim_id = :claim_id
	AND COALESCE(accepted, 0) = :stage - 1
	AND COALESCE(allowed, 0) <= :allowed
	AND COALESCE(max_tries, 0) >= :allowed`

// Checkpoint makes this generation's body of the stage the one that readers follow.
func (s *Store) Checkpoint(ctx context.Context, w pipeline.CheckpointWrite) (pipeline.Task, error) {
	return s.change(ctx, "checkpoint", w.Ref, checkpoint,
		sql.Named("generation", w.Generation),
		sql.Named("claim_id", w.ClaimID),
		sql.Named("stage", w.Stage),
		sql.Named("kept", places(w.Stage-1)),
		sql.Named("allowed", w.Allowed))
}

const end = `UPDATE tasks
SET status = :status,
	attempts = :attempts,
	deferrals = :deferrals,
	losses = :losses,
	allowed = :allowed,
	ready_at = :ready,
	due_at = :due,
	ended_by = :ended_by,
	reason = :reason
WHERE job = :job AND task = :task
	AND status = 'claimed'
	AND generation = :generation
	AND claim_id = :claim_id
	AND COALESCE(accepted, 0) = :accepted
	AND COALESCE(allowed, 0) >= :allowed`

// End sets what the verdict says and adds to nothing, so that it cannot count twice.
func (s *Store) End(ctx context.Context, w pipeline.EndWrite) (pipeline.Task, error) {
	return s.change(ctx, "end", w.Ref, end,
		sql.Named("generation", w.Generation),
		sql.Named("claim_id", w.ClaimID),
		sql.Named("accepted", w.Accepted),
		sql.Named("status", w.Status),
		sql.Named("attempts", w.Attempts),
		sql.Named("deferrals", w.Deferrals),
		sql.Named("losses", w.Losses),
		sql.Named("allowed", w.Allowed),
		sql.Named("ready", w.ReadyAt),
		sql.Named("due", w.DueAt),
		sql.Named("ended_by", w.EndedBy),
		sql.Named("reason", reasonText(w.Reason)))
}
