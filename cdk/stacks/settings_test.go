package stacks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/cdk/stacks"
)

func TestSettingsThatCannotBeUsedAreToldWithTheSetting(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("attempt_timeout: 14m\nstall_timeout: 3m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		"workers=ec2":     "-c workers=ec2: write one of lambda, fargate, both",
		"arch=mips":       "-c arch=mips: write one of",
		"stack=My_Stack":  "-c stack=My_Stack: write 2 to 30 small letters",
		"workers=fargate": "-c image=: workers=fargate starts tasks",
		"workers=both image=v1 model=openai/x model-key-secret=arn:aws:secretsmanager:a:b:secret:c": "-c public=true",
		"model=openai/x":                       "-c model-key-secret=: name the secret",
		"model=gpt":                            "HOLDFAST_MODEL",
		"price-as=nothing":                     "HOLDFAST_PRICE_AS",
		"max-cost=much":                        "HOLDFAST_MAX_COST",
		"quota=-1":                             "-c quota=-1: write a whole number from 0",
		"vpc=vpc-1":                            "is named together with its subnets",
		"jwt-issuer=https://a":                 "name both",
		"jwt-issuer=https://a jwt-audience=b":  "-c tenant-from=: with tokens, name the claim",
		"alarm-address=nobody":                 "-c alarm-address=nobody: write a mail address",
		"policy=/nowhere.yaml":                 "-c policy=/nowhere.yaml: read the policy",
		"policy=" + policy:                     "at most 15m0s",
		"min-tasks=11":                         "-c min-tasks=11: write a whole number from 0 to 10",
		"workers=fargate image=v1 min-tasks=0": "-c min-tasks=0: write a whole number from 1 to 10",
	} {
		_, err := stacks.Read(given(strings.Fields(settings)...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %q in it", settings, err, want)
		}
	}
	if _, err := stacks.Read(given("workers=fargate", "image=v1", "policy="+policy)); err != nil {
		t.Errorf("Fargate has no limit to an attempt: %v", err)
	}
}

func TestEverySettingIsRead(t *testing.T) {
	asked := map[string]bool{}
	_, err := stacks.Read(func(key string) (string, bool) { asked[key] = true; return "", false })
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range stacks.Keys() {
		if !asked[key] {
			t.Errorf("nobody reads %s", key)
		}
		delete(asked, key)
	}
	for key := range asked {
		t.Errorf("%s is read and not listed", key)
	}
}
