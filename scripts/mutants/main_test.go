package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const small = `test ./pkg/small -run 'TestSmall'
file pkg/small/small.go

# the reader's
mutant both-less: a must be less than b and c
in func both
- a < b &&
+ true &&

mutant nobody-looks: nobody tests this one
- a > b
+ a >= b

mutant no-go: this one does not compile
- a > b
+ a >

mutant two-lines: consecutive lines are one text
- return a < b &&
- a < c
+ return a < c
`

func module(t *testing.T, mutants string) runner {
	t.Helper()
	root := t.TempDir()
	for name, body := range map[string]string{
		"go.mod":                           "module small\n\ngo 1.26\n",
		"pkg/small/small.go":               "package small\n\nfunc both(a, b, c int) bool {\n\treturn a < b &&\n\t\ta < c\n}\n\nfunc more(a, b int) bool { return a > b }\n",
		"pkg/small/small_test.go":          "package small\n\nimport \"testing\"\n\nfunc TestSmall(t *testing.T) {\n\tt.Run(\"both\", func(t *testing.T) {\n\t\tif both(2, 1, 3) || !more(2, 1) {\n\t\t\tt.Error(\"no\")\n\t\t}\n\t})\n}\n",
		"pkg/small/testdata/mutants.txt":   mutants,
		"pkg/other/testdata/something.txt": "not a mutants file",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return runner{out: &bytes.Buffer{}, root: root, timeout: time.Minute, jobs: 2}
}

func TestMutants(t *testing.T) {
	r := module(t, small)
	before, err := os.ReadFile(filepath.Join(r.root, "pkg/small/small.go"))
	if err != nil {
		t.Fatal(err)
	}
	ok, err := r.main(t.Context(), nil, "", false)
	if err != nil {
		t.Fatal(err)
	}
	got := r.out.(*bytes.Buffer).String()
	for _, want := range []string{"TestSmall/both", "2 of 4 mutants were noticed", "small/nobody-looks", "every test passed", "does not compile"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q in it", got, want)
		}
	}
	if ok {
		t.Error("got ok though a mutant survived")
	}
	after, err := os.ReadFile(filepath.Join(r.root, "pkg/small/small.go"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the working tree was changed (error %v)", err)
	}
	t.Run("only those that match are run", func(t *testing.T) {
		r.out = &bytes.Buffer{}
		if ok, err := r.main(t.Context(), nil, "both|two", false); err != nil || !ok {
			t.Errorf("got %v, error %v; want ok:\n%s", ok, err, r.out)
		}
	})
}

func TestFile(t *testing.T) {
	for name, text := range map[string]string{
		"a mutant without a test line":     "file x.go\nmutant a: b\n- c\n",
		"a mutant without a file line":     "test ./x\nmutant a: b\n- c\n",
		"a mutant without a promise":       "test ./x\nfile x.go\nmutant a\n- c\n",
		"a mutant that changes nothing":    "test ./x\nfile x.go\nmutant a: b\n",
		"a change without a mutant":        "test ./x\nfile x.go\n- c\n",
		"a line that is none of the words": "test ./x\nfile x.go\nmutation a: b\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parse("mutants.txt", text); err == nil {
				t.Errorf("got %v, want an error", got)
			}
		})
	}
	source := "func a() {\n\tx == 1 &&\n\ty == 2\n}\nfunc b() {\n\tx == 1\n}\n"
	for name, test := range map[string]struct {
		m    mutant
		want string
	}{
		"a text that occurs twice":      {mutant{old: []string{"x == 1"}}, ""},
		"a text that does not occur":    {mutant{old: []string{"z"}}, ""},
		"an anchor that does not occur": {mutant{anchor: "func c", old: []string{"y"}}, ""},
		"a text in another function":    {mutant{anchor: "func b", old: []string{"y == 2"}}, ""},
		"once behind its anchor":        {mutant{anchor: "func b", old: []string{"x == 1"}, new: []string{"true"}}, "func a() {\n\tx == 1 &&\n\ty == 2\n}\nfunc b() {\n\ttrue\n}\n"},
		"without new text":              {mutant{old: []string{"x == 1 &&"}}, "func a() {\n\t\n\ty == 2\n}\nfunc b() {\n\tx == 1\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.m.apply(source)
			if (err != nil) != (test.want == "") || got != test.want {
				t.Errorf("got %q, error %v; want %q", got, err, test.want)
			}
		})
	}
}

// An entry whose text has moved guards nothing any more, and the long run would be the first to tell.
func TestEveryEntryStandsInTheCode(t *testing.T) {
	r := runner{root: "../.."}
	mutants, err := r.load(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		source, err := os.ReadFile(filepath.Join(r.root, m.file))
		if err == nil {
			_, err = m.apply(string(source))
		}
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
