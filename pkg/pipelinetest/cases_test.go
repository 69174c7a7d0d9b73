package pipelinetest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest is a test as the tables name it.
var namedTest = regexp.MustCompile("`([a-z0-9]+): ((?:Test|Fuzz)\\w+)(?:: \"([^`]+)\")?`")

// Every public case has one row, and every test that a row names exists.
func TestCasesAreTriedWhereTheTableSays(t *testing.T) {
	table, err := os.ReadFile("cases.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([A-Z]-\d\d) \|([^|]+)\|([^|]*)\|([^|]*)\|$`).FindAllStringSubmatch(string(table), -1)
	if len(rows) != 49 {
		t.Errorf("got %d rows, want one for each of the 49 cases", len(rows))
	}
	seen := map[string]bool{}
	for _, row := range rows {
		id, tests, waits := row[1], row[3], strings.TrimSpace(row[4])
		if seen[id] {
			t.Errorf("%s stands twice", id)
		}
		seen[id] = true
		named := namedTest.FindAllStringSubmatch(tests, -1)
		if len(named) == 0 && waits == "" {
			t.Errorf("%s is tried by nothing and waits for nothing", id)
		}
		if got := strings.Count(tests, "`") / 2; got != len(named) {
			t.Errorf("%s: %d of %d tests are not written as `package: Test`", id, got-len(named), got)
		}
		for _, n := range named {
			if !exists(t, n[1], n[2], n[3]) {
				t.Errorf("%s: there is no %s in pkg/%s with %q in it", id, n[2], n[1], n[3])
			}
		}
	}
}

// Every point at which AWS and LocalStack differ has a test that exists, and says where that is true.
func TestDifferencesAreHeldWhereTheTableSays(t *testing.T) {
	table, err := os.ReadFile("differs.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\|([^|]+)\|([^|]+)\|([^|]+)\|([^|]+)\|([^|]*)\|([^|]+)\|$`).FindAllStringSubmatch(string(table), -1)
	if len(rows) < 10 {
		t.Fatalf("got %d rows", len(rows))
	}
	for _, row := range rows[2:] { // below the head
		point, tests, where := strings.TrimSpace(row[1]), strings.TrimSpace(row[5]), strings.TrimSpace(row[6])
		named := namedTest.FindAllStringSubmatch(tests, -1)
		switch {
		case strings.HasPrefix(where, "waits for") && len(named) == 0:
		case where != "both" && where != "proxy" && where != "memory":
			t.Errorf("%s: it is true in %q, want both, proxy or memory", point, where)
		case len(named) != 1:
			t.Errorf("%s: it is held by %q, want one test", point, tests)
		case !exists(t, named[0][1], named[0][2], named[0][3]):
			t.Errorf("%s: there is no %s", point, tests)
		}
	}
}

// exists says that a package has a test of that name, with a subtest whose name holds part.
func exists(t *testing.T, pkg, test, part string) bool {
	files, err := filepath.Glob(filepath.Join("..", pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("pkg/%s has no tests (%v)", pkg, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, body, found := strings.Cut(string(source), "\nfunc "+test+"(")
		if body, _, _ = strings.Cut(body, "\n}\n"); found && (part == "" || strings.Contains(body, `"`+part)) {
			return true
		}
	}
	return false
}
