package function

import (
	"strings"
	"testing"

	"holdfast/pkg/config"
)

func TestASecretThatHoldsNoKeyIsToldAtTheStart(t *testing.T) {
	for secret, want := range map[string]string{
		"":                           "the secret is empty",
		" \n":                        "the secret is empty",
		`{"OPENAI_API_KEY": "sk-1"}`: "holds JSON",
		"sk-1\nsk-2":                 "no key",
		"Bearer sk-1":                "no key",
		"sk-\u200b1":                 "no key",
	} {
		if _, err := keyIn("the secret", secret); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-") {
			t.Errorf("%q: got %v, want that it says %q and not what the secret is", secret, err, want)
		}
	}
	if key, err := keyIn("the secret", "sk-1_a/b+c=\n"); err != nil || key != "sk-1_a/b+c=" {
		t.Errorf("got %q, %v", key, err)
	}
}

func TestAKeyInTheEnvironmentIsLookedAtToo(t *testing.T) {
	for key, want := range map[string]string{" sk-1\n": "", "sk-1\nsk-2": "no key", "\n": "the value is empty"} {
		got, err := modelKey(t.Context(), config.Environment{ModelKey: key, ModelKeySecret: "never/read"})
		switch {
		case want == "" && (err != nil || got != "sk-1"):
			t.Errorf("%q: got %q, %v", key, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), config.ModelKeyVar) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-")):
			t.Errorf("%q: got %v, want the setting named, %q, and not what the key is", key, err, want)
		}
	}
}
