// Package carry takes a job with everything that belongs to it out of one backend and puts it into another: rows, items,
// findings, money, the replies that were paid for, and the blobs. What is carried is one file of JSON lines.
//
// It may decide which jobs can be carried: those that nobody works on. It may not change what it carries, or take
// anything away from where it came from.
package carry

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"holdfast/pkg/pipeline"
)

// Store is what carrying asks of a store.
type Store interface {
	pipeline.Jobs
	pipeline.Tasks
	pipeline.Items
	pipeline.Replies
	pipeline.Feed
	pipeline.Budgets
}

// line is one thing that is carried; exactly one field is set. The job comes last: a file that was cut off has none,
// and nothing can work on a job whose rest has not arrived.
type line struct {
	Blob     *blob                  `json:"blob,omitempty"`
	Reply    *pipeline.Reply        `json:"reply,omitempty"`
	Item     *pipeline.Item         `json:"item,omitempty"`
	Findings *pipeline.FindingGroup `json:"findings,omitempty"`
	Budget   *pipeline.Budget       `json:"budget,omitempty"`
	Task     *pipeline.Task         `json:"task,omitempty"`
	Job      *pipeline.Job          `json:"job,omitempty"`
	Of       pipeline.JobID         `json:"of,omitempty"` // the job that it belongs to
}

type blob struct {
	Key  string `json:"key"`
	Body []byte `json:"body"`
}

// ErrBusyJob says that somebody may be working on the job.
var ErrBusyJob = errors.New("it can be carried only while nobody works on it")

// Keys names the replies that a job may have stored, from its rows and items.
type Keys func(ctx context.Context, job pipeline.Job, rows []pipeline.Task, items []pipeline.Item) ([]pipeline.ReplyKey, error)

// Export writes a job that has ended or is paused, with every reply of keys that is stored. While it is written nothing
// may resume or redrive it.
func Export(ctx context.Context, store Store, blobs pipeline.Blobs, clock pipeline.Clock, keys Keys, id pipeline.JobID, out io.Writer) error {
	job, err := store.Job(ctx, id)
	if err != nil {
		return fmt.Errorf("export job %s: %w", id, err)
	}
	rows, err := pipeline.AllTasks(ctx, store, id)
	if err != nil {
		return fmt.Errorf("export job %s: read its rows: %w", id, err)
	}
	if err := atRest(job, rows); err != nil {
		return fmt.Errorf("export job %s: %w", id, err)
	}
	e := &exporter{ctx: ctx, store: store, blobs: blobs, clock: clock, keys: keys, job: job, out: json.NewEncoder(out)}
	if err := e.export(rows); err != nil {
		return fmt.Errorf("export job %s: %w", id, err)
	}
	return nil
}

func atRest(job pipeline.Job, rows []pipeline.Task) error {
	if !job.Status.Ended() && job.Status != pipeline.JobPaused {
		return fmt.Errorf("it is %s; wait for its end, or pause it: %w", job.Status, ErrBusyJob)
	}
	for _, row := range rows {
		if row.Status == pipeline.TaskClaimed {
			return fmt.Errorf("%s is claimed by %s; wait a moment: %w", row.ID, row.ClaimedBy, ErrBusyJob)
		}
	}
	return nil
}

type exporter struct {
	ctx   context.Context
	store Store
	blobs pipeline.Blobs
	clock pipeline.Clock
	keys  Keys
	job   pipeline.Job
	out   *json.Encoder
}

func (e *exporter) put(l line) error {
	l.Of = e.job.ID
	return e.out.Encode(l)
}

func (e *exporter) export(rows []pipeline.Task) error {
	items, err := pipeline.AllItems(e.ctx, e.store, e.job.ID, "")
	if err != nil {
		return fmt.Errorf("read its items: %w", err)
	}
	errs := errors.Join(e.blob(pipeline.SourceKey(e.job.Source)), e.blob(e.job.Fingerprint), e.blob(e.job.Result))
	if m, err := pipeline.ReadManifest(e.ctx, e.store, e.job.ID); err == nil {
		errs = errors.Join(errs, e.blob(pipeline.DocumentKey(m.Document)))
	}
	if err := errors.Join(errs, e.replies(rows, items)); err != nil {
		return err
	}
	for _, item := range items {
		if err := e.put(line{Item: &item}); err != nil {
			return err
		}
	}
	if err := errors.Join(e.findings(), e.budget()); err != nil {
		return err
	}
	for _, row := range rows {
		if err := e.put(line{Task: &row}); err != nil {
			return err
		}
	}
	return e.put(line{Job: &e.job})
}

// blob carries a blob; one that is not there, or has no key, was never written.
func (e *exporter) blob(key string) error {
	if key == "" {
		return nil
	}
	body, err := e.blobs.Blob(e.ctx, key)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.put(line{Blob: &blob{key, body}})
}

