package cli

import (
	"fmt"

	"github.com/alecthomas/kong"

	"holdfast/pkg/wiring"
)

// Names of the backends, as --backend has them.
const (
	embeddedBackend = "embedded"
	awsBackend      = "aws"
)

// backendFlags choose where state lives.
type backendFlags struct {
	Backend  string `help:"Where state lives: embedded (the store's folder) or aws (DynamoDB, SQS and S3)." enum:"embedded,aws" default:"embedded" env:"HOLDFAST_BACKEND"`
	Endpoint string `help:"Address of all AWS services, e.g. http://127.0.0.1:4566 for LocalStack; without it, AWS itself." env:"HOLDFAST_ENDPOINT" placeholder:"URL"`
	Stack    string `help:"Prefix of the names of a deployment's tables, queues and bucket." default:"${stack}" env:"HOLDFAST_STACK"`
	Bucket   string `help:"The deployment's bucket, if it has another name than STACK-blobs." env:"HOLDFAST_BUCKET" placeholder:"NAME"`
}

func (f backendFlags) isAWS() bool { return f.Backend == awsBackend }

// meant refuses a flag of a deployment that would be passed over, because state lives in a folder. What the shell's
// variables say is no word about this command.
func (a *app) meant(path []*kong.Path) error {
	said := map[string]string{"endpoint": a.Endpoint, "stack": a.Stack, "bucket": a.Bucket}
	for _, p := range path {
		if !a.isAWS() && p.Flag != nil && said[p.Flag.Name] != "" {
			return usage("--%[1]s names a deployment on AWS or LocalStack, but this would use the folder %[2]s: add --backend aws, or leave --%[1]s out", p.Flag.Name, a.Store)
		}
	}
	return nil
}

func (f backendFlags) aws() wiring.AWS {
	return wiring.AWS{Stack: f.Stack, Endpoint: f.Endpoint, Bucket: f.Bucket}
}

// connected is the backend with connections for as many requests as the process makes at once: one for each call, and
// some for its own.
func (a *app) connected() wiring.AWS {
	where := a.aws()
	where.Inflight = a.calls + 16
	return where
}

// args are the flags again, for a worker process.
func (f backendFlags) args() []string {
	if !f.isAWS() {
		return nil
	}
	args := []string{"--backend", awsBackend, "--stack", f.Stack}
	if f.Endpoint != "" {
		args = append(args, "--endpoint", f.Endpoint)
	}
	if f.Bucket != "" {
		args = append(args, "--bucket", f.Bucket)
	}
	return args
}

// place says where state lives, for a person.
func (a *app) place() string {
	switch {
	case !a.isAWS():
		return "store " + a.Store
	case a.Endpoint != "":
		return fmt.Sprintf("stack %s at %s", a.Stack, a.Endpoint)
	default:
		return fmt.Sprintf("stack %s on AWS", a.Stack)
	}
}

// desk is the place, and whose jobs are looked for there: in a deployment those that came by its HTTP API are their
// callers', and not the command line's own.
func (a *app) desk() string {
	if !a.isAWS() && a.Tenant == defaultTenant {
		return a.place()
	}
	return fmt.Sprintf("%s for tenant %s (--tenant names another)", a.place(), a.Tenant)
}

type adminCmd struct {
	Create createCmd `cmd:"" help:"Make the tables, queues and bucket of a stack, unless they are there."`
	Delete deleteCmd `cmd:"" help:"Remove the tables, queues and bucket of a stack, and every job in them."`
	Export exportCmd `cmd:"" help:"Write a job that has ended or is paused to a file, with its replies."`
	Smoke  smokeCmd  `cmd:"" help:"Try a stack with a canary: claim race, killed worker, poison, dead letter, cancel. It costs a tenth of a cent, no model's money, and removes what it made."`
	Import importCmd `cmd:"" help:"Put a job from such a file into this backend."`

	SmokeWorker smokeWorkerCmd `cmd:"" name:"smoke-worker" hidden:"" help:"A worker process of a canary. The canary starts it."`
}

type createCmd struct{}

// Run makes a deployment's state.
func (createCmd) Run(a *app) error {
	if !a.isAWS() {
		return usage("the embedded store makes itself; this is for: %s --backend aws --endpoint URL admin create", a.typed())
	}
	if err := wiring.CreateAWS(a.ctx, a.aws(), a.policy); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is ready: two tables, two queues with their dead-letter queues, a bucket\n", a.place())
	return nil
}

type deleteCmd struct {
	Yes bool `help:"Really."`
}

// Run removes it.
func (c deleteCmd) Run(a *app) error {
	switch {
	case !a.isAWS():
		return usage("to remove an embedded store, remove its folder: %s", a.Store)
	case !c.Yes:
		return usage("this removes every job of %s; say --yes if that is meant", a.place())
	}
	if err := wiring.DeleteAWS(a.ctx, a.aws()); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is gone\n", a.place())
	return nil
}
