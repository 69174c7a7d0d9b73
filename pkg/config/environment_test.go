package config_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

func env(pairs ...string) func(string) (string, bool) {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		value, is := set[name]
		return value, is
	}
}

func TestEnvironment(t *testing.T) {
	t.Run("what must be set and is not is named, with what it is for, all at once", func(t *testing.T) {
		_, err := config.ReadEnvironment(config.Work, env())
		for _, want := range []string{"environment of work", "HOLDFAST_STACK is not set", "HOLDFAST_MODEL is not set: the model that is asked"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
		}
	})
	t.Run("a process asks for what it uses alone", func(t *testing.T) {
		for _, p := range []config.Process{config.Control, config.Reap} {
			if _, err := config.ReadEnvironment(p, env(config.StackVar, "blue")); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		}
	})
	t.Run("the rest has defaults", func(t *testing.T) {
		for _, p := range config.Processes() {
			e, err := config.ReadEnvironment(p, env(config.StackVar, "blue", config.ModelVar, "offline"))
			if err != nil {
				t.Fatal(err)
			}
			if e.Stack != "blue" || e.Backend != config.AWSBackend || e.LogLevel != slog.LevelInfo || e.Policy != pipeline.DefaultPolicy() {
				t.Errorf("%s: got %+v", p, e)
			}
		}
		e, _ := config.ReadEnvironment(config.Workd, env(config.StackVar, "blue", config.ModelVar, "offline"))
		if e.InFlight != 32 || e.Claims != 0 || e.StopTime != 120*time.Second || e.PriceAs != config.PriceAs {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("what is set is read", func(t *testing.T) {
		e, err := config.ReadEnvironment(config.API, env(
			config.StackVar, "blue", config.ModelVar, "openai/large", config.ModelURLVar, "http://models", config.MaxCostVar, "2.50",
			config.TenantFromVar, "claim:custom:team", config.PolicyVar, `{"max_attempts": 4}`, config.LogLevelVar, "warn", config.TokensPerMinuteVar, "90000",
		))
		if err != nil {
			t.Fatal(err)
		}
		if e.Model != "openai/large" || e.ModelURL != "http://models" || e.MaxCost != pipeline.Dollar*5/2 || e.Policy.MaxAttempts != 4 ||
			e.LogLevel != slog.LevelWarn || e.TokensPerMinute != 90000 || e.TenantFrom != (config.TenantFrom{Kind: config.TenantClaim, Value: "custom:team"}) {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("what cannot be used is named, with what can", func(t *testing.T) {
		for name, bad := range map[string][]string{
			config.StackVar:           {" ", "blue\n", "blue.green", "blau/grün"},
			config.BackendVar:         {"postgres"},
			config.ModelURLVar:        {"api.example.com/v1", "ftp://api.example.com", "http://"},
			config.EndpointVar:        {"localhost:4566"},
			config.ModelVar:           {"gpt", "openai/"},
			config.PriceAsVar:         {"nothing-1"},
			config.TokensPerMinuteVar: {"-1", "many"},
			config.InFlightVar:        {"0", "1.5"},
			config.StopTimeVar:        {"0s", "121s", "120"},
			config.PolicyVar:          {`{"max_attempts": 0}`, "max_receives: 1", "nothing: 1"},
			config.LogLevelVar:        {"loud"},
			config.PaceVar:            {"-1s"},
		} {
			for _, value := range bad {
				_, err := config.ReadEnvironment(config.Workd, env(config.StackVar, "blue", config.ModelVar, "offline", name, value))
				if err == nil || !strings.Contains(err.Error(), name+": ") {
					t.Errorf("%s=%s: got error %v, want one that names it", name, value, err)
				}
			}
		}
		for _, value := range []string{"-1", "1e-12", "much"} {
			_, err := config.ReadEnvironment(config.API, env(config.StackVar, "blue", config.ModelVar, "offline", config.MaxCostVar, value))
			if err == nil || !strings.Contains(err.Error(), config.MaxCostVar+": ") {
				t.Errorf("a ceiling of %s: got error %v", value, err)
			}
		}
		for _, value := range []string{"claim", "claim:", "only:", "account:7", "nobody"} {
			_, err := config.ReadEnvironment(config.API, env(config.StackVar, "blue", config.ModelVar, "offline", config.TenantFromVar, value))
			if err == nil || !strings.Contains(err.Error(), "claim:NAME") {
				t.Errorf("%s: got error %v", value, err)
			}
		}
	})
	t.Run("no two settings of a process share a name, and each says what it is", func(t *testing.T) {
		for _, p := range config.Processes() {
			seen := map[string]bool{}
			for _, s := range config.Settings(p) {
				if seen[s.Name] || s.Says == "" || !strings.HasPrefix(s.Name, "HOLDFAST_") || s.Must && s.Default != "" {
					t.Errorf("%s: %+v", p, s)
				}
				seen[s.Name] = true
			}
		}
	})
}

func TestDeployment(t *testing.T) {
	p := pipeline.DefaultPolicy()
	for _, process := range []config.Process{config.Control, config.Work} {
		timeout := config.Timeout(process, p)
		if timeout-p.FunctionReserve() <= p.AttemptTimeout || timeout > pipeline.MostFunctionTime {
			t.Errorf("%s: an event may take %v, with %v of it reserved: want room for an attempt of %v", process, timeout, p.FunctionReserve(), p.AttemptTimeout)
		}
		if batch := config.Batch(process); batch < 1 || batch > pipeline.MaxBatch {
			t.Errorf("%s: got batches of %d", process, batch)
		}
	}
	if p.FunctionVisibility() < 6*config.Timeout(config.Work, p) {
		t.Errorf("got a visibility of %v, want six timeouts", p.FunctionVisibility())
	}
	if config.ReapTimeout >= config.ReapEvery {
		t.Error("a sweep may still run when the next begins")
	}
	if err := p.CheckFunction(); err != nil {
		t.Error(err)
	}
	p.AttemptTimeout = 13 * time.Minute
	if err := p.CheckFunction(); err == nil || !strings.Contains(err.Error(), "attempt_timeout (13m0s)") {
		t.Errorf("got %v, want both sides named", err)
	}
}

func TestEveryRouteIsThereOnceAndInTheREADMEWithWhatItDoes(t *testing.T) {
	readme, err := os.ReadFile("../../cdk/README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range config.Routes() {
		if seen[r.Key()] {
			t.Errorf("route %s is there twice", r.Key())
		}
		seen[r.Key()] = true
		if !strings.Contains(string(readme), "| `"+r.Key()+"` | "+r.Does+" |\n") {
			t.Errorf("the README does not say that %s is for: %s", r.Key(), r.Does)
		}
	}
}
