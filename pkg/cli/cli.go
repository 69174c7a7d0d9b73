// Package cli is what a person meets: the commands, their progress, their tables and their exit codes.
//
// It may decide how things are said, and how many worker processes a run has. It may not decide anything about jobs:
// each command is a call of a step, and what it prints comes from the store.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
	"holdfast/pkg/wiring/embedded"
)

// Exit codes.
const (
	exitCompleted   = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3
	exitCancelled   = 4
	exitInterrupted = 130

	exitFull = 74 // of a worker that found the disk full: its supervisor starts no other
	exitGone = 75 // of one whose queue was removed
)

// grammar is the command line.
type grammar struct {
	Store    string `help:"Folder of the embedded store: jobs, queues and stored replies. Several terminals may use it at once. Without it: .holdfast." default:"${store}" env:"${storeVar}" placeholder:"DIR"`
	Policy   string `help:"File (YAML or JSON) with retry and time settings that differ from the shipped ones." placeholder:"FILE"`
	FullSync bool   `help:"Wait for the disk at every commit: survive a power cut, not only kill -9."`
	MaxPages int    `hidden:"" help:"The most pages that the store file may have."`
	Tenant   string `help:"Whose jobs these are." default:"${tenant}" env:"${tenantVar}"`
	backendFlags

	Build kong.VersionFlag `name:"version" help:"Say which build this is."`

	Run     runCmd     `cmd:"" help:"Review a document from beginning to end: plan, workers, progress, report."`
	Submit  submitCmd  `cmd:"" help:"Submit a document and return; workers in other terminals do the work."`
	Worker  workerCmd  `cmd:"" help:"Work on submitted jobs until it is stopped. Ctrl-C drains: claims are released, nothing is lost."`
	Jobs    jobsCmd    `cmd:"" help:"List jobs."`
	Status  statusCmd  `cmd:"" help:"Show where a job stands."`
	Watch   watchCmd   `cmd:"" help:"Follow a job until it ends."`
	Pause   pauseCmd   `cmd:"" help:"Pause a job: calls in flight finish, no new one starts."`
	Resume  resumeCmd  `cmd:"" help:"Let a paused or planned job go on."`
	Cancel  cancelCmd  `cmd:"" help:"Cancel a job: calls in flight are aborted, what was answered is kept."`
	Redrive redriveCmd `cmd:"" help:"Give abandoned tasks, or done ones with failed cells, their attempts back."`
	Report  reportCmd  `cmd:"" help:"Write the report of a job that has ended."`
	Why     whyCmd     `cmd:"" help:"Tell every attempt and every try of a task, or what is missing from a job and why."`
	Letters lettersCmd `cmd:"" name:"dead-letters" help:"List the dead letters and what each means."`
	Admin   adminCmd   `cmd:"" help:"Make or remove what a deployment on AWS or LocalStack keeps its state in; carry jobs between backends."`
	Guard   guardCmd   `cmd:"" hidden:"" help:"Kill what commands of a worker left running when it died. Workers start it."`
	Version versionCmd `cmd:"" help:"Say which build this is."`
	Reap    reapCmd    `cmd:"" help:"Sweep once: move on what stalled. Workers do this themselves every second."`
}

// app is what the commands share.
type app struct {
	*grammar
	out, err io.Writer
	ctx      context.Context // done at the second signal: drop everything
	drain    context.Context // done at the first: finish what is in flight
	clock    pipeline.RealClock
	policy   pipeline.Policy
	program  Program
	calls    int // at once in this process, if it works
}

// codeError ends the program with a code; an empty text prints nothing more.
type codeError struct {
	code int
	text string
}

func (e codeError) Error() string { return e.text }

func usage(format string, args ...any) error {
	return codeError{exitUsage, fmt.Sprintf(format, args...)}
}

// Main runs the command line and returns the exit code.
func (p Program) Main(args []string, out, errOut io.Writer) int {
	p.Name = cmp.Or(p.Name, "holdfast")
	p.Description = cmp.Or(p.Description, "Holdfast fans one document out over thousands of LLM calls and loses none of them.")
	var g grammar
	exited := -1
	parser, err := kong.New(&g, kong.Name(p.Name), kong.Writers(out, errOut), kong.Description(p.Description), grammarVars(),
		kong.Exit(func(code int) { exited = code }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(errOut, p.Name+":", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help printed it
	}
	if err != nil {
		fmt.Fprintf(errOut, "%s: %v\nRun \"%s --help\" to see the commands.\n", p.Name, err, p.Name)
		return exitUsage
	}
	a := &app{grammar: &g, out: out, err: errOut, clock: pipeline.NewRealClock(), program: p}
	defer a.signals()()
	if err = a.meant(parsed.Path); err == nil {
		a.policy, err = a.loadPolicy()
	}
	if err == nil {
		err = parsed.Run(a)
	}
	return a.exit(err)
}

// grammarVars are the defaults that the grammar names.
func grammarVars() kong.Vars {
	return kong.Vars{
		"pipeline": shippedPipeline, "store": defaultStore, "stack": defaultStack, "storeVar": storeVar,
		"tenant": defaultTenant, "tenantVar": tenantVar, "version": version(),
	}
}

func (a *app) exit(err error) int {
	var code codeError
	switch {
	case err == nil:
		return exitCompleted
	case errors.As(err, &code):
		if code.text != "" {
			fmt.Fprintln(a.err, a.program.Name+":", code.text)
		}
		return code.code
	case errors.Is(err, pipeline.ErrNotMade):
		fmt.Fprintf(a.err, "%s: %v; %s\n", a.program.Name, err, a.unmadeText())
		return exitFailed
	case errors.Is(err, embedded.ErrFull):
		fmt.Fprintln(a.err, a.program.Name+":", a.fullText())
		return exitFailed
	default:
		fmt.Fprintln(a.err, a.program.Name+":", err)
		return exitFailed
	}
}

// signals makes the first interrupt a drain and the second the end.
func (a *app) signals() (stop func()) {
	ctx, drop := context.WithCancelCause(context.Background())
	drain, begin := context.WithCancelCause(ctx)
	a.ctx, a.drain = ctx, drain
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	var group pipeline.Group
	group.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-caught:
				if n > 0 {
					drop(pipeline.ErrDraining)
				}
				begin(pipeline.ErrDraining)
			}
		}
	})
	return func() {
		signal.Stop(caught)
		close(done)
		group.Wait()
		begin(nil)
		drop(nil)
	}
}

