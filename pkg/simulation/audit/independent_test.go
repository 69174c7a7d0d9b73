package audit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// theRules are what the program decides by. An auditor that used them would find right whatever they say.
var theRules = map[string]bool{
	"Next": true, "EndingOf": true, "StandingOf": true, "Verdict": true, "WhyRefused": true, "Expirable": true, "Landed": true,
	"Listed": true, "Unclaimable": true, "Runs": true, "Expired": true, "StopFailure": true, "CancelRow": true, "Counting": true,
	"Deferred": true, "CellFails": true, "Free": true, "Retryable": true, "RingWait": true, "DeferralWait": true, "AttemptWait": true,
	"TryCap": true, "Block": true, "DueAtOf": true, "Struck": true, "Body": true,
}

func TestTheAuditorUsesNoneOfTheRulesThatTheProgramDecidesBy(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files++
		ast.Inspect(file, func(n ast.Node) bool {
			if use, is := n.(*ast.SelectorExpr); is && theRules[use.Sel.Name] && !ours(use) {
				t.Errorf("%s uses %s", name, use.Sel.Name)
			}
			return true
		})
	}
	if files == 0 {
		t.Error("there is nothing to look at")
	}
}

// ours says that the auditor's own value is meant.
func ours(use *ast.SelectorExpr) bool {
	receiver, is := use.X.(*ast.Ident)
	return is && receiver.Name == "a"
}
