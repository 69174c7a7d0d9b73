package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/submit"
	"holdfast/pkg/wiring"
)

type runCmd struct {
	documentFlags
	modelFlags
	Concurrency int    `help:"Calls, or commands, in flight at once, over all workers; 0 = 64, and for commands one for each processor." default:"0"`
	Workers     int    `help:"Worker processes. A dead one is replaced, and its claims are expired at once. 0, with --backend aws: the stack's own do the work." default:"1"`
	Out         string `help:"Folder for report.html, report.md, findings.json and answers.jsonl. Without it: holdfast-out/JOB." placeholder:"DIR"`
	JSON        bool   `name:"json" help:"Print one JSON object at the end, and progress on standard error."`
	Yes         bool   `help:"Start without asking, however much the worst case is."`
	Kill        int    `help:"Kill so many workers with SIGKILL on the way, to see what that costs." default:"0"`
}

// Run takes a document from beginning to end.
func (c *runCmd) Run(a *app) error {
	c.Concurrency = c.atOnce(c.Concurrency)
	least := 1
	if a.isAWS() {
		least = 0
	}
	if c.Workers < least || c.Concurrency < c.Workers {
		return usage("--workers (%d) must be at least %d and at most --concurrency (%d)", c.Workers, least, c.Concurrency)
	}
	if err := c.check(c.Pipeline, c.Profile, c.modelFlags); err != nil {
		return err
	}
	model, err := c.model("cli", a.clock, nil)
	if err != nil {
		return err
	}
	sub, err := c.submission(a, model.Info())
	if err != nil {
		return err
	}
	if err := writable(reportsIn(c.Out)); err != nil {
		return err
	}
	s, closeStore, err := a.system()
	if err != nil {
		return err
	}
	defer closeStore()
	job, stood, err := s.Submitter.Submit(a.ctx, sub)
	if err != nil {
		return err
	}
	r := &run{cmd: c, a: a, s: s, job: job, stood: stood, looks: a.looks(), began: time.Now()}
	r.screen = newScreen(a, c.JSON)
	return r.finish(r.work(worksOn(sub.Definition, model.Info())))
}

// run is one run of a job, from its submission to its report.
type run struct {
	cmd    *runCmd
	a      *app
	s      *wiring.System
	job    pipeline.Job
	stood  bool // the job was there before
	plan   pipeline.Plan
	boss   *supervisor
	screen *screen
	tally  tally
	looks  *looks
	seen   progress         // by the last look that the store had time for
	at     pipeline.Instant // of it
	began  time.Time
	ledger string
}

// errInterrupted says that a person stopped the run before the job ended.
var errInterrupted = errors.New("interrupted")

// work sees the job to its end.
func (r *run) work(by string) error {
	if r.job.Status.Ended() {
		return nil
	}
	if r.job.Status == pipeline.JobPaused {
		return codeError{exitFailed, fmt.Sprintf("job %s is paused; let it go on with: %s, then run the same again", r.job.ID, r.a.command("resume", string(r.job.ID)))}
	}
	r.screen.say("%s", r.opening(by))
	if err := r.startWorkers(); err != nil {
		return err
	}
	defer r.boss.stop(r.a.policy.LongestTry() + 10*time.Second) // its workers' grace, and the time to end their claims
	if err := r.planned(); err != nil {
		return err
	}
	return r.follow()
}

func (r *run) opening(by string) string {
	was := "submitted as"
	if r.stood {
		was = "goes on as"
	}
	workers := pipeline.CountOf(r.cmd.Workers, "worker process", "worker processes")
	if r.cmd.Workers == 0 {
		by, workers = "the model of the stack", "the workers of the stack"
	}
	return fmt.Sprintf("%s %s job %s: pipeline %s, %s, %s.", r.job.Name, was, r.job.ID, r.job.Pipeline, by, workers)
}

func (r *run) startWorkers() error {
	flags := r.cmd.modelFlags
	if flags.Ledger == "" {
		// The same document is a job of the same id on every backend, and again where its data was lost.
		flags.Ledger = filepath.Join(r.a.Store, "ledger", fmt.Sprintf("%s-%d.log", r.job.ID, r.job.CreatedAt))
	}
	ledger, err := filepath.Abs(flags.Ledger)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(ledger), 0o755); err != nil {
		return fmt.Errorf("make the ledger's folder: %w", err)
	}
	flags.Ledger, r.ledger = ledger, ledger
	calls := max(1, r.cmd.Concurrency/max(1, r.cmd.Workers))
	args := append(r.a.globalArgs(), "worker", "--supervised", "--concurrency", fmt.Sprint(calls))
	if r.cmd.Exec != "" {
		args = append(args, "--allow-exec")
	}
	if r.cmd.set() {
		args = append(args, "--claims", fmt.Sprint(calls)) // each has one try in flight at most
	} else if r.cmd.Workers > 1 {
		args = append(args, "--claims", fmt.Sprint(max(2, calls/2))) // no worker takes the chunks that the next one has the time for
	}
	r.tally.job = r.job.ID
	r.boss = newSupervisor(r.a, r.s, append(args, flags.args()...), r.tally.add)
	return r.boss.start(r.cmd.Workers)
}

