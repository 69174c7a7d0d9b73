package smoke_test

import (
	"testing"

	"holdfast/pkg/smoke"
)

func TestAStackThatKeepsItsPromises(t *testing.T) {
	in(t, func(b *bench, r smoke.Report, err error) {
		if err != nil || !r.Held() {
			b.Errorf("got error %v, want every promise kept", err)
		}
	})
}
