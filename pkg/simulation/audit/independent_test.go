package audit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What of package pipeline the auditor may call: what reads, names, counts and compares, and decides nothing. Whatever
// is not here, Next and the conditions of writes above all, is a rule of the program: an auditor that used it would find
// right whatever it says. (That the auditor imports nothing else of ours, no store least of all, is a rule of pkg/imports_test.go.)
var mayCall = map[string]bool{
	// reads what is stored
	"AllTasks": true, "Decode": true, "ReadManifest": true,
	// names it
	"BodyKey": true, "RecordKey": true, "JournalKey": true, "CancellationKey": true, "WorkTask": true, "FinalizeTask": true,
	"Ref": true, "Kind": true, "Number": true, "String": true, "DueShard": true,
	// counts and compares
	"Now": true, "Add": true, "Sub": true, "Of": true, "None": true, "Ended": true, "Calls": true, "Find": true,
}

// files are the files of a folder without its tests.
func files(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if all[name], err = parser.ParseFile(token.NewFileSet(), name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// declared are the functions of package pipeline, and they and its methods. The methods of its ports are not among them:
// what is stored may be read.
func declared(t *testing.T) (functions, all map[string]bool) {
	t.Helper()
	functions, all = map[string]bool{}, map[string]bool{}
	for _, file := range files(t, "../../pipeline") {
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || !f.Name.IsExported() {
				continue
			}
			all[f.Name.Name] = true
			if f.Recv == nil {
				functions[f.Name.Name] = true
			}
		}
	}
	return functions, all
}

func TestTheAuditorUsesNoneOfTheRulesThatTheProgramDecidesBy(t *testing.T) {
	functions, words := declared(t)
	for _, rule := range []string{"Next", "WhyRefused", "Expirable", "Landed", "Listed", "CancelRow", "StopFailure"} {
		if !words[rule] || mayCall[rule] {
			t.Errorf("%s is a rule: in package pipeline %v, and here among what may be called: %v", rule, words[rule], mayCall[rule])
		}
	}
	unused := maps.Clone(mayCall)
	for name, file := range files(t, ".") {
		use := func(is string) {
			delete(unused, is)
			if !mayCall[is] {
				t.Errorf("%s uses %s of package pipeline: if that decides nothing, put it among what may be called", name, is)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr: // of a function, or of a method of whatever has one of this name
				if f, is := n.Fun.(*ast.SelectorExpr); is && words[f.Sel.Name] && !elsewhere(f) {
					use(f.Sel.Name)
				}
			case *ast.SelectorExpr: // of a function that is handed on
				if x, is := n.X.(*ast.Ident); is && x.Name == "pipeline" && functions[n.Sel.Name] {
					use(n.Sel.Name)
				}
			}
			return true
		})
	}
	for name := range unused {
		t.Errorf("%s may be called, and is not: take it out", name)
	}
}

// elsewhere says that the function is the auditor's own, or of the standard library.
func elsewhere(f *ast.SelectorExpr) bool {
	of, is := f.X.(*ast.Ident)
	return is && slices.Contains([]string{"a", "errors", "fmt", "slices", "strings", "reflect"}, of.Name)
}
