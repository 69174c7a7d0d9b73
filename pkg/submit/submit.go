// Package submit is what a person tells a job: begin, what will it cost, start, pause, resume, cancel.
//
// It may decide: which run a submission is, what a job may cost, and the job's status, each in one conditional write.
// It may not decide how a job ends (finalize does), nor end a row that somebody works on: the worker does, when it
// sees the job's status.
package submit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"holdfast/pkg/pipeline"
)

// Store is what a submitter asks of the store.
type Store interface {
	pipeline.Jobs
	pipeline.Tasks
	pipeline.Reaping
	pipeline.Items
	pipeline.Replies
	pipeline.Budgets
}

// Opener opens the finalize of a job whose tasks have all ended.
type Opener interface {
	MaybeFinalize(ctx context.Context, job pipeline.JobID) error
}

// Config is all that a submitter needs.
type Config struct {
	Store     Store
	Blobs     pipeline.Blobs
	Queues    pipeline.Queues
	Opener    Opener            // nil: the reaper finds the jobs that a cancel emptied
	Reviewer  pipeline.Reviewer // renders calls, to count those whose reply is stored; nil: none are counted
	Clock     pipeline.Clock
	Policy    pipeline.Policy
	Tenant    string
	FailShare float64 // share of tries that fail, for the expected cost; 0: DefaultFailShare
}

// DefaultFailShare is what is assumed where nothing was measured.
const DefaultFailShare = 0.05

// Submitter submits and steers jobs.
type Submitter struct {
	cfg     Config
	opening chan struct{} // held while a plan is fixed; no mutex, since that may wait
}

// New is a submitter.
func New(cfg Config) *Submitter {
	if cfg.FailShare == 0 {
		cfg.FailShare = DefaultFailShare
	}
	return &Submitter{cfg: cfg, opening: make(chan struct{}, 1)}
}

// Submission is a document and how it shall be worked on.
type Submission struct {
	Name       string // of the document, for people
	Source     []byte // the document as it came
	Definition pipeline.Definition
	Model      pipeline.ModelInfo
	MaxCost    pipeline.Money // a ceiling below the worst case; 0 = the worst case
	Hold       bool           // stay planned after the split, until Start
	Fresh      bool           // a new run that uses no stored replies
	Sample     int            // part of every reply key; 0 shares replies with other jobs
}

// maxRuns bounds how often one submission may be run.
const maxRuns = 10_000

// Submit puts the job and its split, or returns the job that stands: equal submissions are one job. One that was
// cancelled or failed is followed by its next run, so is any when the submission asks for a fresh one; but a fresh run
// that has not ended stands for the next who asks. One that was left until its deadline passed goes on. A lost bell is
// no error: the row is due, the reaper rings.
func (s *Submitter) Submit(ctx context.Context, sub Submission) (job pipeline.Job, stood bool, err error) {
	if sub.Definition.Handler != "" {
		sub.Model = sub.Definition.HandlerInfo()
	}
	if err := errors.Join(sub.check(), s.cfg.Policy.CheckTryTimeout(sub.Definition)); err != nil {
		return pipeline.Job{}, false, fmt.Errorf("submit %s: %w", sub.Name, err)
	}
	hash := sha256.Sum256(sub.Source)
	source := hex.EncodeToString(hash[:])
	for run := 1; run <= maxRuns; run++ {
		id := pipeline.NewJobID(s.cfg.Tenant, source, sub.Definition.Key(), sub.Model.ID(), run)
		job, err := s.cfg.Store.Job(ctx, id)
		switch {
		case err == nil && sub.anew(job):
			continue
		case err == nil:
			if job, err = s.woken(ctx, job); err == nil {
				job, err = s.lowered(ctx, sub, job)
			}
			return job, true, err
		case !errors.Is(err, pipeline.ErrNotFound):
			return pipeline.Job{}, false, fmt.Errorf("submit %s: read job %s: %w", sub.Name, id, err)
		}
		job, created, err := s.put(ctx, sub, id, run, source)
		if err != nil {
			return pipeline.Job{}, false, fmt.Errorf("submit %s as job %s: %w", sub.Name, id, err)
		}
		return job, !created, nil
	}
	return pipeline.Job{}, false, fmt.Errorf("submit %s: it has had %d runs: change the document or the pipeline", sub.Name, maxRuns)
}

// woken gives a job that was left, and whose deadline passed before anybody could end it, another one: who submits it
// again wants it done, and would otherwise be handed what is about to be ended for nobody's having been there.
func (s *Submitter) woken(ctx context.Context, job pipeline.Job) (pipeline.Job, error) {
	late := func(job pipeline.Job) bool {
		open := job.Status == pipeline.JobPlanned || job.Status == pipeline.JobRunning
		return open && job.Expired(s.cfg.Clock.Now())
	}
	if !late(job) {
		return job, nil
	}
	return s.change(ctx, job.ID, "give another deadline to", func(job pipeline.Job) (pipeline.Job, error) {
		if late(job) {
			job.Deadline = s.cfg.Clock.Now().Add(s.cfg.Policy.JobDeadline)
		}
		return job, nil
	})
}

