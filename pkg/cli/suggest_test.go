package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"holdfast/pkg/pipeline"
)

// unsaid takes from the shell what it says about where state lives.
func unsaid(t *testing.T) {
	t.Helper()
	for _, name := range []string{storeVar, tenantVar, backendVar, endpointVar, stackVar, bucketVar, "OPENAI_BASE_URL"} {
		t.Setenv(name, "") // so that it is put back
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSuggestedCommands(t *testing.T) {
	local := grammar{Store: defaultStore, Tenant: defaultTenant}
	cloud := grammar{Store: defaultStore, Tenant: defaultTenant, backendFlags: backendFlags{Backend: awsBackend, Stack: defaultStack}}
	of := func(g grammar, edit func(g *grammar)) grammar {
		edit(&g)
		return g
	}
	for _, c := range []struct {
		name string
		g    grammar
		env  map[string]string
		want string
	}{
		{"the default store goes without saying", local, nil, "mine why abc"},
		{"another store is named", of(local, func(g *grammar) { g.Store = "jobs here" }), nil, "mine why abc --store 'jobs here'"},
		{"but not where the shell says so already", of(local, func(g *grammar) { g.Store = "/srv/jobs" }), map[string]string{storeVar: "/srv/jobs"}, "mine why abc"},
		{"the default store is named where the shell says another", local, map[string]string{storeVar: "/srv/jobs"}, "mine why abc --store .holdfast"},
		{"another tenant is named", of(local, func(g *grammar) { g.Tenant = "legal" }), nil, "mine why abc --tenant legal"},
		{"so is a policy", of(local, func(g *grammar) { g.Policy = "p.yaml" }), nil, "mine why abc --policy p.yaml"},
		{"a folder is named where the shell says AWS", local, map[string]string{backendVar: awsBackend}, "mine why abc --backend embedded"},
		{"AWS itself", cloud, nil, "mine why abc --backend aws"},
		{"AWS, as the shell says", cloud, map[string]string{backendVar: awsBackend}, "mine why abc"},
		{
			"LocalStack, with all of its names",
			of(cloud, func(g *grammar) { g.Endpoint, g.Stack, g.Bucket = "http://127.0.0.1:4566", "my stack", "b" }),
			nil, "mine why abc --backend aws --stack 'my stack' --endpoint http://127.0.0.1:4566 --bucket b",
		},
		{
			"each name alone where the shell says the others", of(cloud, func(g *grammar) { g.Endpoint, g.Stack = "http://127.0.0.1:4566", "s" }),
			map[string]string{backendVar: awsBackend, stackVar: "s"},
			"mine why abc --endpoint http://127.0.0.1:4566",
		},
		{
			"AWS itself where the shell names an endpoint", cloud,
			map[string]string{backendVar: awsBackend, endpointVar: "http://127.0.0.1:4566"},
			"mine why abc --endpoint ''",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			unsaid(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			a := &app{grammar: &c.g, program: Program{Name: "mine"}}
			if got := a.command("why", "abc"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A worker that is suggested has what the job needs.
func TestSuggestedWorkers(t *testing.T) {
	unsaid(t)
	a := &app{grammar: &grammar{Store: "jobs", Tenant: defaultTenant}, program: Program{Name: "mine"}}
	for model, want := range map[string]string{
		"offline-rules-1@1":  "mine worker --store jobs",
		pipeline.ExecHandler: "mine worker --allow-exec --store jobs",
		"openai/big@1":       "mine worker --model openai/big --model-url http://x --store jobs",
	} {
		var more []string
		if model == "openai/big@1" {
			more = modelFlags{Model: "openai/big", ModelURL: "http://x"}.where()
		}
		if got := a.workerFor(model, more...); got != want {
			t.Errorf("%s: got %q, want %q", model, got, want)
		}
	}
	for model, want := range map[string]string{
		pipeline.ExecHandler: "start one: mine worker --allow-exec --store jobs",
		"openai/big@1":       "start one: mine worker --store jobs with its --model, or the worker command of",
	} {
		told := pipeline.Unserved(pipeline.Job{Status: pipeline.JobRunning, Model: model},
			[]pipeline.Task{{Ref: pipeline.Ref{ID: pipeline.WorkTask(1)}, Status: pipeline.TaskPending, ReadyAt: 1}}, pipeline.Cooldown{}, 100_000)
		if got := a.typeableSetbacks(told); len(got) != 1 || !strings.Contains(got[0].Cause, want) {
			t.Errorf("got %v, want %q in it", got, want)
		}
	}
}

// What a stack lacks may be made here or deployed, and what is deployed works without being started.
func TestSuggestedForADeployment(t *testing.T) {
	unsaid(t)
	on := func(where backendFlags) *app {
		return &app{grammar: &grammar{Store: "jobs", Tenant: defaultTenant, backendFlags: where}, program: Program{Name: "mine"}}
	}
	local := on(backendFlags{Backend: awsBackend, Stack: "s", Endpoint: "http://127.0.0.1:4566"})
	cloud := on(backendFlags{Backend: awsBackend, Stack: "s"})
	for _, c := range []struct {
		name string
		a    *app
		all  []string
	}{
		{"on LocalStack", local, []string{"with: mine admin create --backend aws --stack s --endpoint http://127.0.0.1:4566,", "make deploy-local STACK=s)", "--stack and AWS_REGION"}},
		{"on AWS", cloud, []string{"with: mine admin create --backend aws --stack s,", "npx cdk deploy", "--stack and AWS_REGION"}},
	} {
		t.Run(c.name+" a stack that is not there is made or deployed", func(t *testing.T) {
			var told strings.Builder
			c.a.err = &told
			if code := c.a.exit(fmt.Errorf("open: %w", pipeline.ErrNotMade)); code != exitFailed {
				t.Errorf("exit code %d", code)
			}
			for _, want := range c.all {
				if !strings.Contains(told.String(), want) {
					t.Errorf("got %q, want %q in it", told.String(), want)
				}
			}
		})
	}
	t.Run("a document is split by what is deployed, or by a worker; in a folder by a worker", func(t *testing.T) {
		if got := cloud.splits("mine worker"); !strings.HasPrefix(got, "what is deployed") || !strings.HasSuffix(got, "started with: mine worker") {
			t.Errorf("got %q", got)
		}
		if got := on(backendFlags{}).splits("mine worker"); got != "a worker splits it: mine worker" {
			t.Errorf("got %q", got)
		}
	})
}

// The flags of a suggestion are those that the grammar has, and mean what they say.
func TestSuggestedFlagsAreRead(t *testing.T) {
	unsaid(t)
	want := grammar{Store: defaultStore, Tenant: "legal", Policy: "p.yaml", backendFlags: backendFlags{Backend: awsBackend, Stack: "s", Endpoint: "http://x", Bucket: "b"}}
	words := (&app{grammar: &want, program: Program{Name: "mine"}}).words("jobs")
	var got grammar
	parser, err := kong.New(&got, kong.Writers(io.Discard, io.Discard), grammarVars())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(words[1:]); err != nil {
		t.Fatal(err)
	}
	if got.backendFlags != want.backendFlags || got.Tenant != want.Tenant || got.Policy != want.Policy || got.Store != want.Store {
		t.Errorf("got %+v, want %+v", got.backendFlags, want.backendFlags)
	}
}
