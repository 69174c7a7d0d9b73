//go:build localstack

package dynamostore_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
)

const days = 24 * time.Hour

// endsOf is when each row of the checkpoints table whose partition begins so may go, in seconds; 0 = never.
func endsOf(t *testing.T, client *dynamodb.Client, stack, partition string) []int64 {
	t.Helper()
	_, checkpoints := dynamostore.Tables(stack)
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(checkpoints.Name)})
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for _, row := range out.Items {
		if !strings.HasPrefix(row[dynamostore.PartitionKey].(*types.AttributeValueMemberS).Value, partition) {
			continue
		}
		end := int64(0)
		if ttl, is := row[dynamostore.TTLKey].(*types.AttributeValueMemberN); is {
			end, _ = strconv.ParseInt(ttl.Value, 10, 64)
		}
		ends = append(ends, end)
	}
	return ends
}

// marking is a store with a job of many items, and what the table says of when each goes.
type marking struct {
	*testing.T
	client *dynamodb.Client
	stack  string
	store  *dynamostore.Store
	now    pipeline.Instant
	job    pipeline.Job
	task   pipeline.Task // abandoned
}

const itemsThere = 60 // more than one batch

func newMarking(t *testing.T, settings awsclient.Settings) *marking {
	t.Helper()
	m := &marking{T: t, client: clientOf(t, awsclient.Settings{}), now: pipelinetest.T0, job: pipelinetest.NewJob("job-1")}
	m.stack = stackOf(t, m.client)
	m.store = m.opened(settings)
	_, _, err := m.store.Submit(t.Context(), m.job, pipelinetest.NewRow(m.job.ID, pipeline.SplitTask))
	m.must(err)
	for n := range itemsThere {
		m.must(m.store.PutItem(t.Context(), m.job.ID, pipeline.BodyKey(pipeline.WorkTask(n), 1, 1), []byte(strings.Repeat("body ", 1000*(n%2)))))
	}
	row := pipelinetest.NewRow(m.job.ID, pipeline.WorkTask(0))
	_, err = m.store.PutTasks(t.Context(), []pipeline.Task{row})
	m.must(err)
	row, err = m.store.Claim(t.Context(), pipelinetest.ClaimOf(row, "A", m.now))
	m.must(err)
	m.task, err = m.store.End(t.Context(), pipelinetest.EndOf(row, pipeline.Verdict{Status: pipeline.TaskAbandoned}, pipeline.Failure{}, m.now))
	m.must(err)
	return m
}

// opened is the same store by other clients.
func (m *marking) opened(settings awsclient.Settings) *dynamostore.Store {
	m.Helper()
	return dynamostore.New(clientOf(m.T, settings), m.stack, dynamostore.Keeping{For: 90 * days, Now: func() pipeline.Instant { return m.now }})
}

func (m *marking) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// goes checks when every item goes; 0 = never.
func (m *marking) goes(when string, want int64) {
	m.Helper()
	got := endsOf(m.T, m.client, m.stack, "job#job-1")
	if len(got) != itemsThere {
		m.Fatalf("%s: %d items are there, want %d", when, len(got), itemsThere)
	}
	for _, end := range got {
		if end != want {
			m.Fatalf("%s: an item goes at %d, want %d", when, end, want)
		}
	}
}

func (m *marking) in90Days() int64 { return m.now.Add(90 * days).Time().Unix() }

// ends ends the job.
func (m *marking) ends() {
	m.Helper()
	over := m.job
	over.Status, over.EndedAt = pipeline.JobPartial, m.now
	stands, err := m.store.SetJob(m.Context(), m.job, over)
	m.must(err)
	m.job = stands
}

// redrive reopens the job by a store.
func (m *marking) redrive(store *dynamostore.Store) {
	m.Helper()
	reopened := m.job
	reopened.Status, reopened.EndedAt = pipeline.JobRunning, 0
	reopened.Epoch++
	row, job, err := store.Redrive(m.Context(), pipeline.RedriveWrite{Task: m.task, Job: m.job, Reopened: reopened, Now: m.now})
	m.must(err)
	m.task, m.job = row, job
}

// unmarked checks which jobs a reaper finds.
func (m *marking) unmarked(when string, ended pipeline.Instant, want ...pipeline.JobID) {
	m.Helper()
	jobs, next, err := m.store.Unmarked(m.Context(), ended, "")
	m.must(err)
	var got []pipeline.JobID
	for _, job := range jobs {
		got = append(got, job.ID)
	}
	if !slices.Equal(got, want) || next != "" {
		m.Errorf("%s: found %v, next %q, want %v", when, got, next, want)
	}
}

