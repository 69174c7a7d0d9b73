package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// The same document is a job of the same id in every stack, and again where a store's data was lost. What another was
// asked is nothing that this one asked twice.
func TestAJobIsNotChargedWithTheCallsOfAnotherStore(t *testing.T) {
	d := newDesk(t, "")
	doc := d.doc("contract.txt", contract(0, 5000))
	for n := range 2 {
		var o outcome
		code, out, errOut := d.holdfast("run", doc, "--json", "--yes", "--profile", "compact", "--out", filepath.Join(d.dir, "reports"))
		if code != exitCompleted {
			t.Fatalf("run %d: code %d: %s", n, code, errOut)
		}
		d.must(json.Unmarshal([]byte(out), &o))
		if o.Again != 0 || o.InFlight != 0 || !o.Witness {
			t.Errorf("run %d: %d stored and %d in flight asked again, witness %v; want none", n, o.Again, o.InFlight, o.Witness)
		}
		files, err := os.ReadDir(d.store)
		d.must(err)
		for _, file := range files {
			if file.Name() != "ledger" && file.Name() != "logs" {
				d.must(os.RemoveAll(filepath.Join(d.store, file.Name())))
			}
		}
	}
}