func (a *app) loadPolicy() (pipeline.Policy, error) {
	if a.Policy == "" {
		return pipeline.DefaultPolicy(), nil
	}
	p, err := config.LoadPolicy(a.Policy)
	if err != nil {
		return p, codeError{exitUsage, err.Error()}
	}
	return p, nil
}

// fullText is what a person does about a full disk.
func (a *app) fullText() string {
	return fmt.Sprintf("the disk that holds %s is full: nothing more was written. Free space there, then run the same again: what is stored is kept", a.Store)
}

// unmadeText is what a person does about a stack that is not there. What was deployed is not made by admin create, and
// what that made is in the way of a deployment: one or the other.
func (a *app) unmadeText() string {
	deploy := "npx cdk deploy, as in cdk/README.md"
	if a.Endpoint != "" {
		deploy = "make deploy-local " + shellWords([]string{"STACK=" + a.Stack})
	}
	return fmt.Sprintf("make its state, for workers of your own, with: %s, or deploy it with its functions (%s). Or see that --stack and AWS_REGION name the one that is meant", a.command("admin", "create"), deploy)
}

// goneText is what a person does about a queue that was removed under its workers.
func (a *app) goneText() string {
	return fmt.Sprintf("a queue of %s was removed while workers listened to it. Make it again with: %s, then run the same again: what is stored is kept", a.place(), a.command("admin", "create"))
}

// backend opens the backend; worker is who receives, if the command does; full is told of a full disk.
func (a *app) backend(worker string, full func(error)) (*wiring.Backend, error) {
	if a.isAWS() {
		b, err := wiring.OpenAWS(a.ctx, a.connected(), a.policy)
		if err != nil {
			return nil, err
		}
		return between.backend(b), nil
	}
	return a.embedded(worker, full)
}

// embedded opens the store in a folder.
func (a *app) embedded(worker string, full func(error)) (*wiring.Backend, error) {
	if info, err := os.Stat(a.Store); err == nil && !info.IsDir() {
		return nil, usage("%s is a file; --store names a folder", a.Store)
	}
	b, err := embedded.Open(a.ctx, embedded.Config{Dir: a.Store, Owner: worker, FullSync: a.FullSync, MaxPages: a.MaxPages, OnFull: full}, a.policy)
	if errors.Is(err, fs.ErrPermission) {
		return nil, usage("%s cannot be written: see who may write there, or name another folder with --store", a.Store)
	}
	if err != nil {
		return nil, err
	}
	return between.backend(b), nil
}

// between stands between the commands and what they work on: nothing, but for tests that kill a process at a write.
var between = struct {
	backend func(*wiring.Backend) *wiring.Backend
	model   func(pipeline.Model) pipeline.Model
}{
	backend: func(b *wiring.Backend) *wiring.Backend { return b },
	model:   func(m pipeline.Model) pipeline.Model { return m },
}

// storeless says that nothing was ever stored. What stands there and is no store is for the store to refuse.
func (a *app) storeless() bool {
	if a.isAWS() {
		return false
	}
	info, err := os.Stat(a.Store)
	return (err != nil || info.IsDir()) && !embedded.Exists(a.Store)
}

// existing is system for commands about what is there: they make no store.
func (a *app) existing() (*wiring.System, func(), error) {
	if a.storeless() {
		return nil, nil, codeError{exitUsage, fmt.Sprintf("there is no store in %s; name its folder with --store, or begin with: %s", a.Store, a.command("run", "FILE"))}
	}
	return a.system()
}

// system opens the store and the steps over it, for commands that do not work themselves.
func (a *app) system() (*wiring.System, func(), error) {
	b, err := a.backend("", nil)
	if err != nil {
		return nil, nil, err
	}
	s := wiring.New(b, wiring.Config{Tenant: a.Tenant, Worker: "cli", Policy: a.policy, Clock: a.clock})
	return s, func() { _ = b.Close() }, nil // every write was answered after its commit
}

func (e codeError) orNil() error {
	if e.code == exitCompleted {
		return nil
	}
	return e
}

func exitCode(status pipeline.JobStatus) int {
	switch status {
	case pipeline.JobCompleted:
		return exitCompleted
	case pipeline.JobPartial:
		return exitPartial
	case pipeline.JobCancelled:
		return exitCancelled
	default:
		return exitFailed
	}
}
