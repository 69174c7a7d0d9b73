package pkg

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a page tells to run must be there: a target that was renamed or lost is found by whoever reads the page otherwise.
func TestEveryTargetThatAPageNamesIsInTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(string(makefile), -1) {
		targets[found[1]] = true
	}
	// A command is in a block, or between backquotes; what follows `make` in prose is none.
	command := regexp.MustCompile("(?m)(?:^    (?:[A-Z_]+=\\S+ )*|`)make ((?:[a-z][a-z-]*[ `\n]?)+)")
	named := 0
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "node_modules" || d.Name() == "cdk.out"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range command.FindAllStringSubmatch(string(page), -1) {
			words, _, _ := strings.Cut(found[1], "`")
			words, _, _ = strings.Cut(words, "\n")
			for _, target := range strings.Fields(words) {
				named++
				if !targets[target] {
					t.Errorf("%s says make %s, and there is no such target", path, target)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 30 {
		t.Errorf("%d targets were found in the pages, want all of them: the search is broken", named)
	}
}
