package pkg

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "holdfast/pkg/"

// The packages by what they are; doc.go of pipeline and the README tell the same.
var (
	steps    = []string{"submit", "ingest", "split", "work", "call", "review", "finalize", "reap", "report", "triage"}
	adapters = []string{"memory", "sqlitestore", "dynamostore", "sqsqueue", "s3blob", "awsclient", "awscost", "offline", "openai", "pipelines", "config", "command", "telemetry"}
)

type goPackage struct {
	ImportPath string
	Dir        string
	Imports    []string
	GoFiles    []string
	Standard   bool
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles,Standard", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		name, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue
		}
		for _, path := range p.Imports {
			other, internal := strings.CutPrefix(path, module)
			if why := forbidden(name, other, path, internal); why != "" {
				t.Errorf("%s imports %s: %s", name, path, why)
			}
		}
	}
}

// forbidden says why a package may not import another; "" if it may.
func forbidden(name, other, path string, internal bool) string {
	outside := strings.Contains(strings.SplitN(path, "/", 2)[0], ".")
	whole, _, _ := strings.Cut(name, "/") // a step may have parts: ingest/pdf
	step, adapter := slices.Contains(steps, whole), slices.Contains(adapters, name)
	switch {
	case name == "pipeline" && (internal || outside):
		return "the words stand on the standard library alone, so that everything else can stand on them"
	case internal && step && strings.HasPrefix(other, whole+"/") && !strings.HasSuffix(other, "test"):
		return ""
	case name == "simulation/spec" && (internal || outside):
		return "the model says what the protocol is: what it says must come from nowhere but itself"
	case internal && name == "simulation/audit" && other != "pipeline":
		return "the auditor knows the words alone: what should have happened is not told by what did"
	case internal && (step || adapter) && other != "pipeline":
		return "steps and adapters know the words and nothing else of ours; wiring joins them"
	case step && outside && !slices.Contains(allowed[name], path):
		return "a step's outside dependencies are listed here, each with a reason"
	case internal && slices.Contains(adapters, other) && whole != "wiring" && whole != "pipelinetest" && !slices.Contains([]string{"cli", "function", "api", "simulation"}, name):
		return "wiring chooses the backend; cli, function and api the model and the pipeline; nobody else knows an adapter"
	case internal && strings.HasSuffix(other, "test") && name != "simulation":
		return "what tests are built from is no part of the program"
	case internal && other == "cli" && !strings.HasPrefix(name, "cmd/"):
		return "nothing stands on the command line but programs"
	case internal && (other == "wiring" || other == "wiring/embedded") && !slices.Contains([]string{"cli", "function", "api", "view", "smoke", "simulation"}, name) && whole != "wiring":
		return "mains wire; nothing else does, but view reads what was wired, and smoke tries it"
	}
	return ""
}

// allowed are the outside dependencies of steps.
var allowed = map[string][]string{
	"ingest": {"golang.org/x/text/encoding/charmap"}, // character sets
	"ingest/pdf": {
		// PDFium, in a sandbox
		"github.com/klippa-app/go-pdfium", "github.com/klippa-app/go-pdfium/enums", "github.com/klippa-app/go-pdfium/errors",
		"github.com/klippa-app/go-pdfium/references", "github.com/klippa-app/go-pdfium/requests", "github.com/klippa-app/go-pdfium/webassembly",
		// the sandbox: its limits, and a way to interrupt it
		"github.com/tetratelabs/wazero", "github.com/tetratelabs/wazero/api", "github.com/tetratelabs/wazero/experimental",
	},
	"review": {
		"github.com/santhosh-tekuri/jsonschema/v6", // answers are validated against their JSON Schema
		"golang.org/x/text/unicode/norm",           // quotes are found in whatever form they are composed
	},
}

// banned are the names that steps reach only through the core, and why.
var banned = map[string]string{
	"time.Now":             "time comes from pipeline.Clock",
	"time.Since":           "time comes from pipeline.Clock",
	"time.After":           "waiting goes through pipeline.Clock",
	"time.AfterFunc":       "waiting goes through pipeline.Clock",
	"time.NewTimer":        "waiting goes through pipeline.Clock",
	"time.NewTicker":       "waiting goes through pipeline.Clock",
	"time.Sleep":           "waiting goes through pipeline.Clock",
	"time.Tick":            "waiting goes through pipeline.Clock",
	"context.WithTimeout":  "time limits go through pipeline.Clock",
	"context.WithDeadline": "time limits go through pipeline.Clock",
}

func TestStepsHaveNoTimeOrGoroutinesOfTheirOwn(t *testing.T) {
	for _, step := range steps {
		err := filepath.WalkDir(step, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return look(t, path)
		})
		if err != nil {
			t.Errorf("step %s: %v", step, err)
		}
	}
}

func look(t *testing.T, path string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s: a bare go statement: goroutines start through pipeline.Group, so that a simulation sees them", set.Position(n.Pos()))
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok {
				if why := banned[pkg.Name+"."+n.Sel.Name]; why != "" {
					t.Errorf("%s: %s.%s: %s", set.Position(n.Pos()), pkg.Name, n.Sel.Name, why)
				}
			}
		}
		return true
	})
	return nil
}
