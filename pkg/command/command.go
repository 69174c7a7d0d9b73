// Package command is the handler exec: it runs a definition's command on each item, in a process group of its own, and
// leaves nothing running.
//
// It may decide: what an exit of the command means, and how much of what it prints is kept.
// It may not: run a command through a shell that its definition does not name, let one outlive its try, or, with a
// [Guard], its worker.
package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
)

// Exit codes with a meaning, as in sysexits.h. Every other one but 0 is a failed attempt.
const (
	exitData        = 65 // this item can never work
	exitUnavailable = 69 // what it needs is down, for everybody: nothing was done
	exitTemporary   = 75 // try again
)

// MaxOutput is how much a command may print as its answer, in bytes.
const MaxOutput = 256 << 10

// Run works on one item: the text is the command's standard input, and its argument where that says {}. What it prints
// is the answer. It implements [pipeline.Function].
//
// Where the worker is killed the kernel kills the command (on Linux); what that has started may run on: see [Guard].
func Run(ctx context.Context, item pipeline.WorkItem) (pipeline.Output, error) {
	return work(ctx, item, watch{started: func(int) func() { return func() {} }})
}

// tryName is the variable by which the processes of a try are known, those too that left its process group: timeout,
// setsid and the job control of a shell do.
const tryName = "HOLDFAST_RUN"

// watch is who is told of what runs, and by which marks it is known.
type watch struct {
	mark    string                        // the guard's, NAME=value, put into a command's environment; "" = nothing
	try     string                        // the same of one try, always
	started func(group int) (over func()) // is told of a process group, and by what it returns of its end
}

func work(ctx context.Context, item pipeline.WorkItem, watch watch) (pipeline.Output, error) {
	if len(item.Command) == 0 {
		return free, rejected(errors.New("the definition names no command"))
	}
	cmd, err := commandOf(item)
	if err != nil {
		return free, err
	}
	watch.try = tryName + "=" + rand.Text()
	cmd.Env = append(cmd.Env, watch.try)
	if watch.mark != "" {
		cmd.Env = append(cmd.Env, watch.mark)
	}
	r, err := run(ctx, cmd, item.Text, watch)
	if err != nil {
		return free, startFailure(item, err)
	}
	out := pipeline.Output{Text: r.out.text()}
	switch {
	case r.state.Success():
		return out, r.unusable()
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	}
	failure := r.failure(item.Text)
	if failure.Kind == pipeline.Throttled {
		out = free
	}
	return out, &pipeline.ModelError{Failure: failure}
}

// free is the output of a try that did nothing.
var free = pipeline.Output{Free: true}

// commandOf is the command of an item, not started.
func commandOf(item pipeline.WorkItem) (*exec.Cmd, error) {
	program, err := exec.LookPath(inDir(item.Dir, item.Command[0]))
	if errors.Is(err, exec.ErrDot) {
		err = fmt.Errorf("%s is in the current folder only: name it by its path", item.Command[0])
	}
	if err != nil {
		return nil, rejected(fmt.Errorf("the command cannot be run by this worker: %w", err))
	}
	cmd := exec.Command(program)
	cmd.Args[0] = item.Command[0]
	for _, arg := range item.Command[1:] {
		cmd.Args = append(cmd.Args, strings.ReplaceAll(arg, pipeline.Placeholder, item.Text))
	}
	cmd.Dir = item.Dir
	cmd.Env = append(os.Environ(),
		"HOLDFAST_JOB="+string(item.Job), "HOLDFAST_TASK="+string(item.Task),
		fmt.Sprintf("HOLDFAST_ATTEMPT=%d", item.Attempt), fmt.Sprintf("HOLDFAST_GENERATION=%d", item.Generation),
		fmt.Sprintf("HOLDFAST_TRY=%d", item.Try), fmt.Sprintf("HOLDFAST_ITEM=%d", item.Number))
	return cmd, nil
}

// inDir is a program that is named by a relative path, as seen from where it runs.
func inDir(dir, program string) string {
	if dir == "" || filepath.IsAbs(program) || !strings.ContainsRune(program, filepath.Separator) {
		return program
	}
	return filepath.Join(dir, program)
}

// startFailure is why a command could not be started: the item's fault, the configuration's, or nobody's.
func startFailure(item pipeline.WorkItem, err error) error {
	switch {
	case errors.Is(err, syscall.E2BIG), strings.ContainsRune(item.Text, 0):
		return pipeline.GiveUp(fmt.Errorf("the text cannot be an argument (%d bytes): %w; let the command read its standard input", len(item.Text), err))
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return pipeline.ComeLater(fmt.Errorf("this worker cannot start another process now: %w", err), 0)
	}
	return rejected(fmt.Errorf("the command cannot be run by this worker: %w", err))
}

// rejected is a failure of the configuration: no item's fault.
func rejected(err error) error {
	return &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Rejected, "%v", err), Err: err}
}

// result is what became of a command that was started.
type result struct {
	state    *os.ProcessState
	out, err *bounded
}

// unusable says why the answer of a command that succeeded cannot be kept; nil if it can.
func (r result) unusable() error {
	if r.out.over() {
		return pipeline.GiveUp(fmt.Errorf("the command printed more than %d KB: print less, or print where you have put it", MaxOutput>>10))
	}
	if text := r.out.text(); !utf8.ValidString(text) {
		return pipeline.GiveUp(errors.New("what the command printed is not UTF-8 text: encode it, or print where you have put it"))
	}
	return nil
}

// failure is what an exit that is no success means. In its cause {} stands for the item's text, so that the same reason
// of many items is one.
func (r result) failure(text string) pipeline.Failure {
	kind, how := pipeline.Broken, ""
	status, _ := r.state.Sys().(syscall.WaitStatus)
	switch code := r.state.ExitCode(); {
	case status.Signaled():
		how = fmt.Sprintf("the command died of %s", signalName(status.Signal()))
	case code == exitData:
		kind, how = pipeline.Invalid, fmt.Sprintf("the command exited with %d: this item can never work", code)
	case code == exitUnavailable:
		kind, how = pipeline.Throttled, fmt.Sprintf("the command exited with %d: what it needs is unavailable", code)
	case code == exitTemporary:
		kind, how = pipeline.Unavailable, fmt.Sprintf("the command exited with %d: try again", code)
	default:
		how = fmt.Sprintf("the command exited with %d", code)
	}
	said := r.err.lastLines()
	f := pipeline.Fail(kind, "%s%s", how, quoted(general(lastLine(said), text)))
	f.Code, f.Detail = fmt.Sprintf("exit %d", r.state.ExitCode()), pipeline.Cut(said, pipeline.MaxDetail)
	if status.Signaled() {
		f.Code = signalName(status.Signal())
	}
	return f
}

func signalName(s syscall.Signal) string { return fmt.Sprintf("signal %d (%s)", int(s), s) }

// general is what was said with {} where it names the item.
func general(said, text string) string {
	var out strings.Builder
	for text != "" {
		i := strings.Index(said, text)
		if i < 0 {
			break
		}
		before, _ := utf8.DecodeLastRuneInString(said[:i])
		after, _ := utf8.DecodeRuneInString(said[i+len(text):])
		out.WriteString(said[:i])
		if wordy(before) || wordy(after) { // a piece of a longer word
			out.WriteString(text)
		} else {
			out.WriteString(pipeline.Placeholder)
		}
		said = said[i+len(text):]
	}
	return out.String() + said
}

func wordy(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

func quoted(said string) string {
	if said == "" {
		return ""
	}
	return ": " + said
}
