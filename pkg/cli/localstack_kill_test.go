//go:build localstack

package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
)

// protocolWrites are all that a worker writes on the way of a small job, each by what its request contains.
var protocolWrites = []struct {
	name  string
	match pipelinetest.Matching
}{
	{"claim of the split", pipelinetest.OpCalls("UpdateItem", "claimed_at", "task#split")},
	{"manifest", pipelinetest.OpCalls("PutItem", `"manifest"`)},
	{"row of a chunk", pipelinetest.OpCalls("PutItem", "task#work#00000", "max_tries")},
	{"bell", pipelinetest.OpCalls("SendMessageBatch")},
	{"end of the split", pipelinetest.OpCalls("UpdateItem", "ended_by", "task#split")},
	{"claim of a chunk", pipelinetest.OpCalls("UpdateItem", "claimed_at", "task#work")},
	{"reservation", pipelinetest.OpCalls("UpdateItem", "open#")},
	{"renewal", pipelinetest.OpCalls("UpdateItem", "stage_at", "task#work")},
	{"reply", pipelinetest.OpCalls("PutItem", "reply#")},
	{"body of a stage", pipelinetest.OpCalls("PutItem", "task#work", "#gen#")},
	{"checkpoint", pipelinetest.OpCalls("UpdateItem", "body_", "task#work")},
	{"findings", pipelinetest.OpCalls("TransactWriteItems", "fed#")},
	{"journal", pipelinetest.OpCalls("PutItem", "task#work", "#tries#")},
	{"record of an attempt", pipelinetest.OpCalls("PutItem", "task#work", "#end#")},
	{"end of a chunk", pipelinetest.OpCalls("UpdateItem", "ended_by", "task#work")},
	{"row of the finalize", pipelinetest.OpCalls("PutItem", "task#finalize", "max_tries")},
	{"claim of the finalize", pipelinetest.OpCalls("UpdateItem", "claimed_at", "task#finalize")},
	{"result", pipelinetest.OpCalls("PUT Object")},
	{"end of the job", pipelinetest.OpCalls("PutItem", `"S":"job"`)},
	{"end of the finalize", pipelinetest.OpCalls("UpdateItem", "ended_by", "task#finalize")},
	{"delete of a message", pipelinetest.OpCalls("DeleteMessageBatch")},
}

// A worker process dies by SIGKILL before, or right after, each of its writes in turn. Nothing is lost, nothing is
// accepted twice, and only what was in flight is asked again.
func TestOnLocalStackKilledAtEveryWrite(t *testing.T) {
	const lanes = 3 // side by side, each with a stack of its own: most of the time is waiting for claims to lapse
	for lane := range lanes {
		d := newDesk(t, swiftPolicy)
		d.flags = []string{"--stack", d.backend.Stack}
		proxy := pipelinetest.NewProxy(t, d.backend.Endpoint)
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			s := d.on(t).system()
			for n := lane; n < len(protocolWrites); n += lanes {
				w := protocolWrites[n]
				for _, when := range []string{"before", "after"} {
					t.Run(when+" the "+w.name, func(t *testing.T) {
						d := d.on(t)
						d.ledger += "." + when + "-" + strings.ReplaceAll(w.name, " ", "-")
						party := "Reseller" + string(rune('A'+n)) + when // no two share a reply
						d.killedAt(s, proxy, w.match, when == "after", strings.ReplaceAll(contract(0, 2000), "Reseller", party))
					})
				}
			}
		})
	}
}

// on is the desk in a test within its own.
func (d *desk) on(t *testing.T) *desk {
	within := *d
	within.T = t
	return &within
}

const inFlight = 4

func (d *desk) killedAt(s *wiring.System, proxy *pipelinetest.Proxy, match pipelinetest.Matching, landed bool, text string) {
	d.Helper()
	code, out, errOut := d.holdfast("submit", d.doc("contract.txt", text), "--profile", "compact", "--start")
	if code != exitCompleted {
		d.Fatalf("submit: %s", errOut)
	}
	id := pipeline.JobID(strings.TrimSpace(out))
	worker := "victim-" + string(id)
	cmd := exec.Command(program(d.T), d.global([]string{"worker", "--pace", "150ms", "--concurrency", "4", "--ledger", d.ledger})...)
	cmd.Env = append(os.Environ(), "HOLDFAST_ENDPOINT="+proxy.URL, workerName+"="+worker)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	killed, exited := make(chan struct{}), make(chan struct{})
	proxy.Around(1, match, func(forward func()) (cut bool) {
		if landed {
			forward()
		}
		close(killed)
		_ = cmd.Process.Kill()
		return true
	})
	defer proxy.Clear()
	d.must(cmd.Start())
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	select {
	case <-killed:
		<-exited
	case <-exited:
		select {
		case <-killed:
		default:
			d.Fatalf("the worker ended by itself: %s", stderr.String())
		}
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-exited
		d.Fatalf("in a minute there was no such write\n%s", stderr.String())
	}
	stored := storedReplies(d, s)
	lines := len(d.entries())
	_, err := s.Reaper.Exited(context.Background(), worker)
	d.must(err)
	d.does(exitCompleted, "worker", "--idle", "--ledger", d.ledger)

	job, err := s.Backend.Store.Job(d.Context(), id)
	d.must(err)
	if job.Status != pipeline.JobCompleted {
		d.Fatalf("the job is %s (%s), want completed", job.Status, job.Reason)
	}
	result, err := view.Result(d.Context(), s, job)
	d.must(err)
	if c := result.Counts; c.Answered != c.Cells || c.Cells != 28 || len(result.Missing) > 0 {
		d.Errorf("%d of %d cells answered, %d missing; want all 28", c.Answered, c.Cells, len(result.Missing))
	}
	for _, e := range d.entries()[lines:] {
		if _, was := stored[e.Key]; was && e.Event == offline.Begin {
			d.Errorf("%s was stored when the worker died, and was asked again", e.Key)
		}
	}
	if asked := d.asked(); asked < 28 || asked > 28+inFlight {
		d.Errorf("%d calls were asked, want 28 and at most the %d that were in flight; %d were stored and %d lines were written when the worker died", asked, inFlight, len(stored), lines)
	}
	d.fedOnce(s, job)
}

// fedOnce checks that no finding stands twice in what the readers of the feed are left with.
func (d *desk) fedOnce(s *wiring.System, job pipeline.Job) {
	d.Helper()
	type place struct {
		task       pipeline.TaskID
		stage      int
		generation int64
	}
	seen := map[place]bool{}
	for after := int64(0); ; {
		groups, err := s.Backend.Store.Findings(d.Context(), job.ID, after, 100)
		d.must(err)
		if len(groups) == 0 {
			return
		}
		for _, g := range groups {
			at := place{g.Task, g.Stage, g.Generation}
			if seen[at] || g.Seq != after+1 {
				d.Errorf("group %d after %d, of %v, was there before: %v", g.Seq, after, at, seen[at])
			}
			seen[at], after = true, g.Seq
		}
	}
}
