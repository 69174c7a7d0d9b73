package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"holdfast/pkg/ingest"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelines"
	"holdfast/pkg/submit"
	"holdfast/pkg/view"
)

// readerCache is the folder for the compiled reader of PDF; empty if the user has none.
func readerCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "holdfast")
}

// slowReading is after how long a person is told what takes so long.
const slowReading = 1500 * time.Millisecond

var errSlow = errors.New("reading takes long")

// readable reads the document as a worker will, so that one that cannot be read is told at once, and tells what of it
// is not read.
func (a *app) readable(file string, source []byte) (pipeline.Document, error) {
	slow, done := a.clock.WithTimeout(a.drain, slowReading, errSlow)
	defer done()
	defer context.AfterFunc(slow, func() {
		if errors.Is(context.Cause(slow), errSlow) {
			fmt.Fprintf(a.err, "Reading %s (the first PDF takes some seconds longer: its reader is compiled, once) ...\n", filepath.Base(file))
		}
	})()
	d, err := ingest.New(ingest.Config{Clock: a.clock, Cache: readerCache()}).Read(a.drain, filepath.Base(file), source)
	switch {
	case errors.Is(err, pipeline.ErrDraining):
		return d, codeError{exitInterrupted, "stopped before anything was submitted"}
	case err != nil:
		return d, codeError{exitUsage, err.Error()}
	}
	for _, note := range d.Origin.Notes {
		fmt.Fprintf(a.err, "%s: %s\n", filepath.Base(file), note)
	}
	return d, nil
}

// documentFlags are what run and submit share.
type documentFlags struct {
	File     string `arg:"" help:"The document: DOCX, PDF or plain text (UTF-8, UTF-16 or Windows-1252)."`
	Pipeline string `help:"Pipeline to follow: a shipped one, or a YAML file of your own." default:"${pipeline}" placeholder:"NAME|FILE"`
	Profile  string `help:"Profile of the pipeline; without it, its first." placeholder:"NAME"`
	MaxCost  string `name:"max-cost" help:"Ceiling below the worst case, in dollars, e.g. 2.50." placeholder:"USD"`
	Fresh    bool   `help:"Begin a new run and use no stored replies."`
	itemFlags
}

// shippedPipeline is the one that is followed unless another is named.
const shippedPipeline = "contract-review"

// submission reads the document and the definition.
func (f documentFlags) submission(a *app, model pipeline.ModelInfo) (submit.Submission, error) {
	source, err := a.readDocument(f.File)
	if err != nil {
		return submit.Submission{}, err
	}
	read, err := a.readable(f.File, source)
	if err != nil {
		return submit.Submission{}, err
	}
	definition, err := f.follow(a.program)
	if err != nil {
		return submit.Submission{}, err
	}
	if err := definition.Chunking.CheckLines(source, read); err != nil {
		return submit.Submission{}, usage("%s: %v", filepath.Base(f.File), err)
	}
	if err := definition.CheckModel(model); err != nil {
		return submit.Submission{}, usage("%v", err)
	}
	model.Placeholders = offline.Placeholders(definition)
	ceiling, err := parseMoney(f.MaxCost)
	if err != nil {
		return submit.Submission{}, usage("--max-cost: %v", err)
	}
	return submit.Submission{
		Name: filepath.Base(f.File), Source: source, Definition: definition, Model: model, MaxCost: ceiling, Hold: true, Fresh: f.Fresh,
	}, nil
}

// follow is the definition of the job.
func (f documentFlags) follow(p Program) (pipeline.Definition, error) {
	if f.set() {
		return f.itemFlags.definition(p)
	}
	d, err := pipelines.Open(f.Pipeline, f.Profile)
	if err != nil {
		return d, codeError{exitUsage, err.Error()}
	}
	return d, nil
}

// readDocument reads the whole file.
func (a *app) readDocument(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usage("there is no file %s; name the document, e.g.: %s", path, a.command("run", "contract.txt"))
	case err == nil && info.IsDir():
		return nil, usage("%s is a folder; name the document in it", path)
	case err == nil && info.Size() > ingest.Limit:
		return nil, usage("%s is too large: it has %d MB, the limit is %d MB; split it into several documents", path, info.Size()>>20, ingest.Limit>>20)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("read the document: %v", err)
	}
	return source, nil
}

// follow shows the progress until the job has ended, killing the workers that it was asked to kill.
func (r *run) follow() error {
	definition, err := view.Definition(r.a.ctx, r.s, r.job)
	if err != nil {
		return err
	}
	killed := 0
	for !r.job.Status.Ended() {
		p, err := r.look(&definition)
		if err != nil {
			return err
		}
		if r.cmd.Workers > 0 {
			r.tally.over(&p)
		}
		if killed < r.cmd.Kill && p.Cells > 0 && p.Done*(r.cmd.Kill+1) >= p.Cells*(killed+1) {
			if name := r.boss.kill(); name != "" {
				killed++
				r.screen.say("  SIGKILL to %s, in the middle of its calls", name)
			}
		}
		r.screen.show(p, r.plan.Model)
	}
	return nil
}

// parseMoney reads dollars; "" is 0.
func parseMoney(text string) (pipeline.Money, error) {
	if text == "" {
		return 0, nil
	}
	const most = 1e9 // what an amount in our unit can hold
	dollars, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(dollars > 0 && dollars <= most) {
		return 0, fmt.Errorf("%q is no amount of dollars; write e.g. 2.50", text)
	}
	amount := pipeline.Money(dollars * float64(pipeline.Dollar))
	if amount == 0 { // which would be none
		return 0, fmt.Errorf("%q is less than can be counted; the least is $%.9f", text, 1/float64(pipeline.Dollar))
	}
	return amount, nil
}
