//go:build localstack

package dynamostore_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
)

// rowsOf is how many rows both tables have.
func (m *marking) rowsOf() (n int) {
	m.Helper()
	rows, checkpoints := dynamostore.Tables(m.stack)
	for _, table := range []string{rows.Name, checkpoints.Name} {
		out, err := m.client.Scan(m.Context(), &dynamodb.ScanInput{TableName: aws.String(table)})
		m.must(err)
		n += len(out.Items)
	}
	return n
}

// replied stores replies of the job, one for each key.
func (m *marking) replied(n int) (keys []pipeline.ReplyKey) {
	m.Helper()
	for i := range n {
		key := pipeline.ReplyKey(pipeline.WorkTask(i))
		_, err := m.store.PutReply(m.Context(), pipeline.Reply{Key: key, Text: "{}", Job: m.job.ID})
		m.must(err)
		keys = append(keys, key, key) // equal questions have one answer
	}
	return keys
}

func TestForget(t *testing.T) {
	t.Run("nothing of the job is left, and all of every other", func(t *testing.T) {
		m := newMarking(t, awsclient.Settings{})
		_, _, err := m.store.Submit(t.Context(), pipelinetest.NewJob("job-2"), pipelinetest.NewRow("job-2", pipeline.SplitTask))
		m.must(err)
		m.must(m.store.PutItem(t.Context(), "job-2", pipeline.PlanKey, []byte("{}")))
		m.must(m.store.PutFindings(t.Context(), pipeline.FindingGroup{Job: m.job.ID, Task: pipeline.WorkTask(0), Stage: 1, Generation: 1}))
		keys := m.replied(30)
		m.splitDone()
		m.ends()
		for range 2 { // the second finds nothing, and that is no error
			m.must(m.store.Forget(t.Context(), m.job, keys))
		}
		if n := m.rowsOf(); n != 4 { // job, entry, split and item of the other
			t.Errorf("%d rows are left, want the other job's 4", n)
		}
		jobs, _, err := m.store.Jobs(t.Context(), m.job.Tenant, "", 10)
		if err != nil || len(jobs) != 1 || jobs[0].ID != "job-2" {
			t.Errorf("got %v, error %v; want the other job alone", jobs, err)
		}
	})
	for name, ends := range map[string]func(*marking){
		"a job that is open stays, though all of its rows have ended": (*marking).splitDone,
		"a job with a row that is open stays, though it has ended":    (*marking).ends,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMarking(t, awsclient.Settings{})
			ends(m)
			before := m.rowsOf()
			if err := m.store.Forget(t.Context(), m.job, nil); !errors.Is(err, dynamostore.ErrOpen) {
				t.Errorf("got error %v, want ErrOpen", err)
			}
			if after := m.rowsOf(); after != before {
				t.Errorf("%d rows are left of %d", after, before)
			}
		})
	}
	t.Run("a job that is redriven at the same moment stays whole", func(t *testing.T) {
		p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.DynamoDB))
		m := newMarking(t, awsclient.Settings{Endpoint: p.URL})
		m.splitDone()
		m.ends()
		before := m.rowsOf()
		p.Around(1, pipelinetest.OpCalls("PutItem", `"S":"job"`), func(forward func()) (cut bool) {
			m.redrive(m.opened(awsclient.Settings{}))
			forward()
			return false
		})
		ended := m.job
		if err := m.store.Forget(t.Context(), ended, nil); !errors.Is(err, pipeline.ErrFenced) {
			t.Errorf("got error %v, want ErrFenced", err)
		}
		if after := m.rowsOf(); after != before {
			t.Errorf("%d rows are left of %d", after, before)
		}
	})
	t.Run("what an interrupted one left goes with the next", func(t *testing.T) {
		p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.DynamoDB))
		m := newMarking(t, awsclient.Settings{Endpoint: p.URL})
		m.splitDone()
		m.ends()
		p.Fail(-1, pipelinetest.OpCalls("DeleteItem"), 400, "AccessDeniedException")
		if err := m.store.Forget(t.Context(), m.job, nil); err == nil {
			t.Error("it says that it is done")
		}
		p.Clear()
		m.must(m.store.Forget(t.Context(), m.job, nil))
		if n := m.rowsOf(); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// splitDone ends the split.
func (m *marking) splitDone() {
	m.Helper()
	row, err := m.store.Task(m.Context(), pipeline.Ref{Job: m.job.ID, ID: pipeline.SplitTask})
	m.must(err)
	row, err = m.store.Claim(m.Context(), pipelinetest.ClaimOf(row, "A", m.now))
	m.must(err)
	_, err = m.store.End(m.Context(), pipelinetest.EndOf(row, pipeline.Verdict{Status: pipeline.TaskDone}, pipeline.Failure{}, m.now))
	m.must(err)
}
