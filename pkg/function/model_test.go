package function

import (
	"strings"
	"testing"
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
		if _, err := keyIn(secret); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-") {
			t.Errorf("%q: got %v, want that it says %q and not what the secret is", secret, err, want)
		}
	}
	if key, err := keyIn("sk-1_a/b+c=\n"); err != nil || key != "sk-1_a/b+c=" {
		t.Errorf("got %q, %v", key, err)
	}
}
