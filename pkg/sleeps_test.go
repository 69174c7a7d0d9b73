package pkg

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// sleepers are the packages whose tests wait in real time, and why.
var sleepers = map[string]string{
	"sqsqueue": "a queue on LocalStack has its own clock: that a delivery comes back has to be waited for",
}

// A test that sleeps in real time is slow, and wrong on a machine that is slower: time.Sleep belongs into a bubble of
// testing/synctest, so a package whose tests sleep has one. What is not virtual waits for a signal.
func TestTestsSleepInBubbles(t *testing.T) {
	sleep, bubble := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			switch qualified(call.Fun) {
			case "time.Sleep":
				sleep[filepath.Dir(path)] = set.Position(n.Pos()).String()
			case "synctest.Test":
				bubble[filepath.Dir(path)] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, where := range sleep {
		if !bubble[dir] && sleepers[dir] == "" {
			t.Errorf("%s: a test sleeps, and no test of the package has a bubble: wait for a signal, or use testing/synctest", where)
		}
	}
	for dir := range sleepers {
		if sleep[dir] == "" {
			t.Errorf("no test of %s sleeps any more: take it out of the list", dir)
		}
	}
}

// qualified is the name of a function of a package.
func qualified(f ast.Expr) string {
	s, is := f.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	of, is := s.X.(*ast.Ident)
	if !is {
		return ""
	}
	return of.Name + "." + s.Sel.Name
}
