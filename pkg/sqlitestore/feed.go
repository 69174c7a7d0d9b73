package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"holdfast/pkg/pipeline"
)

// The number of a group is given in the transaction that stores it, under the one write lock: a reader never sees a
// number before a lower one.
const putFindings = `INSERT INTO findings (job, seq, task, stage, generation, body)
SELECT :job, COALESCE(MAX(seq), 0) + 1, :task, :stage, :generation, :body
FROM findings
WHERE job = :job
ON CONFLICT (job, task, stage, generation) DO NOTHING`

// PutFindings appends a group, once per task, stage and generation.
func (s *Store) PutFindings(ctx context.Context, g pipeline.FindingGroup) error {
	body := text(g)
	what := fmt.Sprintf("put findings of %s/%s stage %d", g.Job, g.Task, g.Stage)
	if err := weigh(body); err != nil {
		return named(what, err)
	}
	return named(what, s.write(ctx, func(tx *tx) error {
		_, err := tx.exec(putFindings, sql.Named("job", g.Job), sql.Named("task", g.Task), sql.Named("stage", g.Stage),
			sql.Named("generation", g.Generation), sql.Named("body", body))
		return err
	}))
}

// Findings is the groups after a cursor, oldest first, as many as fit in a page.
func (s *Store) Findings(ctx context.Context, job pipeline.JobID, after int64, limit int) (groups []pipeline.FindingGroup, err error) {
	if limit <= 0 {
		limit = -1 // SQLite's "no limit"
	}
	var size page
	err = s.query(ctx, func(row scanner) error {
		var seq int64
		var body string
		if err := row.Scan(&seq, &body); err != nil {
			return err
		}
		if !size.takes(len(body)) {
			return errEnough
		}
		g, err := pipeline.Decode[pipeline.FindingGroup]([]byte(body), "findings")
		g.Seq = seq
		groups = append(groups, g)
		return err
	}, `SELECT seq, body FROM findings
WHERE job = ?
	AND seq > ?
ORDER BY seq
LIMIT ?`, job, after, limit)
	return groups, named("findings of "+string(job), err)
}
