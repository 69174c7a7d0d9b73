// Command eval measures the review of the offline model against the labels of CUAD, beside a baseline of one regular
// expression for each kind of clause.
//
//	make eval CUAD=DIR
//	go run ./scripts/eval -cuad DIR -cross PARTS     # by cross-validation over what was trained on; the hold-out is not read
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
	cross := flag.String("cross", "", "measure what was trained on instead, by the weights in this `folder` (see cross.go)")
	flag.Parse()
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "eval: name the folder of CUAD: make eval CUAD=DIR")
		os.Exit(2)
	}
	if err := run(*dir, *cross); err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

func run(dir, cross string) error {
	corpus, err := cuad.Read(dir)
	if err != nil {
		return err
	}
	held, trained := cuad.Holdout(), cuad.Trained()
	var chosen []cuad.Contract
	others := 0
	for _, c := range corpus.Contracts {
		if slices.Contains(trained, c.Name) != (cross != "") {
			continue
		}
		if !slices.Contains(held, c.Name) {
			others++
		}
		chosen = append(chosen, c)
	}
	if len(chosen) == 0 {
		return fmt.Errorf("%s holds no contract that can be measured: all of its %d were trained on, or none", dir, len(corpus.Contracts))
	}
	turns := shipped(chosen)
	if cross != "" {
		if turns, err = crossed(cross, chosen); err != nil {
			return err
		}
	}
	fmt.Printf("%s@%s on %d contracts, %d of them of the hold-out (%d are left out; no labels for: %v)\n\n", offline.Name, offline.Version,
		len(chosen), len(chosen)-others, len(corpus.Contracts)-len(chosen), corpus.Unmatched)
	sheets, err := measureAll(turns)
	if err != nil {
		return err
	}
	report(os.Stdout, sheets)
	return nil
}

// measureAll measures contracts side by side; the sheets are in their order.
func measureAll(all []turn) ([]sheet, error) {
	d, err := pipelines.Load("contract-review", "full")
	if err != nil {
		return nil, fmt.Errorf("load the pipeline: %w", err)
	}
	sheets, errs := make([]sheet, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				sheets[i], errs[i] = measure(d, all[i])
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("review %s: %w", all[i].contract.Name, err)
		}
	}
	return sheets, nil
}
