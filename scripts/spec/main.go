// Command spec searches the models of pkg/simulation/spec: every history of one task and of one job, within bounds.
//
//	go run ./scripts/spec                    the larger worlds
//	go run ./scripts/spec -only REGEX        those whose name matches
//	go run ./scripts/spec -broken            the shortest history that breaks a promise once a rule is taken away, for each rule
//
// It exits with 1 if a promise is broken, or if a broken model breaks none.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"

	"holdfast/pkg/simulation/spec"
)

func main() {
	only := flag.String("only", "", "search those whose name matches this regular `expression`")
	broken := flag.Bool("broken", false, "take away one rule at a time and print the history that breaks a promise")
	limit := flag.Int("limit", 12_000_000, "how many states a search may have; a million is some 300 MB")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "spec: -only:", err)
		os.Exit(2)
	}
	run := runner{match: match, limit: *limit}
	if *broken {
		run.broken()
	} else {
		run.whole()
	}
	if run.failed > 0 || run.ran == 0 {
		fmt.Fprintf(os.Stderr, "spec: %d of %d failed\n", run.failed, run.ran)
		os.Exit(1)
	}
}

type runner struct {
	match       *regexp.Regexp
	limit       int
	ran, failed int
	states      int
}

// whole searches the worlds in which nothing may break.
func (r *runner) whole() {
	for _, w := range append(spec.Small(), spec.Large()...) {
		r.one("a task: "+w.Name, func() spec.Report { return spec.Search(&spec.Task{Bounds: w.Bounds}, r.limit) })
	}
	for _, w := range append(spec.SmallJobs(), spec.LargeJobs()...) {
		r.one("a job: "+w.Name, func() spec.Report { return spec.Search(&spec.Job{JobBounds: w.JobBounds}, r.limit) })
	}
	fmt.Printf("%d worlds, %d states. Held in each of them:\n", r.ran, r.states)
	for _, line := range spec.Promises() {
		fmt.Println("  " + line)
	}
}

func (r *runner) one(name string, search func() spec.Report) {
	if !r.match.MatchString(name) {
		return
	}
	report := search()
	runtime.GC() // the next one needs the room
	r.ran++
	r.states += report.States
	if !report.Held() {
		r.failed++
	}
	fmt.Printf("%s: %s\n", name, report)
}

// broken searches the models that must break.
func (r *runner) broken() {
	for _, v := range spec.Broken() {
		r.must(v.Name, v.Says, func() spec.Report { return spec.Search(&spec.Task{Bounds: v.Bounds, Broken: v.Break}, r.limit) })
	}
	for _, v := range spec.BrokenJobs() {
		r.must(v.Name, v.Says, func() spec.Report { return spec.Search(&spec.Job{JobBounds: v.JobBounds, Broken: v.Break}, r.limit) })
	}
	fmt.Printf("%d of %d models without one of the rules break a promise\n", r.ran-r.failed, r.ran)
}

func (r *runner) must(name, rule string, search func() spec.Report) {
	if !r.match.MatchString(name) {
		return
	}
	report := search()
	r.ran++
	if report.Broken == "" {
		r.failed++
	}
	fmt.Printf("%s, without the rule that %s: %s\n\n", name, rule, report)
}
