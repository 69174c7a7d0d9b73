package config

import (
	"strings"
	"testing"
)

// Whatever a policy file holds: it is read at once, and either holds every bound or names itself in the error.
func FuzzReadPolicy(f *testing.F) {
	for _, seed := range []string{
		"", "claim_ttl: 20s\n", "max_tries: 4\nmax_tries: 5\n", "{\"max_deferrals\": 9223372036854775807}", "retry_wait: -1h\n",
		"job_deadline: 2562047h47m16.854775807s\n", "a: &a [*a]", "claim_ttl: 1e3", "? [x]\n: y\n", "--- 1\n--- 2\n", "max_tries: 0x10\n", "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := ReadPolicy("policy.yaml", body)
		if err != nil {
			if !strings.Contains(err.Error(), "policy.yaml") {
				t.Errorf("the error names no file: %v", err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Errorf("read, but not valid: %v", err)
		}
	})
}
