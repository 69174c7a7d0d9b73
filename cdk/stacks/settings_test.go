package stacks_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"holdfast/cdk/stacks"
)

func TestSettingsThatCannotBeUsedAreToldWithTheSetting(t *testing.T) {
	policy, wordy := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(wordy, []byte("max_attempts: 4\n# "+strings.Repeat("because ", 500)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(policy, []byte("attempt_timeout: 14m\nstall_timeout: 3m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		"workers=ec2":                           "-c workers=ec2: write one of lambda, fargate, both",
		"arch=mips":                             "-c arch=mips: write one of",
		"stack=My_Stack":                        "-c stack=My_Stack: write 2 to 29 small letters",
		"stack=a-stack-that-has-thirty-letters": "write 2 to 29 small letters",
		"workers=fargate":                       "-c image=: workers=fargate starts tasks",
		"workers=both image=v1 model=openai/x model-key-secret=arn:aws:secretsmanager:a:b:secret:c": "-c public=true",
		"model=openai/x":                       "-c model-key-secret=: name the secret",
		"model=gpt":                            "HOLDFAST_MODEL",
		"price-as=nothing":                     "HOLDFAST_PRICE_AS",
		"max-cost=much":                        "HOLDFAST_MAX_COST",
		"quota=-1":                             "-c quota=-1: write a whole number from 0",
		"log-days=31":                          "-c log-days=31: CloudWatch keeps logs for so many days: 1 3 5",
		"vpc=vpc-1":                            "is named together with its subnets",
		"jwt-issuer=https://a":                 "name both",
		"jwt-issuer=https://a jwt-audience=b":  "-c tenant-from=: with tokens, name the claim",
		"alarm-address=nobody":                 "-c alarm-address=nobody: write a mail address",
		"policy=/nowhere.yaml":                 "-c policy=/nowhere.yaml: read the policy",
		"policy=" + policy:                     "at most 15m0s",
		"policy=" + wordy:                      "leave comments and what is as shipped out",
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

func TestZipsThatAreNotMadeYetAreToldBeforeAnythingIsMade(t *testing.T) {
	made, err := stacks.Read(given("functions="+zips(t), "workers=both", "image=v1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := made.CheckZips(); err != nil {
		t.Errorf("all are there, and it says: %v", err)
	}
	made.Functions = t.TempDir()
	if err := made.CheckZips(); err == nil || !strings.Contains(err.Error(), "make functions") {
		t.Errorf("none is there, and it says: %v", err)
	}
}

func TestAnUnknownKindOfWorkersIsToldOnce(t *testing.T) {
	if _, err := stacks.Read(given("workers=lamda")); err == nil || strings.Contains(err.Error(), "image") {
		t.Errorf("got %v, want one sentence about workers", err)
	}
}

func TestASettingThatIsEmptyIsAsIfItWereNotSet(t *testing.T) {
	without, err := stacks.Read(given())
	if err != nil {
		t.Fatal(err)
	}
	var empty []string
	for _, key := range stacks.Keys() {
		empty = append(empty, key+"=")
	}
	with, err := stacks.Read(given(empty...))
	if err != nil || !reflect.DeepEqual(with, without) {
		t.Errorf("got  %+v, %v\nwant %+v", with, err, without)
	}
}

// One that is written wrongly would be as if it were not set: a ceiling would be none.
func TestASettingThatThereIsNotIsTold(t *testing.T) {
	ours := append(stacks.Keys(), "aws:cdk:bundling-stacks", "@aws-cdk/core:checkSecretUsage", "availability-zones:account=1:region=a", "cdk-migrate/x")
	if err := stacks.CheckKeys(ours); err != nil {
		t.Errorf("got %v of settings, and of the CDK's own", err)
	}
	err := stacks.CheckKeys([]string{"max-cost", "max_cost", "Model"})
	if err == nil || !strings.Contains(err.Error(), "-c max_cost=...: there is no such setting; there are alarm-address, ") || !strings.Contains(err.Error(), "-c Model=") {
		t.Errorf("got %v, want both, and what there is", err)
	}
}

func TestEverySettingIsRead(t *testing.T) {
	asked := map[string]bool{}
	_, err := stacks.Read(func(key string) (string, bool) { asked[key] = true; return "", false })
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range stacks.Keys() {
		if !asked[key] {
			t.Errorf("nobody reads %s", key)
		}
		if !strings.Contains(string(readme), "`"+key+"`") {
			t.Errorf("the README does not say what %s is for", key)
		}
		delete(asked, key)
	}
	for key := range asked {
		t.Errorf("%s is read and not listed", key)
	}
}
