//go:build localstack

package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/awscost"
	"holdfast/pkg/ingest"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

// onAWS is a backend of its own for a test, in LocalStack. The service must be there: these tests never skip.
func onAWS(t testing.TB, p pipeline.Policy, edits ...func(*wiring.AWS)) *wiring.Backend {
	t.Helper()
	a := wiring.AWS{
		Stack:    awstest.Stack(),
		Endpoint: awstest.Endpoint(awstest.All), DynamoDB: awstest.Endpoint(awstest.DynamoDB),
	}
	awstest.Made(t, wiring.CreateAWS(t.Context(), a, p))
	t.Cleanup(func() { awstest.Removed(t, wiring.DeleteAWS(context.Background(), a)) })
	opened := a
	for _, edit := range edits {
		edit(&opened)
	}
	back, err := wiring.OpenAWS(t.Context(), opened, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = back.Close() })
	return back
}

// review is the shape of the shipped review: 116 calls a chunk in five stages.
func review() pipeline.Definition {
	stages := []int{1, 12, 88, 11, 4}
	return pipelinetest.NewDefinition(len(stages), 88, func(d *pipeline.Definition) {
		for n := range d.Stages {
			d.Stages[n].Calls = d.Stages[n].Calls[:stages[n]]
		}
	})
}

// prompt answers at once, with 800 bytes and a finding now and then.
type prompt struct{}

func (prompt) Info() pipeline.ModelInfo {
	return pipeline.ModelInfo{Name: "answering", Version: "1", Price: pipeline.Price{Input: 3000, Output: 15000}, ContextTokens: 100_000, MaxOutput: 4000, TokensPerMinute: 60_000_000}
}

func (prompt) Complete(_ context.Context, r pipeline.Request) (pipeline.Response, error) {
	text := fmt.Sprintf(`{"score": 0.9, "note": %q}`, prose(r.Key, 760))
	return pipeline.Response{Text: text, Stop: pipeline.StopEnd, Usage: pipeline.Usage{Input: r.InputTokens(), Output: 200}}, nil
}

// prose is so many bytes that compress as an analyst's answer does.
func prose(key pipeline.ReplyKey, n int) string {
	sample := pipelines.SampleContract()
	at := 0
	for _, c := range key {
		at = (at*31 + int(c)) % (len(sample) - n)
	}
	return sample[at : at+n]
}

// slowMachine is when the limits for slow chunks hold, and not those of the bench: through LocalStack's gateway a
// request takes as long as ten of DynamoDB.
const slowMachine = 10 * time.Second

// What AWS is asked and charged for a whole job: counts, no times.
func TestBenchOnAWS(t *testing.T) {
	chunks := 22
	if testing.Short() {
		chunks = 2
	}
	calls := chunks * 116
	p := pipeline.DefaultPolicy()
	meter := &awscost.Meter{}
	back := onAWS(t, p, func(a *wiring.AWS) { a.Transport = meter.Around })
	system := wiring.New(back, wiring.Config{
		Tenant: "tenant", Worker: "bench", Policy: p, Model: prompt{}, InFlight: 64, Claims: 4, Poll: time.Second, Jitter: half,
		Read: ingest.New(ingest.Config{Clock: pipeline.NewRealClock()}).Read,
	})
	job, _, err := system.Submitter.Submit(t.Context(), submit.Submission{Name: "contract.txt", Source: []byte(text(chunks)), Definition: review(), Model: prompt{}.Info()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var group pipeline.Group
	group.Go(func() { system.Worker().Run(context.Background(), ctx) })
	group.Go(func() { system.Reaper.Run(ctx, time.Minute) }) // as the scheduled function does
	begun := time.Now()                                      // no figure, but which limit holds: a worker polls and renews by the second
	for !job.Status.Ended() {
		if err := pipeline.NewRealClock().Sleep(t.Context(), 2*time.Second); err != nil {
			break
		}
		if job, err = back.Store.Job(t.Context(), job.ID); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	group.Wait()
	took := time.Since(begun).Round(time.Second)
	if err := back.Keeper.Mark(t.Context(), job); err != nil { // as the reaper does an hour later
		t.Error(err)
	}
	sum := meter.Total()
	per := 100 / float64(calls)
	t.Logf("LocalStack with dynoxide: %d chunks, %d calls, %s after %v", chunks, calls, job.Status, took)
	for _, line := range meter.Lines(calls) {
		t.Log(line)
	}
	t.Logf("per 100 calls: %.1f requests (limit 140), %.1f write units (limit 150), %.1f read units; $%.2f per million calls (limit $1.10)",
		float64(sum.Requests)*per, sum.Writes*per, sum.Reads*per, meter.Price()/float64(calls)*1e6)
	if job.Status != pipeline.JobCompleted {
		t.Errorf("the job is %s: %s", job.Status, job.Reason)
	}
	if chunks < 22 {
		return
	}
	mostRequests, mostWrites := 140.0, 150.0
	if took > slowMachine {
		mostRequests, mostWrites = 165, 165
	}
	if requests, writes := float64(sum.Requests)*per, sum.Writes*per; requests > mostRequests || writes > mostWrites {
		t.Errorf("%.1f requests and %.1f write units per 100 calls, want at most %.0f and %.0f in %v", requests, writes, mostRequests, mostWrites, took)
	}
}

func TestABucketOfSomebodyElseLeavesNothingHalfMade(t *testing.T) {
	taken := wiring.AWS{Stack: awstest.Stack(), Endpoint: awstest.Endpoint(awstest.All)}
	p := pipeline.DefaultPolicy()
	awstest.Made(t, wiring.CreateAWS(t.Context(), taken, p))
	t.Cleanup(func() { awstest.Removed(t, wiring.DeleteAWS(context.Background(), taken)) })

	t.Run("another account is told to choose another name, and got no tables", func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "000000000002") // LocalStack takes twelve digits for an account
		t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
		other := taken
		t.Cleanup(func() { awstest.Removed(t, wiring.DeleteAWS(context.Background(), other)) })
		if err := wiring.CreateAWS(t.Context(), other, p); err == nil || !strings.Contains(err.Error(), "--bucket") {
			t.Errorf("got error %v, want what to do about the name", err)
		}
		if _, err := wiring.OpenAWS(t.Context(), other, p); !errors.Is(err, pipeline.ErrNotMade) {
			t.Errorf("got error %v, want ErrNotMade", err)
		}
		other.Bucket = taken.Stack + "-mine"
		if err := wiring.CreateAWS(t.Context(), other, p); err != nil {
			t.Error(err)
		}
	})
}