// replies carries every reply of the job that is stored.
func (e *exporter) replies(rows []pipeline.Task, items []pipeline.Item) error {
	keys, err := e.keys(e.ctx, e.job, rows, items)
	if err != nil {
		return fmt.Errorf("find its replies: %w", err)
	}
	found, err := pipeline.ReadReplies(e.ctx, e.store, e.blobs, e.clock, keys)
	if err != nil {
		return fmt.Errorf("read its replies: %w", err)
	}
	for _, reply := range found {
		if reply.Blob != "" {
			if err := e.blob(reply.Blob); err != nil {
				return err
			}
			reply.Text = "" // as it was stored
		}
		if err := e.put(line{Reply: &reply}); err != nil {
			return err
		}
	}
	return nil
}

const groupsAtOnce = 100

func (e *exporter) findings() error {
	for after := int64(0); ; {
		groups, err := e.store.Findings(e.ctx, e.job.ID, after, groupsAtOnce)
		if err != nil || len(groups) == 0 {
			return err
		}
		for _, g := range groups {
			after = g.Seq
			if err := e.put(line{Findings: &g}); err != nil {
				return err
			}
		}
	}
}

func (e *exporter) budget() error {
	b, err := e.store.Budget(e.ctx, e.job.ID)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.put(line{Budget: &b})
}

// Import puts what Export wrote, each part only if absent, and returns the job. Repeating it changes nothing. What has
// ended stays ended; what was paused is paused, and goes on from its stored answers once it is resumed.
func Import(ctx context.Context, store Store, blobs pipeline.Blobs, in io.Reader) (pipeline.Job, error) {
	i := &importer{ctx: ctx, store: store, blobs: blobs}
	lines := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	for n := 1; ; n++ {
		var l line
		err := lines.Decode(&l)
		if errors.Is(err, io.EOF) {
			return pipeline.Job{}, fmt.Errorf("import: the file ends before the job: it was cut off, or is none of an export")
		}
		if err != nil {
			return pipeline.Job{}, fmt.Errorf("import: line %d is no line of an export: %w", n, err)
		}
		if l.Job != nil {
			return i.job(*l.Job)
		}
		if err := i.take(l); err != nil {
			return pipeline.Job{}, fmt.Errorf("import: line %d: %w", n, err)
		}
	}
}

type importer struct {
	ctx   context.Context
	store Store
	blobs pipeline.Blobs
	rows  []pipeline.Task
}

func (i *importer) take(l line) (err error) {
	switch {
	case l.Blob != nil:
		return i.blobs.PutBlob(i.ctx, l.Blob.Key, l.Blob.Body)
	case l.Reply != nil:
		_, err = i.store.PutReply(i.ctx, *l.Reply)
	case l.Item != nil:
		_, err = i.store.PutItemOnce(i.ctx, l.Of, l.Item.Key, l.Item.Body)
	case l.Findings != nil:
		return i.store.PutFindings(i.ctx, *l.Findings)
	case l.Budget != nil:
		return i.budget(l.Of, *l.Budget)
	case l.Task != nil:
		i.rows = append(i.rows, *l.Task)
	}
	return err
}

// budget opens the same ceiling and writes down what was spent; what was reserved by nobody who lives counts as spent.
func (i *importer) budget(job pipeline.JobID, b pipeline.Budget) error {
	if err := i.store.OpenBudget(i.ctx, job, b.Ceiling); err != nil {
		return err
	}
	now, err := i.store.Budget(i.ctx, job)
	spent := b.Ceiling - b.Remaining
	if err != nil || now.Spent > 0 || spent <= 0 {
		return err
	}
	r := pipeline.Reservation{Task: "import", Amount: min(spent, b.Ceiling)}
	if _, err := i.store.Reserve(i.ctx, job, r); err != nil {
		return err
	}
	r.Amount = spent
	_, err = i.store.Settle(i.ctx, job, r)
	return err
}

// job puts the rows, and last the job with its split.
func (i *importer) job(job pipeline.Job) (pipeline.Job, error) {
	var split pipeline.Task
	var rest []pipeline.Task
	for _, row := range i.rows {
		if row.ID == pipeline.SplitTask {
			split = row
		} else {
			rest = append(rest, row)
		}
	}
	if split.ID == "" {
		return pipeline.Job{}, fmt.Errorf("import job %s: the file has no row of its split", job.ID)
	}
	for stuck := 0; len(rest) > 0; {
		n := min(len(rest), pipeline.MaxWrite)
		left, err := i.store.PutTasks(i.ctx, rest[:n])
		if err != nil {
			return pipeline.Job{}, fmt.Errorf("import job %s: put its rows: %w", job.ID, err)
		}
		if stuck++; len(left) < n {
			stuck = 0
		}
		if stuck > 10 {
			return pipeline.Job{}, fmt.Errorf("import job %s: %d rows were not taken: %w", job.ID, len(rest), pipeline.ErrBusy)
		}
		rest = append(left, rest[n:]...)
	}
	stands, created, err := i.store.Submit(i.ctx, job, split)
	if err != nil {
		return pipeline.Job{}, fmt.Errorf("import job %s: %w", job.ID, err)
	}
	if !created && stands != job {
		return stands, fmt.Errorf("import job %s: another state of it is there, %s in epoch %d, and stays: %w", job.ID, stands.Status, stands.Epoch, pipeline.ErrFenced)
	}
	return stands, nil
}
