package offline_test

import (
	"testing"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipelines"
)

func TestPlaceholders(t *testing.T) {
	for _, c := range []struct {
		pipeline, profile string
		all               bool
	}{
		{"contract-review", "full", false},
		{"contract-review", "compact", false},
		{"../pipelines/examples/support-tickets.yaml", "", true},
	} {
		d, err := pipelines.Open(c.pipeline, c.profile)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if c.all {
			want = d.Calls()
		}
		if got := offline.Placeholders(d); got != want {
			t.Errorf("%s %s: got %d of %d calls without rules, want %d", c.pipeline, c.profile, got, d.Calls(), want)
		}
	}
}
