package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

func TestReadPolicy(t *testing.T) {
	t.Run("what the file names is set, and the rest is as shipped", func(t *testing.T) {
		want := pipeline.DefaultPolicy()
		want.ClaimTTL, want.RenewEvery, want.MaxSkew = 2*time.Second, 500*time.Millisecond, 500*time.Millisecond
		want.MaxAttempts, want.MaxReceives, want.MaxDeferrals = 60, 61, 500
		for name, body := range map[string]string{
			"yaml": "# for tests\nclaim_ttl: 2s\nrenew_every: 500ms\nmax_skew: 0.5s\nmax_attempts: 60\nmax_receives: 61\nmax_deferrals: 500\n",
			"json": "{\n\t\"claim_ttl\": \"2s\",\n\t\"renew_every\": \"500ms\",\n\t\"max_skew\": \"0.5s\",\n\t\"max_attempts\": 60,\n\t\"max_receives\": 61,\n\t\"max_deferrals\": 500\n}\n",
		} {
			got, err := config.ReadPolicy("policy."+name, []byte(body))
			if err != nil || got != want {
				t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
			}
		}
	})
	t.Run("an empty file changes nothing", func(t *testing.T) {
		for _, body := range []string{"", "# nothing\n", "---\n", "{}"} {
			if got, err := config.ReadPolicy("p", []byte(body)); err != nil || got != pipeline.DefaultPolicy() {
				t.Errorf("%q: got %+v, %v", body, got, err)
			}
		}
	})
	t.Run("every mistake names its file and line", func(t *testing.T) {
		for _, c := range []struct{ body, want string }{
			{"max_tries: 4\nmax_trys: 5\n", `p.yaml:2: there is no field "max_trys"`},
			{"claim_ttl: 20\n", `p.yaml:1: claim_ttl: "20" is no duration`},
			{"\nmax_tries: many\n", `p.yaml:2: max_tries: "many" is no whole number`},
			{"max_tries: [1]\n", "p.yaml:1: max_tries: must be one value"},
			{"max_tries: 1\nmax_tries: 2\n", "p.yaml:2: max_tries is set already in line 1"},
			{"- a\n", "p.yaml:1: a policy is a list of names and values"},
			{"max_tries: 1\n  max_reasks: 2\n", "p.yaml:2: "},
			{"max_tries: 4\n\ncall_timeout: 3m\n", "p.yaml:3: call_timeout (3m0s) must be less than stall_timeout"},
			{"max_tries: 4\nmax_skew: 16s\n", "p.yaml:2: max_skew (16s) must be less than claim_ttl - renew_every"},
			{"max_tries: 1\n---\nmax_tries: 2\n", "p.yaml: there is more than one document"},
		} {
			_, err := config.ReadPolicy("p.yaml", []byte(c.body))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want an error that says %q", c.body, err, c.want)
			}
		}
	})
	t.Run("every field of the policy can be set", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "policy.json")
		if err := os.WriteFile(path, []byte(`{"dead_letter_retention": "400h"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := config.LoadPolicy(path); err != nil || got.DeadLetterRetention != 400*time.Hour {
			t.Errorf("got %v, %v", got.DeadLetterRetention, err)
		}
		if _, err := config.LoadPolicy(path + ".none"); err == nil {
			t.Error("a missing file is no error")
		}
	})
}

func TestPrice(t *testing.T) {
	t.Run("the price of a token is exact", func(t *testing.T) {
		for name, want := range map[string]pipeline.Price{
			"claude-sonnet-5-5": {Input: 2000, Output: 10_000},
			"nova-micro":        {Input: 35, Output: 140},
		} {
			if got, err := config.Price(name); err != nil || got != want {
				t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
			}
		}
	})
	t.Run("a model that is not known is told with those that are", func(t *testing.T) {
		if _, err := config.Price("gpt-9"); err == nil || !strings.Contains(err.Error(), config.PriceAs) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("every price says whose it is and of when", func(t *testing.T) {
		models, err := config.Models()
		if err != nil || len(models) == 0 {
			t.Fatalf("got %d models, %v", len(models), err)
		}
		seen := map[string]bool{}
		for _, m := range models {
			if _, err := time.Parse(time.DateOnly, m.AsOf); err != nil || m.Source == "" || m.Input <= 0 || m.Output <= m.Input || m.MaxOutput == 0 || seen[m.Name] {
				t.Errorf("%+v is not whole", m)
			}
			seen[m.Name] = true
		}
		if !seen[config.PriceAs] {
			t.Errorf("%s has no price", config.PriceAs)
		}
	})
}
