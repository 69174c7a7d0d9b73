package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/pipeline"
)

// StagesConfig is what the handler of chunks needs.
type StagesConfig struct {
	Model    string // name@version of the model that the asker asks
	Asker    pipeline.Asker
	Reviewer pipeline.Reviewer
	Items    pipeline.Items
	Replies  pipeline.Replies
	Feed     pipeline.Feed
	Blobs    pipeline.Blobs
	Clock    pipeline.Clock
	Policy   pipeline.Policy
}

// Stages is the handler of work tasks: it runs the stages of a definition on one chunk, from the one after the last
// that was accepted.
type Stages struct {
	cfg   StagesConfig
	texts *shelf
}

// NewStages is the handler of chunks.
func NewStages(cfg StagesConfig) *Stages {
	return &Stages{cfg: cfg, texts: newShelf(cfg.Items, cfg.Blobs)}
}

// Handle runs the stages that are not accepted yet.
func (s *Stages) Handle(ctx context.Context, a pipeline.Attempt) pipeline.Ending {
	if job := a.Job(); job.Model != s.cfg.Model {
		return ending(pipeline.Fail(pipeline.Rejected, "the job asks for model %s, and this worker has %s", job.Model, s.cfg.Model))
	}
	defer s.cfg.Asker.Done(ctx, a)
	r, err := s.load(ctx, a.Job(), a.Claim().Task)
	if errors.Is(err, errGone) {
		return failWith(pipeline.Invalid, "load the chunk", err)
	}
	if err != nil {
		return failWith(pipeline.StoreFault, "load the chunk", err)
	}
	if n := len(r.Bodies); n > 0 { // its findings may have missed the feed: putting them again changes nothing
		if err := s.publish(ctx, a, r.Bodies[n-1]); err != nil {
			return s.writeFailed(a, "publish the findings", err)
		}
	}
	for stage := a.Claim().Accepted + 1; stage <= len(r.Definition.Stages); stage++ {
		r.Stage = stage
		body, texts, e := s.stage(ctx, a, r)
		if e.Outcome != pipeline.Succeeded {
			return e
		}
		if err := a.Checkpoint(ctx, stage, pipeline.Encode(body)); err != nil {
			return s.writeFailed(a, "checkpoint", err)
		}
		if err := s.publish(ctx, a, body); err != nil {
			return s.writeFailed(a, "publish the findings", err)
		}
		r.Bodies = append(r.Bodies, body)
		for call, text := range texts {
			r.Replies[call] = text
		}
	}
	return pipeline.Ending{Outcome: pipeline.Succeeded}
}

func (s *Stages) writeFailed(a pipeline.Attempt, doing string, err error) pipeline.Ending {
	if errors.Is(err, pipeline.ErrTooLarge) {
		return failWith(pipeline.Invalid, doing, err)
	}
	if errors.Is(err, pipeline.ErrFenced) {
		return ending(pipeline.StopFailure(err, a.Job()))
	}
	return failWith(pipeline.StoreFault, doing, err)
}

// load reads what the chunk's stages need, and what earlier attempts got accepted.
func (s *Stages) load(ctx context.Context, job pipeline.Job, row pipeline.Task) (pipeline.StageRequest, error) {
	r := pipeline.StageRequest{Job: job, Replies: map[string]string{}}
	var err error
	if r.Definition, err = s.texts.definition(ctx, job.Fingerprint); err != nil {
		return r, notLoaded("definition", job.Fingerprint, err)
	}
	manifest, err := s.texts.manifest(ctx, job.ID)
	if err != nil {
		return r, notLoaded("manifest", pipeline.ManifestKey, err)
	}
	n := row.ID.Number()
	if n < 0 || n >= len(manifest.Chunks) {
		return r, fmt.Errorf("the manifest has %d chunks, none with number %d", len(manifest.Chunks), n)
	}
	r.Chunk = manifest.Chunks[n]
	document := pipeline.DocumentKey(manifest.Document)
	if r.Text, err = s.texts.text(ctx, document); err != nil {
		return r, notLoaded("document", document, err)
	}
	for stage := 1; stage <= row.Accepted; stage++ {
		key := pipeline.BodyKey(row.ID, stage, row.Body(stage))
		item, err := s.cfg.Items.Item(ctx, job.ID, key)
		if err != nil {
			return r, notLoaded("accepted stage", key, err)
		}
		body, err := pipeline.Decode[pipeline.StageBody](item, "stage body")
		if err != nil {
			return r, err
		}
		r.Bodies = append(r.Bodies, body)
	}
	return r, s.repliesOf(ctx, r)
}

// errGone says that what was stored before the chunk's row was made is no longer there: waiting brings nothing back.
var errGone = errors.New("is gone, submit the document again")

// notLoaded names what could not be read, and tells what is gone from what cannot be read now.
func notLoaded(what, key string, err error) error {
	if errors.Is(err, pipeline.ErrNotFound) {
		return fmt.Errorf("the %s %s %w: %w", what, key, errGone, err)
	}
	return fmt.Errorf("read the %s %s: %w", what, key, err)
}

