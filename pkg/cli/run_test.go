package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

func TestRun(t *testing.T) {
	t.Run("the same again asks nothing and returns what is there", func(t *testing.T) {
		d := newDesk(t, "")
		doc := d.doc("contract.txt", contract(0, 9000))
		first := d.runs(exitCompleted, doc)
		if first.Asked != 56 || d.asked() != 56 || !first.Witness || first.Stood {
			t.Errorf("asked %d calls by the outcome, %d by the ledger, want 56; witness %v, stood %v", first.Asked, d.asked(), first.Witness, first.Stood)
		}
		d.must(os.RemoveAll(d.out))
		text := d.does(exitCompleted, d.runArgs(doc)...)
		d.says(text, "56 of 56 cells answered", "had ended before: 0 calls")
		if d.asked() != 56 {
			t.Errorf("the second run asked %d calls, want 0", d.asked()-56)
		}
		if !exists(filepath.Join(d.out, "report.html")) {
			t.Error("the second run wrote no report")
		}
	})
	t.Run("after one clause was edited only its chunk is asked, and the number is printed", func(t *testing.T) {
		d := newDesk(t, "")
		text := contract(0, 20_000)
		d.runs(exitCompleted, d.doc("draft1.txt", text))
		before := d.asked()
		edited := strings.Replace(text, "at least thirty (30) days prior", "at least fourteen (14) days prior", 1)
		if edited == text {
			edited = strings.Replace(text, "non-exclusive value added reseller", "exclusive value added reseller", 1)
		}
		next := d.runs(exitCompleted, d.doc("draft2.txt", edited))
		asked := d.asked() - before
		if asked != next.Asked || asked == 0 || asked > 3*28 || next.Counts.Answered != next.Counts.Cells {
			t.Errorf("the ledger says %d calls, the outcome %d of %d; want as many, and at most those of three chunks", asked, next.Asked, next.Counts.Cells)
		}
	})
	t.Run("a text that repeats itself is asked once, and the number is the ledger's", func(t *testing.T) {
		d := newDesk(t, "")
		o := d.runs(exitCompleted, d.doc("same.txt", strings.Repeat("The party shall pay the other party for each loss. ", 900)))
		if o.Asked != d.asked() || o.Asked >= o.Counts.Answered {
			t.Errorf("the outcome says %d of %d were asked, the ledger %d", o.Asked, o.Counts.Answered, d.asked())
		}
	})
	t.Run("--fresh asks all again", func(t *testing.T) {
		d := newDesk(t, "")
		doc := d.doc("contract.txt", contract(0, 5000))
		first := d.runs(exitCompleted, doc)
		again := d.runs(exitCompleted, doc, "--fresh")
		if d.asked() != 56 || again.Job == first.Job || again.Asked != 28 {
			t.Errorf("job %s asked %d, %d in all; want another job than %s, and 28 of 56", again.Job, again.Asked, d.asked(), first.Job)
		}
	})
	t.Run("a pipeline of another kind, by its file", func(t *testing.T) {
		d := newDesk(t, "")
		doc := d.doc("tickets.txt", "Ticket 1\nThe service is down since nine, nobody can log in.\n\nTicket 2\nWe will cancel and want our money back.\n")
		text := d.does(exitCompleted, "run", doc, "--pipeline", "../pipelines/examples/support-tickets.yaml", "--ledger", d.ledger, "--out", d.out)
		d.says(text, "4 of 4 cells answered", "1 chunk x 4 calls", "support-tickets@1")
		if d.asked() != 4 {
			t.Errorf("asked %d calls, want 4", d.asked())
		}
	})
	t.Run("its numbers are those of the ledger while tries fail and workers crash", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		o := d.runs(exitCompleted, d.doc("contract.txt", contract(0, 9000)), "--workers", "2", "--fail", "throttled=3%,unavailable=1%,malformed=1%,crash=2%", "--seed", "3")
		failed := map[pipeline.Kind]int{}
		ended := map[string]bool{}
		for _, e := range d.entries() {
			if e.Outcome != "" {
				ended[e.Nonce] = true
			}
			if kind := pipeline.Kind(e.Outcome); e.Outcome != "" && e.Outcome != "ok" {
				failed[kind]++
			}
		}
		if open := d.asked() - len(ended); o.Killed == 0 && open > 0 || o.Killed > open {
			t.Errorf("%d workers were killed, and %d questions never ended", o.Killed, open)
		}
		if o.Counts.Answered != o.Counts.Cells || o.Again != 0 {
			t.Errorf("%d of %d answered, %d stored answers asked again; want all and none", o.Counts.Answered, o.Counts.Cells, o.Again)
		}
		// what a killed worker was refused in its last seconds was free, was given back and is nowhere
		refused := failed[pipeline.Throttled] - o.Spend.Failures[pipeline.Throttled]
		if n := d.asked(); n-refused > o.Spend.Tries || n < o.Spend.Tries-o.Spend.Unnamed {
			t.Errorf("the ledger knows %d tries, the outcome at most %d, %d of them of killed workers", n, o.Spend.Tries, o.Spend.Unnamed)
		}
		for kind, n := range o.Spend.Failures {
			if n > failed[kind] || o.Killed == 0 && n != failed[kind] {
				t.Errorf("%s: the outcome says %d, the ledger %d", kind, n, failed[kind])
			}
		}
	})
	t.Run("its numbers are exactly those of the ledger while nobody dies", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		o := d.runs(exitCompleted, d.doc("contract.txt", contract(0, 9000)), "--workers", "2", "--fail", "throttled=3%,unavailable=2%,malformed=2%", "--seed", "5")
		failed := map[pipeline.Kind]int{}
		for _, e := range d.entries() {
			if e.Outcome != "" && e.Outcome != "ok" {
				failed[pipeline.Kind(e.Outcome)]++
			}
		}
		if o.Spend.Tries != d.asked() || o.Spend.Unnamed != 0 || len(failed) == 0 {
			t.Errorf("the outcome says %d tries and %d unnamed, the ledger %d with %v failed", o.Spend.Tries, o.Spend.Unnamed, d.asked(), failed)
		}
		for kind, n := range failed {
			if o.Spend.Failures[kind] != n {
				t.Errorf("%s: the outcome says %d, the ledger %d", kind, o.Spend.Failures[kind], n)
			}
		}
	})
	t.Run("--json is one object that names what scripts need", func(t *testing.T) {
		d := newDesk(t, "")
		code, out, errOut := d.holdfast(d.runArgs(d.doc("contract.txt", contract(0, 5000)), "--json")...)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitCompleted {
			t.Fatalf("exit code %d, %v: %s%s", code, err, out, errOut)
		}
		for _, key := range []string{"job", "status", "counts", "stood", "workers_killed", "calls_asked", "in_flight_asked_again", "stored_asked_again", "witness", "spend", "gravest", "findings", "files"} {
			if _, there := got[key]; !there {
				t.Errorf("%s is missing from %s", key, out)
			}
		}
		if got["status"] != "completed" || got["calls_asked"] != 28.0 || !strings.Contains(errOut, "once") {
			t.Errorf("got %v asked, %v; the plan belongs on standard error: %s", got["calls_asked"], got["status"], errOut)
		}
	})
}