func TestRetention(t *testing.T) {
	t.Run("what a job left goes 90 days after it was found ended, and not while it is open", func(t *testing.T) {
		m := newMarking(t, awsclient.Settings{})
		m.must(m.store.Mark(t.Context(), m.job))
		m.goes("the job is open", 0)
		m.unmarked("the job is open", m.now)
		m.ends()
		m.goes("it has ended, and nobody marked it", 0)
		m.unmarked("it has ended now", m.now-1)
		m.unmarked("it has ended", m.now, m.job.ID)
		m.now = m.now.Add(2 * time.Hour)
		m.must(m.store.Mark(t.Context(), m.job))
		m.goes("it is marked", m.in90Days())
		m.unmarked("it is marked", m.now)
		m.now = m.now.Add(30 * days)
		m.redrive(m.store)
		m.goes("it is redriven", 0)
		m.unmarked("it is redriven", m.now)
	})
	t.Run("a job that ended before it was submitted, as an import is, is found", func(t *testing.T) {
		m := newMarking(t, awsclient.Settings{})
		ended := pipelinetest.NewJob("job-2", func(j *pipeline.Job) { j.Status, j.EndedAt = pipeline.JobCompleted, m.now })
		_, _, err := m.store.Submit(t.Context(), ended, pipelinetest.NewRow(ended.ID, pipeline.SplitTask))
		m.must(err)
		m.unmarked("it was imported", m.now, ended.ID)
	})
	t.Run("a job that is redriven while it is marked keeps all of its items", func(t *testing.T) {
		p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.DynamoDB))
		m := newMarking(t, awsclient.Settings{Endpoint: p.URL})
		m.ends()
		ended := m.job
		p.Around(1, pipelinetest.OpCalls("BatchWriteItem"), func(forward func()) (cut bool) {
			m.redrive(m.opened(awsclient.Settings{}))
			forward()
			return false
		})
		m.must(m.store.Mark(t.Context(), ended))
		m.goes("it was redriven in between", 0)
		m.ends()
		m.must(m.store.Mark(t.Context(), ended))
		m.unmarked("an old sight of it was marked", m.now, m.job.ID)
	})
	t.Run("a job that is marked while it is redriven keeps all of its items", func(t *testing.T) {
		p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.DynamoDB))
		m := newMarking(t, awsclient.Settings{})
		m.ends()
		p.Around(1, pipelinetest.OpCalls("TransactWriteItems"), func(forward func()) (cut bool) {
			m.must(m.store.Mark(t.Context(), m.job))
			m.goes("it is marked", m.in90Days())
			forward()
			return false
		})
		m.redrive(m.opened(awsclient.Settings{Endpoint: p.URL}))
		m.goes("it was redriven", 0)
	})
	t.Run("a reaper that dies while it marks leaves the job to the next", func(t *testing.T) {
		p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.DynamoDB))
		m := newMarking(t, awsclient.Settings{Endpoint: p.URL, Backoff: time.Millisecond})
		m.ends()
		batches := 0
		p.Lose(-1, func(c pipelinetest.Call) bool { // the second batch and all after it
			if c.Op == "BatchWriteItem" {
				batches++
			}
			return c.Op == "BatchWriteItem" && batches > 1
		})
		if err := m.store.Mark(t.Context(), m.job); err == nil {
			t.Error("what was not marked is no error")
		}
		m.unmarked("a part of it is marked", m.now, m.job.ID)
		p.Clear()
		m.now = m.now.Add(days)
		m.must(m.store.Mark(t.Context(), m.job))
		m.goes("the next has marked it, what had an earlier end too", m.in90Days())
		m.unmarked("the next has marked it", m.now)
	})
	t.Run("marks that a dead reaper left on an open job are taken off", func(t *testing.T) {
		m := newMarking(t, awsclient.Settings{})
		m.ends()
		m.must(m.store.Mark(t.Context(), m.job))
		m.goes("it is marked", m.in90Days())
		m.must(m.store.Unmark(t.Context(), m.job.ID))
		m.goes("they were taken off", 0)
	})
}

func TestRetentionOfReplies(t *testing.T) {
	client := clientOf(t, awsclient.Settings{})
	stack := stackOf(t, client)
	now := keeping.Now()
	store := dynamostore.New(client, stack, dynamostore.Keeping{For: 90 * days, Now: func() pipeline.Instant { return now }})
	put := func(text string) string {
		t.Helper()
		stands, err := store.PutReply(t.Context(), pipeline.Reply{Key: "key", Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return stands.Text
	}
	check := func(when, want string) {
		t.Helper()
		found, left, err := store.Replies(t.Context(), []pipeline.ReplyKey{"key"})
		if err != nil || len(left) != 0 {
			t.Fatal(left, err)
		}
		if got := found["key"].Text; got != want {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	put("first")
	for n := range 5 { // of which each is within the time since the last
		now = now.Add(50 * days)
		check("it is used again and again", "first")
		if got, want := endsOf(t, client, stack, "reply#")[0], now.Add(180*days).Time().Unix(); got != want {
			t.Errorf("used %d times: it goes at %d, want %d", n+1, got, want)
		}
	}
	if got := put("second"); got != "first" {
		t.Errorf("got %q, want the one that stands", got)
	}
	now = now.Add(40 * days)
	before := endsOf(t, client, stack, "reply#")[0]
	check("a quarter of its time is not over", "first")
	if got := endsOf(t, client, stack, "reply#")[0]; got != before {
		t.Error("a reply with more than three quarters of its time left was written")
	}
	now = now.Add(140 * days)
	check("its time is over, and it was not deleted yet", "")
	if got := put("third"); got != "third" {
		t.Errorf("got %q, want what was paid for now", got)
	}
	check("it was asked again", "third")
}
