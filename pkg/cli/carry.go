package cli

import (
	"errors"
	"fmt"
	"os"

	"holdfast/pkg/carry"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

type exportCmd struct {
	jobArg
	Out string `help:"File to write." required:"" placeholder:"FILE"`
}

// Run writes a job to a file.
func (c *exportCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		file, err := os.Create(c.Out)
		if err != nil {
			return usage("%v", err)
		}
		err = carry.Export(a.ctx, s.Backend.Store, s.Backend.Blobs, a.clock, s.ReplyKeys, job.ID, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "job %s, %s, is in %s; put it elsewhere with: %s\n", job.ID, job.Status, c.Out, shellWords([]string{a.typed(), "admin", "import", c.Out}))
		return nil
	})
}

type importCmd struct {
	File string `arg:"" help:"What export wrote."`
}

// Run puts a job from a file.
func (c *importCmd) Run(a *app) error {
	file, err := os.Open(c.File)
	if err != nil {
		return usage("%v", err)
	}
	defer file.Close()
	s, done, err := a.system()
	if err != nil {
		return err
	}
	defer done()
	job, err := carry.Import(a.ctx, s.Backend.Store, s.Backend.Blobs, file)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "job %s, %s, is in %s\n", job.ID, job.Status, a.place())
	return nil
}
