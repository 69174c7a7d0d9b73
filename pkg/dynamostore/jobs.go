package dynamostore

import (
	"context"
	"fmt"
	"math"

	"holdfast/pkg/pipeline"
)

// openShard is the partition of the due index with the jobs that have not ended.
const openShard = "open"

func jobKey(id pipeline.JobID) item { return keyOf(jobPartition(id), "job") }

// jobItem is the job's row: in the due index while it is open, and after its end until what it left has an end.
func (s *Store) jobItem(job pipeline.Job) item {
	row := jobKey(job.ID)
	row["epoch"] = valueOf(job.Epoch)
	row[FormatKey] = valueOf(int64(pipeline.FormatVersion))
	row["status"] = valueOf(string(job.Status))
	row[bodyKey] = valueOf(string(pipeline.Encode(job)))
	switch {
	case !job.Status.Ended():
		row[DueShardKey] = valueOf(openShard)
		row[DueAtKey] = valueOf(int64(job.CreatedAt))
	case s.keeping.For > 0:
		row[DueShardKey] = valueOf(endedShard)
		row[DueAtKey] = valueOf(int64(job.EndedAt))
	}
	return row
}

func jobOf(row item) (pipeline.Job, error) {
	return pipeline.Decode[pipeline.Job]([]byte(textIn(row, bodyKey)), "job "+textIn(row, PartitionKey))
}

func jobFits(job pipeline.Job) error {
	return fits("job "+string(job.ID), len(pipeline.Encode(job)))
}

// Job reads the row.
func (s *Store) Job(ctx context.Context, id pipeline.JobID) (pipeline.Job, error) {
	row, err := s.get(ctx, s.rows, jobKey(id))
	switch {
	case err != nil:
	case row == nil:
		err = pipeline.ErrNotFound
	default:
		err = newerJob(row)
	}
	if err != nil {
		return pipeline.Job{}, named("job "+string(id), err)
	}
	return jobOf(row)
}

// sameJob is the condition of every change of a job. It never holds of a row that is missing: nothing brings one back.
func sameJob(seen pipeline.Job) clause {
	return all(
		reads("status", seen.Status),
		equals("epoch", seen.Epoch),
		known(),
	)
}

// SetJob replaces the row if epoch and status are still those seen.
func (s *Store) SetJob(ctx context.Context, seen, next pipeline.Job) (pipeline.Job, error) {
	if err := jobFits(next); err != nil {
		return pipeline.Job{}, err
	}
	what := "set job " + string(seen.ID)
	_, err := s.client.PutItem(ctx, put(s.rows, s.jobItem(next), sameJob(seen)))
	old, is := refused(err)
	switch {
	case err == nil:
		return next, nil
	case !is:
		return pipeline.Job{}, named(what, explain(ctx, err))
	case len(old) == 0:
		return pipeline.Job{}, named(what, pipeline.ErrNotFound)
	case isNewer(old):
		return pipeline.Job{}, named(what, newerJob(old))
	}
	stands, err := jobOf(old)
	switch {
	case err != nil:
		return pipeline.Job{}, named(what, err)
	case stands == next: // our own write, its answer was lost
		return stands, nil
	}
	return stands, fmt.Errorf("%s: it is %s in epoch %d: %w", what, stands.Status, stands.Epoch, pipeline.ErrFenced)
}

// jobEntry is the job's entry in its tenant's list, newest first.
func jobEntry(job pipeline.Job) item {
	row := keyOf(tenantPartition(job.Tenant), fmt.Sprintf("%020d#%s", math.MaxInt64-int64(job.CreatedAt), job.ID))
	row["job"] = valueOf(string(job.ID))
	return row
}

// Jobs lists a tenant's jobs, newest first.
func (s *Store) Jobs(ctx context.Context, tenant, cursor string, limit int) ([]pipeline.Job, string, error) {
	if limit <= 0 || limit > pipeline.MaxRead {
		limit = pipeline.MaxRead
	}
	entries, next, err := s.under(ctx, s.rows, tenantPartition(tenant), "", cursor, int32(limit))
	if err != nil {
		return nil, "", named("jobs of "+tenant, err)
	}
	var keys []item
	for _, entry := range entries {
		keys = append(keys, jobKey(pipeline.JobID(textIn(entry, "job"))))
	}
	rows, err := s.readAll(ctx, s.rows, keys)
	if err != nil {
		return nil, "", named("jobs of "+tenant, err)
	}
	jobs, err := jobsOf(rows, func(job pipeline.Job) bool { return job.Tenant == tenant }) // nobody sees another's, whatever the list says
	return jobs, next, err
}

// OpenJobs is one page of the jobs that have not ended.
func (s *Store) OpenJobs(ctx context.Context, cursor string) ([]pipeline.Job, string, error) {
	rows, next, err := s.listed(ctx, openShard, math.MaxInt64, cursor)
	if err != nil {
		return nil, "", named("open jobs", err)
	}
	jobs, err := jobsOf(rows, func(job pipeline.Job) bool { return !job.Status.Ended() })
	return jobs, next, err
}

func jobsOf(rows []item, keep func(pipeline.Job) bool) (jobs []pipeline.Job, err error) {
	for _, row := range rows {
		job, err := jobOf(row)
		if err != nil {
			return nil, err
		}
		if keep(job) {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}
