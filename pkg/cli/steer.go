package cli

import (
	"fmt"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

type pauseCmd struct{ jobArg }

// Run pauses a job.
func (c *pauseCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		if _, err := s.Submitter.Pause(a.ctx, job.ID); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "job %s is paused: calls in flight finish, no new one starts. Go on with: %s\n", job.ID, a.command("resume", string(job.ID)))
		return nil
	})
}

type resumeCmd struct{ jobArg }

// Run lets a paused job go on, or starts a planned one.
func (c *resumeCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		var err error
		if job.Status == pipeline.JobPlanned {
			_, err = s.Submitter.Start(a.ctx, job.ID)
		} else {
			_, err = s.Submitter.Resume(a.ctx, job.ID)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "job %s is running. Follow it with: %s\n", job.ID, a.command("watch", string(job.ID)))
		return nil
	})
}

type cancelCmd struct {
	jobArg
	Reason string `help:"Why, for the record." default:"cancelled by a person"`
}

// Run cancels a job.
func (c *cancelCmd) Run(a *app) error {
	return c.with(a, func(s *wiring.System, job pipeline.Job) error {
		job, err := s.Submitter.Cancel(a.ctx, job.ID, c.Reason)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "job %s is %s: no call starts later than 2 s from now, what was answered is kept.\n", job.ID, job.Status)
		return nil
	})
}

type reapCmd struct{}

// Run sweeps once.
func (c *reapCmd) Run(a *app) error {
	s, done, err := a.existing()
	if err != nil {
		return err
	}
	defer done()
	report, err := s.Reaper.Sweep(a.ctx)
	if err != nil {
		return err
	}
	if len(report) == 0 {
		fmt.Fprintln(a.out, "nothing has stalled")
		return nil
	}
	for did, n := range report {
		fmt.Fprintf(a.out, "%s: %d\n", did, n)
	}
	return nil
}