// globalArgs are the global flags again, for a worker process.
func (a *app) globalArgs() []string {
	args := []string{"--store", a.Store, "--tenant", a.Tenant}
	if a.Policy != "" {
		args = append(args, "--policy", a.Policy)
	}
	if a.FullSync {
		args = append(args, "--full-sync")
	}
	args = append(args, a.backendFlags.args()...)
	if a.MaxPages > 0 {
		args = append(args, "--max-pages", fmt.Sprint(a.MaxPages))
	}
	return args
}

// planned waits for the split, prints the plan, and starts the job.
func (r *run) planned() error {
	for r.job.Status == pipeline.JobPlanned {
		split, err := r.s.Backend.Store.Task(r.a.ctx, pipeline.Ref{Job: r.job.ID, ID: pipeline.SplitTask})
		if _, err := r.looks.took(err, r.a.clock.Mono()); err != nil {
			return err
		}
		if split.Status == pipeline.TaskDone {
			break
		}
		if _, err := r.look(nil); err != nil {
			return err
		}
	}
	if r.job.Status.Ended() {
		return nil // it could not be split; finish says why
	}
	r.sayPlanning()
	plan, err := r.s.Submitter.Plan(r.a.drain, r.job.ID)
	if r.a.drain.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return fmt.Errorf("plan job %s: %w", r.job.ID, err)
	}
	r.plan = plan
	if r.job.Status != pipeline.JobPlanned {
		return r.goesOn()
	}
	r.screen.lines(indented("  ", submit.Lines(plan)...)...)
	if err := r.agreed(os.Stdin); err != nil {
		return err
	}
	if r.job, err = r.s.Submitter.Start(r.a.drain, r.job.ID); r.a.drain.Err() != nil {
		return errInterrupted
	}
	return err
}

// goesOn says what is left of the money of a job that began before: its plan may have been raised since.
func (r *run) goesOn() error {
	budget, err := r.s.Backend.Store.Budget(r.a.ctx, r.job.ID)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil // nobody has needed any yet
	}
	if err != nil {
		return fmt.Errorf("read the budget of job %s: %w", r.job.ID, err)
	}
	r.screen.say("  began before: %s of a ceiling of %s spent or reserved so far", budget.Ceiling-budget.Remaining, budget.Ceiling)
	return nil
}

// look waits a moment and reads the job again, and with its definition how far it is: as it was seen last, if the store
// has no time.
func (r *run) look(definition *pipeline.Definition) (p progress, err error) {
	if err := r.a.clock.Sleep(r.a.drain, r.looks.wait); err != nil {
		return p, errInterrupted
	}
	var job pipeline.Job
	if definition == nil {
		job, err = r.s.Backend.Store.Job(r.a.ctx, r.job.ID)
	} else {
		job, p, err = r.a.watched(r.s, r.job.ID, *definition)
	}
	busy, err := r.looks.took(err, r.a.clock.Mono())
	switch {
	case err != nil:
		return p, fmt.Errorf("look at job %s: %w", r.job.ID, err)
	case busy:
		p = r.seen
		p.AsOf = r.at
	default:
		r.job, r.seen, r.at = job, p, r.a.clock.Now()
	}
	return p, r.boss.err()
}

// finish says how it went and writes the report. It turns the job's end into the exit code.
func (r *run) finish(err error) error {
	r.screen.clear()
	ctx := context.WithoutCancel(r.a.ctx)
	if errors.Is(err, errDeclined) {
		r.screen.say("Not started; nothing is spent. Start it with: %s, or run the same with --yes, or with a lower --max-cost and --fresh", r.a.command("resume", string(r.job.ID)))
		return codeError{code: exitInterrupted}
	}
	if errors.Is(err, errInterrupted) {
		r.screen.say("\nStopped: claims are released, every answer is kept. Go on with the same command; see it with: %s", r.a.command("status", string(r.job.ID)))
		return codeError{code: exitInterrupted}
	}
	if err != nil {
		return err
	}
	o, err := r.a.outcomeOf(ctx, r.s, r.job)
	if err != nil {
		return err
	}
	o.Stood = r.stood && r.boss == nil
	if r.boss != nil {
		o.Killed = r.boss.deaths
	}
	if err := o.readLedger(ctx, r.s, r.ledger); err != nil {
		return err
	}
	if o.Files, err = r.a.writeReport(ctx, r.s, o.Result, reportOf(r.cmd.Out, r.job.ID)); err != nil {
		return fmt.Errorf("%w; job %s is %s, and its report can be written again: %s", err, r.job.ID, r.job.Status, r.a.command("report", string(r.job.ID)))
	}
	if r.cmd.JSON {
		return o.json(r.a.out)
	}
	r.screen.lines(o.lines()...)
	if asked, err := parseMoney(r.cmd.MaxCost); err == nil && asked > 0 && asked != r.job.MaxCost && o.Stood && r.job.Status == pipeline.JobPartial {
		r.screen.say("--max-cost %s changes nothing: the job has ended. Redrive it within that: %s", r.cmd.MaxCost, r.a.command("redrive", string(r.job.ID), "--max-cost", r.cmd.MaxCost))
	}
	return codeError{code: exitCode(r.job.Status)}.orNil()
}
