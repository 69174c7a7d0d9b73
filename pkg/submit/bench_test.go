package submit_test

import (
	"fmt"
	"strings"
	"testing"
	"text/template"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/submit"
)

// bench is a submitter on an empty memory store.
type bench struct {
	*testing.T
	store         *memory.Store
	control, work *memory.Queue
	clock         *pipelinetest.Clock
	cfg           submit.Config
	*submit.Submitter
}

func newBench(t *testing.T, edits ...func(*submit.Config)) *bench {
	b := &bench{T: t, store: memory.New(), clock: pipelinetest.NewClock()}
	queue := memory.QueueConfig{Visibility: time.Minute, MaxReceives: 5, Now: b.clock.Now}
	b.control, b.work = memory.NewQueue(queue), memory.NewQueue(queue)
	b.cfg = submit.Config{
		Store: b.store, Blobs: b.store, Queues: pipeline.Queues{Control: b.control, Work: b.work},
		Clock: b.clock, Policy: pipeline.DefaultPolicy(), Tenant: "tenant",
	}
	for _, edit := range edits {
		edit(&b.cfg)
	}
	b.Submitter = submit.New(b.cfg)
	return b
}

var model = pipeline.ModelInfo{Name: "scripted", Version: "1", Price: pipeline.Price{Input: 3000, Output: 15000}, MaxOutput: 4096}

func submission() submit.Submission {
	return submit.Submission{Name: "contract.txt", Source: []byte("The cap is ten."), Definition: pipelinetest.NewDefinition(2, 2), Model: model}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) submit(sub submit.Submission) (pipeline.Job, bool) {
	b.Helper()
	job, stood, err := b.Submit(b.Context(), sub)
	b.must(err)
	return job, stood
}

// split does what the split task does: text, manifest, rows, done.
func (b *bench) split(job pipeline.Job, text string, chunks int, status pipeline.TaskStatus) {
	b.Helper()
	ctx := b.Context()
	m := pipeline.Manifest{Document: "hash", Calls: 4}
	size := len(text) / chunks
	var rows []pipeline.Task
	for n := range chunks {
		end := (n + 1) * size
		if n == chunks-1 {
			end = len(text)
		}
		m.Chunks = append(m.Chunks, pipeline.Chunk{Index: n, Context: n * size, Start: n * size, End: end, Tokens: pipeline.EstimateTokens(text[n*size : end])})
		rows = append(rows, pipelinetest.NewRow(job.ID, pipeline.WorkTask(n), func(t *pipeline.Task) { t.Status = status; t.Stages = 2 }))
	}
	b.must(b.store.PutBlob(ctx, pipeline.DocumentKey("hash"), []byte(text)))
	_, err := b.store.PutItemOnce(ctx, job.ID, pipeline.ManifestKey, m.Encode())
	b.must(err)
	_, err = b.store.PutTasks(ctx, rows)
	b.must(err)
	b.closeSplit(job, pipeline.TaskDone)
}

func (b *bench) closeSplit(job pipeline.Job, status pipeline.TaskStatus) {
	b.Helper()
	row, err := b.store.Task(b.Context(), pipeline.Ref{Job: job.ID, ID: pipeline.SplitTask})
	b.must(err)
	_, err = b.store.Close(b.Context(), pipeline.CloseWrite{Seen: row, Status: status})
	b.must(err)
}

func (b *bench) setStatus(id pipeline.JobID, status pipeline.JobStatus) {
	b.Helper()
	seen, err := b.store.Job(b.Context(), id)
	b.must(err)
	next := seen
	next.Status = status
	_, err = b.store.SetJob(b.Context(), seen, next)
	b.must(err)
}

func (b *bench) rows(id pipeline.JobID) map[pipeline.TaskID]pipeline.Task {
	b.Helper()
	all, err := pipeline.AllTasks(b.Context(), b.store, id)
	b.must(err)
	rows := map[pipeline.TaskID]pipeline.Task{}
	for _, row := range all {
		rows[row.ID] = row
	}
	return rows
}

func (b *bench) depth(q *memory.Queue) int {
	b.Helper()
	visible, _, err := q.Depth(b.Context())
	b.must(err)
	return visible
}

// renderer renders the templates as a reviewer does; replies stands for every answer shown.
type renderer struct{ reply string }

func (r renderer) Questions(s pipeline.StageRequest) ([]pipeline.Question, []pipeline.Call, error) {
	var questions []pipeline.Question
	for _, call := range s.Definition.Stages[s.Stage-1].Calls {
		data := pipeline.PromptData{Text: s.Text[s.Chunk.Start:s.Chunk.End], Heading: s.Chunk.Heading, Vars: call.Vars, Replies: map[string]string{}}
		for _, id := range call.Uses {
			data.Replies[id] = r.reply
		}
		q := pipeline.Question{Chunk: s.Chunk.Index, Call: call, Request: pipeline.Request{
			System: s.Definition.System, Shared: render(s.Definition.Shared, data), Prompt: render(s.Definition.Prompts[call.Prompt], data),
			Schema: s.Definition.Schemas[call.Schema], MaxTokens: call.MaxTokens,
		}}
		q.Request.Key = pipeline.KeyOf(s.Job.Tenant, s.Job.Model, s.Job.Sample, q.Request)
		questions = append(questions, q)
	}
	return questions, nil, nil
}

func (renderer) Read(pipeline.StageRequest, pipeline.Call, pipeline.Reply) (*float64, []pipeline.Finding, error) {
	return nil, nil, nil
}

func (renderer) Check(_ pipeline.Definition, _ pipeline.Call, text string) (string, bool, error) {
	return text, false, nil
}

func render(text string, data pipeline.PromptData) string {
	var out strings.Builder
	if err := template.Must(template.New("").Parse(text)).Execute(&out, data); err != nil {
		panic(fmt.Sprint(err))
	}
	return out.String()
}
