package dynamostore

import (
	"context"

	"holdfast/pkg/pipeline"
)

// Expire ends somebody else's claim that lapsed.
func (s *Store) Expire(ctx context.Context, w pipeline.ExpireWrite) (pipeline.Task, error) {
	return s.swap(ctx, "expire", w.Seen.Ref,
		all(
			reads("status", pipeline.TaskClaimed),
			equals("generation", w.Seen.Generation),
			equals("accepted", w.Seen.Accepted),
			lapsed(w),
		),
		append(become(w.Seen.Ref, w.Verdict),
			set("ready_at", int64(w.ReadyAt)),
			set(DueAtKey, int64(w.DueAt)),
			set("ended_by", pipeline.ExpiredBy),
			set("reason", reasonText(w.Reason)),
		)...,
	)
}

// lapsed says that the claim is over by more than clocks may differ, or its worker has exited.
func lapsed(w pipeline.ExpireWrite) clause {
	late := below("expires_at", w.Now.Add(-w.MaxSkew))
	if w.Exited == "" {
		return late
	}
	return either(
		late,
		reads("claimed_by", w.Exited),
	)
}

// seenSo is the reaper's condition: nobody has claimed or rung the row, or moved it on, since it was read.
func seenSo(seen pipeline.Task) clause {
	return all(
		reads("status", seen.Status),
		equals("generation", seen.Generation),
		equals("rings", seen.Rings),
		equals(DueAtKey, seen.DueAt),
	)
}

// Ring says that a message is about to be sent. The ring number never goes back.
func (s *Store) Ring(ctx context.Context, w pipeline.RingWrite) (pipeline.Task, error) {
	return s.swap(ctx, "ring", w.Seen.Ref,
		all(
			seenSo(w.Seen),
			reads("status", pipeline.TaskPending),
		),
		add("ring", 1),
		set("rings", int64(w.Count)),
		set(DueAtKey, int64(w.Due)),
	)
}

// Postpone moves due_at alone.
func (s *Store) Postpone(ctx context.Context, seen pipeline.Task, due pipeline.Instant) (pipeline.Task, error) {
	return s.swap(ctx, "postpone", seen.Ref,
		seenSo(seen),
		set(DueAtKey, int64(due)),
	)
}

// Unpark makes a parked row ready and due at once.
func (s *Store) Unpark(ctx context.Context, seen pipeline.Task, now pipeline.Instant) (pipeline.Task, error) {
	return s.swap(ctx, "unpark", seen.Ref,
		all(
			seenSo(seen),
			reads("status", pipeline.TaskParked),
		),
		set("status", string(pipeline.TaskPending)),
		set("ready_at", int64(now)),
		set(DueAtKey, int64(now)),
		set("rings", int64(0)),
	)
}

// Close ends a row that nobody holds.
func (s *Store) Close(ctx context.Context, w pipeline.CloseWrite) (pipeline.Task, error) {
	return s.swap(ctx, "close", w.Seen.Ref,
		all(
			seenSo(w.Seen),
			either(
				reads("status", pipeline.TaskPending),
				reads("status", pipeline.TaskParked),
			),
		),
		set("status", string(w.Status)),
		set("reason", reasonText(w.Reason)),
		set(DueAtKey, int64(w.Due)),
		listing(w.Seen.Ref, w.Status),
	)
}

// Buried takes an abandoned row out of the due index: its dead letter was sent.
func (s *Store) Buried(ctx context.Context, ref pipeline.Ref, generation int64) error {
	_, err := s.swap(ctx, "bury", ref,
		all(
			reads("status", pipeline.TaskAbandoned),
			equals("generation", generation),
		),
		set("buried", true),
		remove(DueShardKey),
	)
	return err
}
