package pipelinetest

import (
	"slices"
	"testing"
)

// TestStore holds a store to the promises of the ports and of the claim protocol, one subtest per promise. open may
// return the same store every time.
func TestStore(t *testing.T, open func(t *testing.T) Harness) {
	for _, promise := range storePromises() {
		t.Run(promise.says, func(t *testing.T) { promise.holds(t, open(t)) })
	}
}

// TestStoreAlone is [TestStore] but for what many do at once: for a store whose answers are lost. Of a write whose answer
// was lost nobody knows any more that it was made once another has written the same row.
func TestStoreAlone(t *testing.T, open func(t *testing.T) Harness) {
	for _, promise := range alonePromises() {
		t.Run(promise.says, func(t *testing.T) { promise.holds(t, open(t)) })
	}
}

// promise is one thing that a store must never break.
type promise struct {
	says  string
	holds func(t *testing.T, h Harness)
}

func storePromises() []promise { return slices.Concat(alonePromises(), crowdPromises) }

func alonePromises() []promise {
	return slices.Concat(
		clausePromises,
		claimPromises,
		lostPromises,
		reapPromises,
		jobPromises,
		redrivePromises,
		itemPromises,
		budgetPromises,
		limitPromises,
	)
}
