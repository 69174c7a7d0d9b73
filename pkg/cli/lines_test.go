package cli

import (
	"strings"
	"testing"
)

func TestAListThatIsNotTakenAsItStandsIsRefusedBeforeAnythingIsMade(t *testing.T) {
	for name, c := range map[string]struct{ list, says string }{
		"a name that is not UTF-8": {"a\ncaf\xE9.txt\n", "items.txt: line 2 is not UTF-8"},
		"more than a job takes":    {strings.Repeat("a\n", 20_001), "items.txt: it has 20,001 lines to work on, and 20,000 is the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "")
			list := d.doc("items.txt", c.list)
			for _, command := range []string{"run", "submit"} {
				d.says(d.does(exitUsage, command, list, "--exec", "cat {}"), c.says)
			}
			d.nothingLeft()
		})
	}
}
