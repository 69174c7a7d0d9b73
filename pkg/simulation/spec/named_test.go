package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// modelled are the packages whose code the model's comments name.
var modelled = []string{"pipeline", "memory", "submit", "split", "work", "finalize", "reap", "triage"}

// parsed are the files of a folder without its tests.
func parsed(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no file in %s (%v)", dir, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// declared are what the files declare: functions, types, variables, and methods as Type.Method.
func declared(files []*ast.File) map[string]bool {
	names := map[string]bool{}
	for _, file := range files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							names[name.Name] = true
						}
					case *ast.TypeSpec:
						names[spec.Name.Name] = true
						if port, is := spec.Type.(*ast.InterfaceType); is {
							for _, method := range port.Methods.List {
								for _, name := range method.Names {
									names[spec.Name.Name+"."+name.Name] = true
								}
							}
						}
					}
				}
			}
		}
	}
	return names
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	name, is := of.(*ast.Ident)
	if !is {
		return ""
	}
	return name.Name + "."
}

// Whoever changes the code that a transition models has to find the transition by the name that its comment gives.
func TestTheCodeThatTheModelNamesIsThere(t *testing.T) {
	known, types := map[string]bool{}, map[string]bool{}
	add := func(prefix string, names map[string]bool) {
		for name := range names {
			of, _, method := strings.Cut(name, ".")
			known[prefix+name], known[name], types[of] = true, true, types[of] || method
		}
	}
	for _, name := range modelled {
		types[name] = true
		add(name+".", declared(parsed(t, "../../"+name)))
	}
	own := parsed(t, ".")
	add("", declared(own))
	dotted := regexp.MustCompile(`\b[A-Za-z]+(\.[A-Za-z]+)+\b`)
	looked := 0
	for _, file := range own {
		for _, comment := range file.Comments {
			for _, name := range dotted.FindAllString(comment.Text(), -1) {
				first, _, _ := strings.Cut(name, ".")
				if !types[first] {
					continue
				}
				looked++
				if !known[name] {
					t.Errorf("%s is named in a comment, and is not there", name)
				}
			}
		}
	}
	if looked < 50 {
		t.Errorf("only %d names were looked at", looked)
	}
}

// A rule that no variant takes away is a rule of which nobody knows that it is needed.
func TestEveryRuleIsTakenAwayInAVariant(t *testing.T) {
	task, job := map[Break]bool{}, map[JobBreak]bool{}
	for _, v := range Broken() {
		task[v.Break] = true
	}
	for _, v := range BrokenJobs() {
		job[v.Break] = true
	}
	for rule := Nothing + 1; rule <= DeferralForgotten; rule++ {
		if !task[rule] {
			t.Errorf("rule %d of a task is taken away in no variant", rule)
		}
	}
	for rule := NothingOfJob + 1; rule <= PauseByStatus; rule++ {
		if !job[rule] {
			t.Errorf("rule %d of a job is taken away in no variant", rule)
		}
	}
	if len(task)+len(job) < 10 {
		t.Errorf("only %d rules", len(task)+len(job))
	}
}
