package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is one entry of a mutants file.
type mutant struct {
	name, promise string
	where         string   // file and line of the entry
	test          []string // arguments of go test
	file          string   // relative to the module's root
	anchor        string
	old, new      []string
}

func (m mutant) testLine() string { return strings.Join(m.test, " ") }

// read reads a mutants file.
func read(path string) ([]mutant, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	mutants, err := parse(path, string(body))
	for i := range mutants {
		mutants[i].name = prefix(path) + mutants[i].name
	}
	return mutants, err
}

// prefix is the package that a mutants file belongs to: pkg/memory/testdata/mutants.txt is that of memory.
func prefix(path string) string {
	dir := filepath.Dir(path)
	if filepath.Base(dir) == "testdata" {
		dir = filepath.Dir(dir)
	}
	return filepath.Base(dir) + "/"
}

func parse(path, text string) ([]mutant, error) {
	var mutants []mutant
	var test []string
	var file string
	for n, line := range strings.Split(text, "\n") {
		where := fmt.Sprintf("%s:%d", path, n+1)
		word, rest, _ := strings.Cut(line, " ")
		var m *mutant
		if len(mutants) > 0 {
			m = &mutants[len(mutants)-1]
		}
		if m == nil && strings.Contains(" in - + ", " "+word+" ") && word != "" {
			return nil, fmt.Errorf("%s: %q before the first mutant", where, word)
		}
		switch {
		case strings.TrimSpace(line) == "" || word[0] == '#':
		case word == "test":
			test = fields(rest)
		case word == "file":
			file = rest
		case word == "mutant":
			name, promise, found := strings.Cut(rest, ": ")
			if !found || file == "" || len(test) == 0 {
				return nil, fmt.Errorf("%s: a mutant needs a name and a promise, and a test and a file line before it", where)
			}
			mutants = append(mutants, mutant{name: name, promise: promise, where: where, test: test, file: file})
		case word == "in":
			m.anchor = rest
		case word == "-":
			m.old = append(m.old, rest)
		case word == "+":
			m.new = append(m.new, rest)
		default:
			return nil, fmt.Errorf("%s: %q is none of test, file, mutant, in, -, +", where, word)
		}
	}
	for _, m := range mutants {
		if len(m.old) == 0 {
			return nil, fmt.Errorf("%s: mutant %s changes nothing", m.where, m.name)
		}
	}
	return mutants, nil
}

// fields splits at spaces, but not inside single quotes.
func fields(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

var ends = regexp.MustCompile("(?m)^[})`]")

// apply is the source with the mutant's change.
func (m mutant) apply(source string) (string, error) {
	from, to := 0, len(source)
	if m.anchor != "" {
		if n := strings.Count(source, m.anchor); n != 1 {
			return "", fmt.Errorf("%s: %q occurs %d times in %s, want once", m.where, m.anchor, n, m.file)
		}
		from = strings.Index(source, m.anchor)
		if end := ends.FindStringIndex(source[from:]); end != nil {
			to = from + end[0]
		}
	}
	var lines []string
	for _, line := range m.old {
		lines = append(lines, regexp.QuoteMeta(strings.TrimSpace(line)))
	}
	found := regexp.MustCompile(strings.Join(lines, `\n\s*`)).FindAllStringIndex(source[from:to], -1)
	if len(found) != 1 {
		return "", fmt.Errorf("%s: %q occurs %d times in %s, want once", m.where, strings.Join(m.old, "\n"), len(found), m.file)
	}
	at := found[0]
	return source[:from+at[0]] + strings.Join(m.new, "\n") + source[from+at[1]:], nil
}
