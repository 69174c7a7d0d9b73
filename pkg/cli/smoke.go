package cli

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"holdfast/pkg/awscost"
	"holdfast/pkg/config"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
	"holdfast/pkg/smoke"
	"holdfast/pkg/wiring"
)

type smokeCmd struct {
	Patience time.Duration `help:"How long it waits for each thing that has to happen." default:"5m"`
	Beside   bool          `help:"Begin although others' jobs are open. They share the stack's workers with it for as long."`
	JSON     bool          `name:"json" help:"Print one JSON object at the end, and the lines on standard error."`
}

// A canary's documents are small: so many bytes of the sample contract, in three chunks of so many tokens.
const (
	smokeText  = 9000
	smokeChunk = 700
)

// smokeModel is the offline model, as canary and its processes ask it.
func smokeModel(worker string, pace time.Duration, ledger string, price pipeline.Price, clock pipeline.Clock) pipeline.Model {
	return between.model(offline.New(offline.Config{Seed: 1, Pace: pace, Worker: worker, Ledger: ledger, Price: price, Clock: clock, Kill: suicide}))
}

// dearestPrice is the highest of the price list: nothing is spent, but whatever the stack's workers count their calls at,
// the canary's ceilings cover it.
func dearestPrice() (most pipeline.Price, err error) {
	models, err := config.Models()
	for _, m := range models {
		price := m.Price()
		most.Input, most.Output = max(most.Input, price.Input), max(most.Output, price.Output)
	}
	return most, err
}

// Run is one canary.
func (c *smokeCmd) Run(a *app) error {
	if !a.isAWS() {
		return usage("a canary is for a stack on AWS or LocalStack: %s --backend aws --stack NAME admin smoke", a.typed())
	}
	if c.Patience <= 0 {
		return usage("--patience %v: it must be more than 0, or nothing could happen", c.Patience)
	}
	definition, err := pipelines.Load(shippedPipeline, "compact")
	if err != nil {
		return err
	}
	definition.Chunking.Target, definition.Chunking.Max = smokeChunk, smokeChunk*4/3
	dearest, err := dearestPrice()
	if err != nil {
		return err
	}
	ledgers, err := os.MkdirTemp("", "holdfast-smoke-")
	if err != nil {
		return fmt.Errorf("make a folder for the ledgers of the canary's processes: %w", err)
	}
	defer os.RemoveAll(ledgers)
	meter := &awscost.Meter{}
	b, err := a.metered(meter)
	if err != nil {
		return err
	}
	defer b.Close()
	nonce := smokeNonce()
	lines := a.out
	if c.JSON {
		lines = a.err
	}
	hatch := &hatchery{a: a, ledgers: ledgers}
	fmt.Fprintf(lines, "canary %s: %s, as tenant %s\n", nonce, a.place(), smoke.Tenant)
	report, err := smoke.Run(a.ctx, a.drain, smoke.Config{
		Backend: b, Policy: a.policy, Clock: a.clock, Definition: definition, Text: smokeDocument(), Poison: offline.PoisonKill,
		Model: func(worker string, pace time.Duration) pipeline.Model {
			return smokeModel(worker, pace, "", dearest, a.clock)
		},
		Start: hatch.start, Nonce: nonce, Patience: c.Patience, Beside: c.Beside,
		Say: func(l smoke.Line) {
			fmt.Fprintf(lines, "%8s  %-13s %-6s  %s\n", fmt.Sprintf("%.1fs", l.At.Seconds()), l.Check, l.Verdict, l.Text)
		},
	})
	if err != nil {
		return err
	}
	spent := hatch.spent()
	spent.add(billOf(meter))
	if err := c.tell(a, report, spent, hatch.made); err != nil {
		return err
	}
	switch {
	case a.drain.Err() != nil:
		return codeError{code: exitInterrupted}
	case !report.Held():
		return codeError{exitFailed, fmt.Sprintf("%s did not keep what is promised: see the lines that say %s", a.place(), smoke.Broken)}
	}
	return nil
}

// metered opens the stack with a meter before it.
func (a *app) metered(meter *awscost.Meter) (*wiring.Backend, error) {
	where := a.connected()
	where.Transport = meter.Around
	b, err := wiring.OpenAWS(a.ctx, where, a.policy)
	if err != nil {
		return nil, err
	}
	return between.backend(b), nil
}

// smokeDocument is the beginning of the sample contract, up to the end of a paragraph.
func smokeDocument() string {
	text := pipelines.SampleContract()[:smokeText]
	return text[:strings.LastIndex(text, "\n\n")+1]
}

func smokeNonce() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails: it ends the program first
	return hex.EncodeToString(b[:])
}

// tell says how it went in all.
func (c *smokeCmd) tell(a *app, r smoke.Report, spent bill, processes int) error {
	if c.JSON {
		return a.printJSON(struct {
			smoke.Report
			Held  bool `json:"held"`
			Spent bill `json:"spent"`
		}{r, r.Held(), spent})
	}
	held, all := 0, 0
	for _, line := range r.Lines {
		switch line.Verdict {
		case smoke.Held:
			held, all = held+1, all+1
		case smoke.Broken:
			all++
		}
	}
	fmt.Fprintf(a.out, "%d of %d held, in %v\n", held, all, r.Took.Round(100*time.Millisecond))
	fmt.Fprintf(a.out, "done by the stack's own workers: %s, %s, %v of their time; by the canary: %s and, in its own process, the race and the cancelled job\n",
		pipeline.CountOf(r.Attempts, "attempt", "attempts"), pipeline.CountOf(r.Calls, "call", "calls"), r.Busy.Round(100*time.Millisecond),
		pipeline.CountOf(processes, "worker process", "worker processes"))
	fmt.Fprintf(a.out, "cost: $0 of a model; %s requests of the canary and its processes, %.0f write and %.0f read units, $%.4f at AWS's list price; what the stack's workers asked of AWS, and their time, is on its bill and not in this\n",
		pipeline.Count(spent.Requests), spent.Writes, spent.Reads, spent.Dollars)
	if r.Left > 0 {
		fmt.Fprintf(a.out, "left: %s, see above\n", pipeline.CountOf(r.Left, "job", "jobs"))
		return nil
	}
	fmt.Fprintln(a.out, "left: no row, item, answer, message or dead letter. A bucket with versions keeps the bytes of what was removed for as long as its rules say, tables' backups reach as far as theirs; logs and metrics stay")
	return nil
}
