package scale

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// What one partition of a DynamoDB table takes in a second, on demand or provisioned:
// docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html. The burst that an idle
// partition saves up, and the splitting of hot ones, are left out: a deployment must not need them.
const (
	partitionWrites = 1000.0
	partitionReads  = 3000.0
)

// units is what a request costs.
type units struct{ writes, reads float64 }

// price is in dollars, on demand in us-east-1, November 2026: aws.amazon.com/dynamodb/pricing/on-demand.
func (u units) price() float64 { return (0.625*u.writes + 0.125*u.reads) / 1e6 }

// written is what writing so many bytes costs.
func written(bytes int) float64 { return max(1, math.Ceil(float64(bytes)/1024)) }

// readConsistently is what reading so many bytes costs.
func readConsistently(bytes int) float64 { return max(1, math.Ceil(float64(bytes)/4096)) }

// readEventually costs half.
func readEventually(bytes int) float64 { return readConsistently(bytes) / 2 }

// part is the units of one partition.
type part struct {
	name string // "rows job#…", "due#0": the class is what stands before the mark #
	units
}

func (p part) class() string {
	class, _, _ := strings.Cut(p.name, "#")
	return class
}

// meter counts the units of every partition, second by second.
type meter struct {
	clock pipeline.Clock

	mu        sync.Mutex
	second    int64
	now       map[string]units // of this second
	peaks     map[string]units // by class, the most of one partition in one second
	total     units
	requests  int
	throttled map[string]int // by class
	ops       map[string]int // that were charged, by their names
	calls     map[string]int // that came to the store behind
}

func newMeter(clock pipeline.Clock) *meter {
	return &meter{
		clock: clock, now: map[string]units{}, peaks: map[string]units{}, throttled: map[string]int{}, ops: map[string]int{}, calls: map[string]int{},
	}
}

// made counts a call, so that none goes uncharged.
func (m *meter) made(ctx context.Context, op pipelinetest.Op, do func(context.Context) error) error {
	m.mu.Lock()
	m.calls[op.Name]++
	m.mu.Unlock()
	return do(ctx)
}

// latency is how long a request takes, so that whoever makes one after the other is no faster here than there.
const latency = 5 * time.Millisecond

// charge takes a request's units from its partitions, or from none: then it is throttled.
func (m *meter) charge(op string, parts ...part) error {
	time.Sleep(latency) // in virtual time
	m.mu.Lock()
	defer m.mu.Unlock()
	if second := int64(m.clock.Now()) / 1000; second != m.second {
		m.second = second
		clear(m.now)
	}
	m.requests++
	m.ops[op]++
	for _, p := range parts {
		if have := m.now[p.name]; have.writes+p.writes > partitionWrites || have.reads+p.reads > partitionReads {
			m.throttled[p.class()]++
			return fmt.Errorf("%s: partition %s has no units left in this second: %w", op, p.name, pipeline.ErrBusy)
		}
	}
	for _, p := range parts {
		m.book(p)
	}
	return nil
}

func (m *meter) book(p part) {
	have := m.now[p.name]
	have.writes += p.writes
	have.reads += p.reads
	m.now[p.name] = have
	peak := m.peaks[p.class()]
	m.peaks[p.class()] = units{max(peak.writes, have.writes), max(peak.reads, have.reads)}
	m.total.writes += p.writes
	m.total.reads += p.reads
}

// index counts what a write that landed cost in the due index: one that is refused costs nothing there. Over the limit
// it is counted as throttled, although it has landed here.
func (m *meter) index(p part) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.book(p)
	if m.now[p.name].writes > partitionWrites {
		m.throttled[p.class()]++
	}
}

// The sizes of rows as DynamoDB counts them: names and values, a number half a byte a digit and one more. The columns
// are those of pkg/dynamostore.

func number(n int64) int { return (len(strconv.FormatInt(n, 10))+1)/2 + 1 }

// rowSize is the size of a task's row.
func rowSize(t pipeline.Task) int {
	size := len("pk") + len("job#") + len(t.Job) + len("sk") + len("task#") + len(t.ID)
	for _, column := range []struct{ name, text string }{
		{"tenant", t.Tenant},
		{"status", string(t.Status)},
		{"claimed_by", t.ClaimedBy},
		{"claim_id", t.ClaimID},
		{"ended_by", t.EndedBy},
		{"due_shard", "0"},
	} {
		size += len(column.name) + len(column.text)
	}
	for _, column := range []struct {
		name string
		n    int64
	}{
		{"generation", t.Generation},
		{"attempts", int64(t.Attempts)},
		{"deferrals", int64(t.Deferrals)},
		{"losses", int64(t.Losses)},
		{"stages", int64(t.Stages)},
		{"accepted", int64(t.Accepted)},
		{"claimed_at", int64(t.ClaimedAt)},
		{"expires_at", int64(t.ExpiresAt)},
		{"stage", int64(t.Stage)},
		{"stage_at", int64(t.StageAt)},
		{"answers", int64(t.Answers)},
		{"allowed", int64(t.Allowed)},
		{"max_tries", int64(t.MaxTries)},
		{"ready_at", int64(t.ReadyAt)},
		{"due_at", int64(t.DueAt)},
		{"ring", t.Ring},
		{"rings", int64(t.Rings)},
	} {
		size += len(column.name) + number(column.n)
	}
	for n, generation := range t.Bodies {
		size += len("body_") + n/10 + 1 + number(generation)
	}
	size += len("reason") + len("buried") + 1
	if !t.Reason.None() {
		size += len(pipeline.Encode(t.Reason))
	}
	return size
}

func rowsSize(rows []pipeline.Task) (size int) {
	for _, row := range rows {
		size += rowSize(row)
	}
	return size
}

// jobSize is the size of a job's row: its body and the columns beside it.
func jobSize(j pipeline.Job) int { return len(pipeline.Encode(j)) + 2*len(j.ID) + 100 }

// budgetSize is the size of a budget's row: a column for each open reservation.
func budgetSize(b pipeline.Budget) int {
	size := 100
	for _, r := range b.Open {
		size += len(fmt.Sprintf("open#%d#%d#%d#%s", r.Generation, r.Stage, r.Part, r.Task)) + number(int64(r.Amount))
	}
	return size
}