func TestCeiling(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	doc := d.doc("contract.txt", contract(0, 9000))
	o := d.runs(exitPartial, doc, "--max-cost", "0.40")
	if o.Spend.Cost > 400_000_000 || o.Counts.Answered == 0 || o.Counts.NotAsked == 0 || !strings.Contains(o.Reason, "ceiling") {
		t.Errorf("got %d answered, %d not asked for %s because %q; want some of each below $0.40, because of the ceiling", o.Counts.Answered, o.Counts.NotAsked, o.Spend.Cost, o.Reason)
	}
	t.Run("a partial job returns its report and names the redrive", func(t *testing.T) {
		before := d.asked()
		d.must(os.RemoveAll(d.out))
		text := d.does(exitPartial, d.runArgs(doc, "--max-cost", "0.40")...)
		d.says(text, "holdfast redrive "+string(o.Job), "holdfast why "+string(o.Job), "had ended before: 0 calls", "report.html")
		if d.asked() != before || !exists(filepath.Join(d.out, "report.md")) {
			t.Errorf("it asked %d calls, want 0 and the report", d.asked()-before)
		}
	})
	t.Run("the ceiling that a redrive comes to is told, another one is not passed over, and one can be set", func(t *testing.T) {
		text := strings.Join(strings.Fields(d.does(exitPartial, d.runArgs(doc, "--max-cost", "0.50")...)), " ")
		d.says(text, "its ceiling rises from $0.40 to $", "--max-cost 0.50 changes nothing: the job has ended", "--max-cost 0.50")
		d.says(d.does(exitUsage, "redrive", string(o.Job), "--max-cost", "0.50", "--dry-run"), "--dry-run")
		d.says(d.does(exitFailed, "redrive", string(o.Job), "--max-cost", "0.01"), "spent already")
	})
	t.Run("why tells what is missing and names the ceiling", func(t *testing.T) {
		d.says(d.does(exitCompleted, "why", string(o.Job)), "ceiling", "not asked")
	})
	t.Run("after a redrive the same run completes", func(t *testing.T) {
		d.says(d.does(exitCompleted, "redrive", string(o.Job), "--max-cost", "20"), "the ceilings rise by")
		again := d.runs(exitCompleted, doc, "--max-cost", "0.40")
		if again.Job != o.Job || again.Again != 0 || d.asked() > o.Counts.Cells+o.InFlight+5 {
			t.Errorf("job %s asked %d calls in all, %d of them stored", again.Job, d.asked(), again.Again)
		}
	})
}
