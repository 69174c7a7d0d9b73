package function

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

// sigtermTime is what Lambda leaves between SIGTERM and SIGKILL, less what it takes to write how an attempt ended.
const sigtermTime = 200 * time.Millisecond

// Open makes the process that the environment of this program says, or says what is missing there.
func Open(ctx context.Context, process config.Process, read Reader) (*Process, error) {
	env, err := config.ReadEnvironment(process, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	parts := Parts{Clock: pipeline.NewRealClock(), Read: read, Log: Logger(os.Stderr, env), Metrics: os.Stdout, Kill: kill}
	if process == config.Work || process == config.Workd || process == config.API {
		if parts.Model, err = OpenModel(ctx, env); err != nil {
			return nil, err
		}
	}
	if parts.Backend, err = OpenBackend(ctx, env); err != nil {
		return nil, err
	}
	return New(env, parts)
}

// Serve answers events with the handler until Lambda ends this program. SIGTERM drains first.
func Serve(handler any, p *Process) {
	lambda.StartWithOptions(handler, lambda.WithEnableSIGTERM(func() {
		p.Terminate(sigtermTime)
		p.events.Wait()
		os.Exit(0)
	}))
}

// Exit ends a program that could not begin.
func Exit(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// RunUntilAsked runs the polling process until SIGTERM or an interrupt; a second one drops what is in flight.
func (p *Process) RunUntilAsked() error {
	stopHealth, err := p.Health(p.Env.Health)
	if err != nil {
		return err
	}
	defer stopHealth()
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(caught)
	done := make(chan struct{})
	var group pipeline.Group
	group.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case s := <-caught:
				p.Log.Info("asked to end", "signal", s.String(), "within", p.Env.StopTime.String())
				p.begin()
				if n > 0 {
					p.drop()
				}
			}
		}
	})
	var protection *Protection
	if agent := os.Getenv("ECS_AGENT_URI"); agent != "" {
		protection = NewProtection(agent, p.Clock, p.Log)
	}
	p.Log.Info("polling", "stack", p.Env.Stack, "in_flight", p.Env.InFlight, "protected", protection != nil)
	p.Run(protection)
	close(done)
	group.Wait()
	return p.System.Backend.Close()
}

// kill is SIGKILL to this process: what a handler that ignores everything comes to.
func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
