// Command eval measures the review of the offline model against the labels of CUAD, beside a baseline of one regular
// expression for each kind of clause.
//
//	make eval CUAD=DIR
//
// It reviews every contract of the folder that the classifier was not trained on (scripts/cuad/trained.txt names those
// it was; of the folder that it was trained from, the rest is the hold-out, scripts/cuad/holdout.txt). A review is what a
// job does, in this process and without a store: the shipped definition, the splitter, every call to the offline model,
// answers checked and read, quotes placed, findings merged and absences decided.
//
// How each figure is made stands in README.md beside this file.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipelines"
	"holdfast/scripts/cuad"
)

func main() {
	dir := flag.String("cuad", "", "`folder` with txt/ and labels.csv")
	training := flag.Bool("training-baseline", false, "measure the baseline alone, on what was trained on")
	flag.Parse()
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "eval: name the folder of CUAD: make eval CUAD=DIR")
		os.Exit(2)
	}
	if err := run(*dir, *training); err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

func run(dir string, training bool) error {
	corpus, err := cuad.Read(dir)
	if err != nil {
		return err
	}
	held, trained := cuad.Holdout(), cuad.Trained()
	var chosen []cuad.Contract
	others := 0
	for _, c := range corpus.Contracts {
		if slices.Contains(trained, c.Name) != training {
			continue
		}
		if !training && !slices.Contains(held, c.Name) {
			others++
		}
		chosen = append(chosen, c)
	}
	if len(chosen) == 0 {
		return fmt.Errorf("%s holds no contract that can be measured: all of its %d were trained on", dir, len(corpus.Contracts))
	}
	fmt.Printf("%s@%s on %d contracts, %d of them of the hold-out (%d trained on are left out; no labels for: %v)\n\n", offline.Name, offline.Version,
		len(chosen), len(chosen)-others, len(corpus.Contracts)-len(chosen), corpus.Unmatched)
	sheets, err := measureAll(chosen, training)
	if err != nil {
		return err
	}
	report(os.Stdout, sheets)
	return nil
}

// measureAll measures contracts side by side; the sheets are in the contracts' order.
func measureAll(contracts []cuad.Contract, baselineOnly bool) ([]sheet, error) {
	d, err := pipelines.Load("contract-review", "full")
	if err != nil {
		return nil, fmt.Errorf("load the pipeline: %w", err)
	}
	sheets, errs := make([]sheet, len(contracts)), make([]error, len(contracts))
	var wg sync.WaitGroup
	turns := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range turns {
				sheets[i], errs[i] = measure(d, contracts[i], baselineOnly)
			}
		})
	}
	for i := range contracts {
		turns <- i
	}
	close(turns)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("review %s: %w", contracts[i].Name, err)
		}
	}
	return sheets, nil
}