// repliesOf reads the texts that later stages' prompts show.
func (s *Stages) repliesOf(ctx context.Context, r pipeline.StageRequest) error {
	calls := map[pipeline.ReplyKey][]string{}
	var keys []pipeline.ReplyKey
	for _, body := range r.Bodies {
		for _, cell := range body.Cells {
			if cell.State == pipeline.CellAnswered {
				keys = append(keys, cell.Key)
				calls[cell.Key] = append(calls[cell.Key], cell.Call)
			}
		}
	}
	found, err := pipeline.ReadReplies(ctx, s.cfg.Replies, s.cfg.Blobs, s.cfg.Clock, keys)
	if err != nil {
		return err
	}
	for key, reply := range found {
		for _, call := range calls[key] {
			r.Replies[call] = reply.Text
		}
	}
	return nil
}

// stage asks what one stage asks and judges what came back.
func (s *Stages) stage(ctx context.Context, a pipeline.Attempt, r pipeline.StageRequest) (pipeline.StageBody, map[string]string, pipeline.Ending) {
	claim := a.Claim()
	body := pipeline.StageBody{
		Stage: r.Stage, Name: r.Definition.Stages[r.Stage-1].Name, Chunk: r.Chunk.Index,
		Generation: claim.Generation, Worker: a.Worker(), StartedAt: s.cfg.Clock.Now(),
	}
	questions, gated, err := s.cfg.Reviewer.Questions(r)
	if err != nil {
		return body, nil, ending(pipeline.Fail(pipeline.Invalid, "make the questions: %v", err).At(body.Name, ""))
	}
	for i := range questions {
		questions[i].Check = func(text string) (string, bool, error) {
			return s.cfg.Reviewer.Check(r.Definition, questions[i].Call, text)
		}
	}
	for _, call := range gated {
		body.Cells = append(body.Cells, pipeline.Cell{Chunk: r.Chunk.Index, Call: call.ID, State: pipeline.CellGated})
	}
	answers := s.cfg.Asker.Ask(ctx, a, questions)
	texts := map[string]string{}
	var open verdicts
	for i, answer := range answers {
		cell, settled := s.cell(a, r, questions[i], answer, &body)
		if !settled {
			open.add(answer, body.Name, questions[i].Call.ID)
			continue
		}
		if cell.State == pipeline.CellAnswered {
			texts[cell.Call] = answer.Reply.Text
		}
		body.Cells = append(body.Cells, cell)
	}
	body.EndedAt = s.cfg.Clock.Now()
	return body, texts, open.ending(a)
}

// cell is how a question ended. It has not settled while another attempt may still answer it.
func (s *Stages) cell(a pipeline.Attempt, r pipeline.StageRequest, q pipeline.Question, answer pipeline.Answer, body *pipeline.StageBody) (pipeline.Cell, bool) {
	cell := pipeline.Cell{Chunk: r.Chunk.Index, Call: q.Call.ID, Tries: answer.Tries}
	failure := answer.Failure.At(body.Name, q.Call.ID)
	switch {
	case answer.Stop != nil:
		return cell, false
	case answer.Failure.None():
		value, findings, err := s.cfg.Reviewer.Read(r, q.Call, answer.Reply)
		if err == nil {
			cell.State, cell.Key = pipeline.CellAnswered, answer.Reply.Key
			cell.Reused = answer.Reply.Job != r.Job.ID
			cell.Value, cell.Cost = value, answer.Reply.Cost
			body.Findings = append(body.Findings, findings...)
			return cell, true
		}
		failure = pipeline.Fail(pipeline.Malformed, "read the reply: %v", err).At(body.Name, q.Call.ID)
	case answer.Failure.Kind.CellFails():
	case answer.Defers || !a.Last():
		return cell, false
	case r.Definition.Handler != "": // nothing follows that could go on without it: the task is abandoned, and says so
		return cell, false
	}
	cell.State, cell.Failure = pipeline.CellFailed, failure
	return cell, true
}

// verdicts gathers why cells are still open, and what that means for the attempt.
type verdicts struct {
	stop   error
	defers pipeline.Failure
	fails  pipeline.Failure
	wait   time.Duration
}

func (v *verdicts) add(answer pipeline.Answer, stage, call string) {
	v.wait = max(v.wait, answer.Wait)
	switch {
	case answer.Stop != nil:
		if v.stop == nil {
			v.stop = answer.Stop
		}
	case answer.Defers:
		v.defers = answer.Failure.At(stage, call)
	default:
		v.fails = answer.Failure.At(stage, call)
	}
}

// ending: a stop first, since it says what a person or the clock wants; then what is nobody's fault, so that healthy
// work is not counted; then the failure.
func (v *verdicts) ending(a pipeline.Attempt) pipeline.Ending {
	switch {
	case v.stop != nil:
		return ending(pipeline.StopFailure(v.stop, a.Job()))
	case !v.defers.None():
		return pipeline.Ending{Outcome: pipeline.Deferral, Failure: v.defers, RetryAfter: v.wait}
	case !v.fails.None():
		return pipeline.Ending{Outcome: pipeline.FailedNow, Failure: v.fails, RetryAfter: v.wait}
	}
	return pipeline.Ending{Outcome: pipeline.Succeeded}
}

// publish puts a stage's findings on the feed, after its acceptance: that was the fence.
func (s *Stages) publish(ctx context.Context, a pipeline.Attempt, body pipeline.StageBody) error {
	if len(body.Findings) == 0 {
		return nil
	}
	claim := a.Claim()
	return s.cfg.Feed.PutFindings(ctx, pipeline.FindingGroup{
		Job: claim.Job, Task: claim.ID, Stage: body.Stage, Generation: body.Generation,
		Findings: body.Findings, At: s.cfg.Clock.Now(),
	})
}
