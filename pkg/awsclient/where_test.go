package awsclient

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Case X-05: no code of the product knows LocalStack: what is tried there is what runs on AWS. Only this package looks at
// the endpoint, for the credentials that one on this machine does not need.
func TestNobodyAsksWhereItRuns(t *testing.T) {
	files := 0
	for _, root := range []string{"..", "../../functions"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && (d.Name() == "pipelinetest" || d.Name() == "testdata") {
				if root != ".." && err != nil {
					return nil // there may be none
				}
				if err == nil {
					err = fs.SkipDir
				}
				return err
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			files++
			for _, found := range mentions(t, path) {
				t.Errorf("%s: %s", path, found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were looked at", files)
	}
	if got := mentionsIn(t, "x.go", "package x\nfunc f(url string) bool { return url == \"http://127.0.0.1:4566\" || isLocalStack }"); len(got) != 2 {
		t.Errorf("of two mentions %v were found", got)
	}
}

func mentions(t *testing.T, path string) []string { return mentionsIn(t, path, nil) }

// mentionsIn are the names that speak of LocalStack, and comparisons with texts that do. Texts for people may name it.
func mentionsIn(t *testing.T, path string, source any) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	about := func(text string) bool {
		return strings.Contains(strings.ToLower(text), "localstack") || strings.Contains(text, "4566") || strings.Contains(strings.ToLower(text), "dynoxide")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if about(n.Name) {
				found = append(found, "the name "+n.Name)
			}
		case *ast.BinaryExpr:
			for _, side := range []ast.Expr{n.X, n.Y} {
				if text, is := side.(*ast.BasicLit); is && about(text.Value) && (n.Op == token.EQL || n.Op == token.NEQ) {
					found = append(found, "a comparison with "+text.Value)
				}
			}
		case *ast.CaseClause:
			for _, one := range n.List {
				if text, is := one.(*ast.BasicLit); is && about(text.Value) {
					found = append(found, "a case "+text.Value)
				}
			}
		}
		return true
	})
	return found
}
