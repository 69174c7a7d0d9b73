package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/report"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
)

type reportCmd struct {
	jobArg
	Out     string `help:"Folder for report.html, report.md, findings.json and answers.jsonl. Without it: holdfast-out/JOB." placeholder:"DIR"`
	JSON    bool   `name:"json" help:"Print findings.json to standard output instead."`
	Answers bool   `help:"Print answers.jsonl to standard output instead: one line for each answer that is no finding."`
}

// Run writes the report again.
func (c *reportCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		if !job.Status.Ended() {
			return codeError{exitFailed, fmt.Sprintf("job %s is %s; its report is made when it has ended: %s", job.ID, job.Status, a.command("watch", string(job.ID)))}
		}
		o, err := a.outcomeOf(a.ctx, s, job)
		if err != nil {
			return err
		}
		if c.JSON || c.Answers {
			data, err := a.reportData(a.ctx, s, o.Result)
			if err != nil {
				return err
			}
			if c.Answers {
				return report.JSONLines(a.out, data)
			}
			return report.JSON(a.out, data)
		}
		files, err := a.writeReport(a.ctx, s, o.Result, reportOf(c.Out, job.ID))
		for _, file := range files {
			fmt.Fprintln(a.out, file)
		}
		return err
	})
}

// reports is where the reports are for which no folder was named, each in the folder of its job: none takes the place
// of another document's.
const reports = "holdfast-out"

// reportsIn is the folder that a person named, or the one of all reports.
func reportsIn(out string) string { return cmp.Or(out, reports) }

// reportOf is the folder of one report.
func reportOf(out string, job pipeline.JobID) string {
	return cmp.Or(out, filepath.Join(reports, string(job)))
}

// writeReport writes the files into dir, each whole or not at all, and returns their names.
func (a *app) writeReport(ctx context.Context, s *wiring.System, r pipeline.Result, dir string) ([]string, error) {
	data, err := a.reportData(ctx, s, r)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the report: %w", err)
	}
	var names []string
	for _, file := range []struct {
		name  string
		write func(io.Writer, report.Data) error
	}{{"report.html", report.HTML}, {"findings.json", report.JSON}, {"answers.jsonl", report.JSONLines}, {"report.md", report.Markdown}} {
		path := filepath.Join(dir, file.name)
		if err := replaceFile(path, func(w io.Writer) error { return file.write(w, data) }); err != nil {
			return names, fmt.Errorf("write %s: %w", path, err)
		}
		names = append(names, path)
	}
	return names, nil
}

// writable says whether the folder of a report can be made and written: better asked before the work than after it.
// Nothing is made yet.
func writable(dir string) error {
	there := filepath.Clean(dir)
	for there != filepath.Dir(there) {
		if _, err := os.Stat(there); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		there = filepath.Dir(there)
	}
	probe, err := os.CreateTemp(there, ".holdfast-*")
	if err != nil {
		return usage("the report cannot be written to %s: %v; name another folder with --out", dir, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// replaceFile writes beside the file and then takes its place.
func replaceFile(path string, write func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // gone already when all went well
	w := bufio.NewWriter(temp)
	err = write(w)
	if err = errors.Join(err, w.Flush(), temp.Chmod(0o644), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// reportData reads what a report shows beside the result.
func (a *app) reportData(ctx context.Context, s *wiring.System, r pipeline.Result) (report.Data, error) {
	data, err := view.Report(ctx, s, r)
	data.Redrive = a.command("redrive", string(r.Job.ID))
	return data, err
}
