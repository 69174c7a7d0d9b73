// Command mutants breaks the code in one named place at a time and demands that a test notices.
//
// A promise that no test guards is a wish. Each entry of a mutants file (testdata/mutants.txt of a package under pkg)
// names a promise and the smallest change of the code that breaks it, most often one clause of one condition. The change
// is built with go test -overlay, so the working tree is never touched. Each test must pass on the code as it is, and fail, after
// compiling, on each mutant; otherwise this command exits with 1.
//
//	go run ./scripts/mutants                    all files
//	go run ./scripts/mutants -only '^memory/'   those whose name matches
//	go run ./scripts/mutants -list              what there is
//	go run ./scripts/mutants pkg/x/testdata/mutants.txt
//
// # The file
//
// Lines that begin with # and empty lines are for the reader. A test line and a file line hold until the next one.
//
//	test ./pkg/memory -run 'TestStore'
//	file pkg/memory/tasks.go
//
//	mutant claim-needs-pending: only a pending row is claimed
//	in func (s *Store) Claim(
//	- row.Status == pipeline.TaskPending &&
//	+ true &&
//
// The text after "- " must occur exactly once in the file. An optional "in" line names a text that does, and then the
// "- " text must occur once between it and the next line that begins with } or ) or a backquote: the end of the
// function or constant. Several "- " lines are consecutive lines, whatever their indentation. Without "+ " lines the
// text is removed. The mutant's whole name is memory/claim-needs-pending. A test line takes packages, -run, and other
// flags of go test.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

func main() {
	only := flag.String("only", "", "run the mutants whose name matches this regular `expression`")
	list := flag.Bool("list", false, "list the mutants and run none")
	jobs := flag.Int("j", 2, "how many to run at once")
	limit := flag.Duration("timeout", 2*time.Minute, "how long one test may take; a mutant that takes longer is killed")
	show := flag.String("show", "", "tell of a mutant that was noticed by the line of the test's output that matches this `expression`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	shown, err := regexp.Compile(*show)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: -show:", err)
		os.Exit(1)
	}
	r := runner{out: os.Stdout, root: ".", timeout: *limit, jobs: *jobs}
	if *show != "" {
		r.show = shown
	}
	ok, err := r.main(ctx, flag.Args(), *only, *list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// runner runs mutants in a module.
type runner struct {
	out     io.Writer
	root    string // of the module
	timeout time.Duration
	jobs    int
	show    *regexp.Regexp // lines that tell what noticed a mutant; nil: the test's name does
}

// main is the command; ok says that every mutant was noticed.
func (r runner) main(ctx context.Context, files []string, only string, list bool) (ok bool, err error) {
	mutants, err := r.load(files, only)
	if err != nil {
		return false, err
	}
	if list {
		for _, m := range mutants {
			fmt.Fprintf(r.out, "%-44s %s\n", m.name, m.promise)
		}
		return true, nil
	}
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	if err := r.baseline(ctx, mutants); err != nil {
		return false, err
	}
	return r.all(ctx, scratch, mutants), ctx.Err()
}

func (r runner) load(files []string, only string) ([]mutant, error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		for _, under := range []string{"*", "*/*"} {
			some, err := filepath.Glob(filepath.Join(r.root, "pkg", under, "testdata", "mutants.txt"))
			if err != nil {
				return nil, err
			}
			files = append(files, some...)
		}
	}
	var mutants []mutant
	names := map[string]string{}
	for _, file := range files {
		some, err := read(file)
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			if other := names[m.name]; other != "" {
				return nil, fmt.Errorf("%s: there is a mutant %s in %s already", m.where, m.name, other)
			}
			names[m.name] = m.where
			if match.MatchString(m.name) {
				mutants = append(mutants, m)
			}
		}
	}
	if len(mutants) == 0 {
		return nil, fmt.Errorf("there is no mutant to run in %v", files)
	}
	return mutants, nil
}

// baseline runs each test once on the code as it is: a test that fails anyway notices nothing.
func (r runner) baseline(ctx context.Context, mutants []mutant) error {
	seen := map[string]bool{}
	for _, m := range mutants {
		if seen[m.testLine()] {
			continue
		}
		seen[m.testLine()] = true
		began := time.Now()
		if failed, output := r.test(ctx, m.test, ""); failed {
			return fmt.Errorf("%s: the test fails on the code as it is: go test %s\n%s", m.where, m.testLine(), output)
		}
		fmt.Fprintf(r.out, "passes as it is: go test %s (%.1f s)\n", m.testLine(), time.Since(began).Seconds())
	}
	return nil
}

// all runs the mutants and reports each as it ends.
func (r runner) all(ctx context.Context, scratch string, mutants []mutant) bool {
	next := make(chan int)
	bad := make([]string, len(mutants))
	var group sync.WaitGroup
	var out sync.Mutex
	for range max(1, r.jobs) {
		group.Go(func() {
			for i := range next {
				m := mutants[i]
				began := time.Now()
				verdict := r.one(ctx, filepath.Join(scratch, fmt.Sprint(i)), m)
				if !verdict.noticed {
					bad[i] = fmt.Sprintf("%s (%s): %s: %s", m.name, m.where, m.promise, verdict.says)
				}
				out.Lock()
				fmt.Fprintf(r.out, "%-9s %-44s %5.1f s  %s\n", verdict.word(), m.name, time.Since(began).Seconds(), verdict.says)
				out.Unlock()
			}
		})
	}
	for i := range mutants {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	group.Wait()
	count := 0
	for _, says := range bad {
		if says != "" {
			count++
			fmt.Fprintln(r.out, "NOT NOTICED", says)
		}
	}
	fmt.Fprintf(r.out, "%d of %d mutants were noticed\n", len(mutants)-count, len(mutants))
	return count == 0
}
