// Package offline is a model without a network: rules and a small classifier that answer the calls of the contract
// review, a generic answer for every other call, and faults and deaths on command. It costs nothing, and the same
// request always gets the same answer, so a whole job can be run, killed and run again on any machine.
//
// The rules say how a clause stands to the playbook. The classifier (clauses.go, weights.go) was trained on contracts
// that lawyers marked, CUAD v1; it denies hits of rules that look like no clause, finds clauses that no rule matches,
// which are then reported without a judgement, and lifts or lowers scores. scripts/train makes its weights again, and
// scripts/eval measures the whole; its README says how good it is and where it is not.
//
// It may decide: what an answer says (answer.go and the rules), how long it takes and how it fails (this file and
// faults.go). It may not: know the document beyond the request, keep answers, retry, or pass itself off as anything
// but offline-rules. Its ledger (ledger.go) is the witness of what was asked; nothing here reads it back.
package offline

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// Markers in a document that make it a poison. They hold for every request whose shared part contains them.
const (
	PoisonKill = "HOLDFAST-POISON-KILL" // the worker dies
	PoisonHang = "HOLDFAST-POISON-HANG" // no answer until the context ends
)

// Name and Version are the model's; a changed rule is a new version, since stored replies are addressed by it.
const (
	Name    = "offline-rules-1"
	Version = "3"
)

// Config is how the model behaves. The zero value answers at once and never fails.
type Config struct {
	Seed     uint64         // of faults and latency
	Pace     time.Duration  // mean time of a call; each takes 50 to 150 % of it, by its key
	Faults   Faults         // shares of the tries that fail; see ParseFaults
	Ledger   string         // file that each try is written to; "" for none
	Worker   string         // who asks
	Price    pipeline.Price // what the calls would cost
	PricedAs string         // whose price it is
	Clock    pipeline.Clock // nil is this machine's
	Kill     func()         // ends the process; nil is SIGKILL to itself

	Classifier *Classifier // nil is the one that ships; the evaluation brings others
}

// Model answers by rules.
type Model struct {
	cfg         Config
	incarnation string // what a crash is drawn for
	ledger      *ledger

	mu    sync.Mutex
	tries map[pipeline.ReplyKey]int // of each key, by this process
}

var _ pipeline.Model = (*Model)(nil)

// New is a model. It opens the ledger with the first try.
func New(cfg Config) *Model {
	m := &Model{cfg: cfg, incarnation: cfg.Worker, tries: map[pipeline.ReplyKey]int{}}
	if m.cfg.Clock == nil {
		m.cfg.Clock = pipeline.NewRealClock()
	}
	if m.cfg.Kill == nil {
		m.cfg.Kill = killSelf
		m.incarnation += "/" + strconv.Itoa(os.Getpid())
	}
	if cfg.Ledger != "" {
		m.ledger = &ledger{path: cfg.Ledger, worker: cfg.Worker, process: os.Getpid(), nonce: nonce()}
	}
	return m
}

// killSelf is what the kernel does to a worker that is out of memory: no defer, no signal handler.
func killSelf() {
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Kill() == nil {
		select {} // the signal is on its way; nothing after it may run
	}
	os.Exit(137) // not killable: end without a word all the same
}

func nonce() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Info describes the model. Nothing is spent, whatever the price says.
func (m *Model) Info() pipeline.ModelInfo {
	return pipeline.ModelInfo{
		Name: Name, Version: Version, Free: true, Price: m.cfg.Price, PricedAs: m.cfg.PricedAs,
		ContextTokens: 200_000, MaxOutput: 4096,
	}
}

// Close closes the ledger.
func (m *Model) Close() error {
	if m.ledger == nil {
		return nil
	}
	return m.ledger.close()
}

// Complete asks once. The ledger says so before anything is computed and again right before it returns; a death in
// between leaves the first line alone.
func (m *Model) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	call, err := m.begin(r.Key)
	if err != nil {
		return pipeline.Response{}, err
	}
	response, fault, err := m.try(ctx, r)
	if errors.Is(err, errKilled) {
		return pipeline.Response{}, killed()
	}
	if err := m.end(call, r.Key, fault, err); err != nil {
		return pipeline.Response{}, err
	}
	return response, err
}

// errKilled says that Kill was called and came back, which only a test's does.
var errKilled = errors.New("the worker was killed")

func killed() error {
	return &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Ambiguous, "the worker died before the answer"), Err: errKilled}
}

// try is one sending: poison first, then the fault that was drawn for it, then the answer.
func (m *Model) try(ctx context.Context, r pipeline.Request) (pipeline.Response, Fault, error) {
	fault := m.pick(r.Key, m.count(r.Key))
	switch {
	case strings.Contains(r.Shared, PoisonKill):
		fault = Crash
	case strings.Contains(r.Shared, PoisonHang):
		fault = Hang
	}
	switch fault {
	case Crash:
		m.cfg.Kill()
		return pipeline.Response{}, fault, errKilled
	case Hang:
		<-ctx.Done()
		return pipeline.Response{}, fault, context.Cause(ctx)
	}
	failed, fails := failures[fault]
	if !fails || failed.slow {
		if err := m.cfg.Clock.Sleep(ctx, m.latency(r.Key)); err != nil {
			return pipeline.Response{}, "", err
		}
	}
	if fails {
		return pipeline.Response{}, fault, failed.err(r)
	}
	response, err := m.respond(r, fault)
	return response, fault, err
}

// count is which try of this key it is, in this process; the first is 1.
func (m *Model) count(key pipeline.ReplyKey) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries[key]++
	return m.tries[key]
}

// latency is 50 to 150 % of the pace, by the key.
func (m *Model) latency(key pipeline.ReplyKey) time.Duration {
	return time.Duration(float64(m.cfg.Pace) * (0.5 + chance(m.cfg.Seed, "pace", string(key))))
}

func (m *Model) respond(r pipeline.Request, fault Fault) (pipeline.Response, error) {
	body, err := answerBy(m.cfg.Classifier, r)
	if err != nil {
		failed := pipeline.Fail(pipeline.Invalid, "the offline model cannot answer this request: %v", err)
		return pipeline.Response{}, &pipeline.ModelError{Failure: failed, Err: err}
	}
	response := pipeline.Response{Text: body, Stop: pipeline.StopEnd, RequestID: "offline-" + pipeline.Cut(string(r.Key), 12)}
	switch fault {
	case Malformed:
		response.Text = "Here is the answer: " + pipeline.Cut(body, len(body)-1)
	case Truncated:
		response.Text, response.Stop = pipeline.Cut(body, len(body)/2), pipeline.StopMaxTokens
	}
	response.Usage = pipeline.Usage{Input: r.InputTokens(), Output: outputTokens(response.Text)}
	return response, nil
}
