package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func init() { incidents["media"] = mediaIncident }

// mediaIncident is four corrupt files among good ones.
func mediaIncident(t *testing.T, p *printer, full bool) {
	hours, hourly := 24, 160
	if !full {
		hours, hourly = 4, 20
	}
	var naive, ours daily
	synctest.Test(t, func(t *testing.T) { naive = naiveDay(t, newDay(hours, hourly)) })
	synctest.Test(t, func(t *testing.T) { ours = oursDay(t, newDay(hours, hourly)) })
	p.say("FOUR CORRUPT FILES among %s good ones in %d hours: decoding one makes no progress until the hard timeout kills it.", number(naive.good), hours)
	slotTime := time.Duration(hours*slots) * time.Hour
	row := func(what string, tell func(daily) string) []string { return []string{what, tell(naive), tell(ours)} }
	p.table(
		[]string{"", "timeout + reaper + requeue [1]", "Holdfast [2]"},
		row("failures on the wall", func(d daily) string { return number(d.failures) }),
		row("of these, the four files", func(d daily) string { return number(d.ofCorrupt) }),
		row("of these, a disk that fails: the signal", func(d daily) string {
			return fmt.Sprintf("%d (%s)", d.failures-d.ofCorrupt, share(d.failures-d.ofCorrupt, d.failures))
		}),
		row("failures with their reason kept", func(d daily) string { return number(d.reasons) }),
		row("decodes of the four in the second half of the day", func(d daily) string { return number(d.later) }),
		row("slot time that the four held", func(d daily) string {
			return fmt.Sprintf("%s (%s)", d.held.Round(time.Minute), share(int(d.held), int(slotTime)))
		}),
		row("good files decoded", func(d daily) string { return fmt.Sprintf("%s of %s", number(d.goodDone), number(d.good)) }),
		row("a good file is done after, mean", func(d daily) string { return d.wait.Round(time.Second).String() }),
		row("a good file is done after, longest", func(d daily) string { return d.longest.Round(time.Second).String() }),
	)
	p.notes(
		fmt.Sprintf("Hard timeout %v, reaper and requeue every %v, %d slots; a good file takes 20 to 60 s, they come every hour. In virtual time.", hardTimeout, scanEvery, slots),
		"The same decoder as a task in Go, the same timeout and slots, the shipped cap of 3 attempts; the reaper sweeps every minute. A retry is due 30 s after its failure and goes before files that came later, which the first hour's files feel.",
	)
	if naive.ofCorrupt < 5*naive.abandonedCap() || naive.later == 0 || naive.reasons != 0 {
		t.Errorf("the naive system: %d failures of the four, %d decodes later: the incident does not show", naive.ofCorrupt, naive.later)
	}
	if ours.ofCorrupt != 12 || ours.decodes != 12 || ours.abandoned != 4 || ours.later != 0 || ours.disk != 1 || ours.failures != 13 || ours.reasons != 13 {
		t.Errorf("got %+v, want 12 failures of the four with reasons, four abandoned, none later, and the disk's", ours)
	}
	if ours.goodDone != ours.good || ours.left > 0 {
		t.Errorf("%d of %d good files decoded, %d messages left", ours.goodDone, ours.good, ours.left)
	}
	mediaForReal(t, p, full)
}

// abandonedCap is how many failures the four would have had with a cap of three.
func (daily) abandonedCap() int { return 4 * 3 }