// lowered gives a job that stands the ceiling that the submission asks for. Once it has begun the ceiling is fixed, and
// saying nothing would let it spend more than was asked.
func (s *Submitter) lowered(ctx context.Context, sub Submission, job pipeline.Job) (pipeline.Job, error) {
	if sub.MaxCost == 0 || sub.MaxCost == job.MaxCost || job.Status.Ended() {
		return job, nil
	}
	return s.change(ctx, job.ID, "lower the ceiling of", func(job pipeline.Job) (pipeline.Job, error) {
		if _, err := s.cfg.Store.Budget(ctx, job.ID); err == nil || job.Status != pipeline.JobPlanned {
			return job, stands(job, "its ceiling is fixed since it began; cancel it, and submit it again with the other ceiling: its replies are kept")
		}
		job.MaxCost = sub.MaxCost
		return job, nil
	})
}

func (sub Submission) check() error {
	switch {
	case len(sub.Source) == 0:
		return errors.New("the document is empty: there is nothing to work on")
	case sub.Model.Name == "":
		return errors.New("no model was named")
	case sub.MaxCost < 0:
		return fmt.Errorf("a ceiling of %s allows nothing", sub.MaxCost)
	}
	if err := sub.Definition.Validate(); err != nil {
		return fmt.Errorf("pipeline %s: %w", sub.Definition.ID(), err)
	}
	return nil
}

// anew says that the job does not stand for the submission: the next run does.
func (sub Submission) anew(job pipeline.Job) bool {
	switch job.Status {
	case pipeline.JobCancelled, pipeline.JobFailed:
		return true
	case pipeline.JobPlanned, pipeline.JobRunning, pipeline.JobPaused:
		if sub.Fresh {
			return job.Sample != freshSample(job.ID)
		}
	}
	return sub.Fresh || (sub.Sample != 0 && job.Sample != sub.Sample)
}

// freshSample is a sample number that no other run has, the same for whoever submits that run.
func freshSample(id pipeline.JobID) int {
	sum := sha256.Sum256([]byte(id))
	return int(binary.BigEndian.Uint32(sum[:4])>>1) | 1
}

// put writes what the job is made of, then the job and its split in one transaction, and rings.
func (s *Submitter) put(ctx context.Context, sub Submission, id pipeline.JobID, run int, source string) (job pipeline.Job, created bool, err error) {
	job = s.newJob(sub, id, run, source)
	if err := s.cfg.Blobs.PutBlob(ctx, pipeline.SourceKey(source), sub.Source); err != nil {
		return job, false, fmt.Errorf("store the document: %w", err)
	}
	if err := s.cfg.Blobs.PutBlob(ctx, job.Fingerprint, sub.Definition.Encode()); err != nil {
		return job, false, fmt.Errorf("store the definition: %w", err)
	}
	if _, err := s.cfg.Store.PutItemOnce(ctx, id, pipeline.ModelKey, pipeline.Encode(sub.Model)); err != nil {
		return job, false, fmt.Errorf("store the model's price: %w", err)
	}
	split := s.splitRow(job)
	job, created, err = s.cfg.Store.Submit(ctx, job, split)
	if err != nil {
		return job, false, err
	}
	if created {
		_ = s.cfg.Queues.Ring(ctx, split) // lost: the row is due, and the reaper rings
	}
	return job, created, nil
}

func (s *Submitter) newJob(sub Submission, id pipeline.JobID, run int, source string) pipeline.Job {
	now := s.cfg.Clock.Now()
	job := pipeline.Job{
		ID: id, Run: run, Tenant: s.cfg.Tenant, Name: sub.Name,
		Status: pipeline.JobRunning, Epoch: 1,
		Source: source, Pipeline: sub.Definition.ID(), Fingerprint: sub.Definition.Key(),
		Model: sub.Model.ID(), Sample: sub.Sample, MaxCost: sub.MaxCost,
		Tries:    s.cfg.Policy.TriesPerCell(),
		Deadline: now.Add(s.cfg.Policy.JobDeadline), CreatedAt: now, StartedAt: now,
		Version: pipeline.FormatVersion,
	}
	if sub.Hold {
		job.Status, job.StartedAt = pipeline.JobPlanned, 0 // a plan that nobody starts lapses with its deadline
	}
	if sub.Fresh {
		job.Sample = freshSample(id)
	}
	return job
}

func (s *Submitter) splitRow(job pipeline.Job) pipeline.Task {
	now := s.cfg.Clock.Now()
	return pipeline.Task{
		Ref:    pipeline.Ref{Job: job.ID, ID: pipeline.SplitTask},
		Tenant: job.Tenant, Status: pipeline.TaskPending, Stages: 1,
		ReadyAt: now, DueAt: now.Add(s.cfg.Policy.RenewEvery),
	}
}
