// Command train makes the weights of the offline model's classifier, pkg/offline/clauses.bin.gz, from a folder of CUAD.
//
//	make train CUAD=DIR        the same folder gives the same file, byte for byte
//	go run ./scripts/train -cuad DIR -parts PARTS     # for `eval -cross`: each part's weights, made of the other parts alone
//
// It trains on every contract of the folder that is not in the hold-out (scripts/cuad/holdout.txt). How likely a sentence
// must be to count is chosen by cross-validation over the same contracts, four parts, each judged by what was learned
// from the other three; filers are never parted. The hold-out is not read. The names of what was trained on go to
// scripts/cuad/trained.txt, so that the evaluation can leave them out of any other folder too.
//
// The weights derive from the Contract Understanding Atticus Dataset (CUAD) v1, The Atticus Project, Inc.,
// https://www.atticusprojectai.org/cuad, CC BY 4.0; the notice travels with them (see NOTICE).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/pkg/offline"
	"holdfast/scripts/cuad"
)

func main() {
	dir := flag.String("cuad", "", "`folder` with txt/ and labels.csv")
	root := flag.String("root", ".", "where the repository is")
	parts := flag.String("parts", "", "write weights that were made without one part each to this `folder`, and none that ship")
	flag.Parse()
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "train: name the folder of CUAD: make train CUAD=DIR")
		os.Exit(2)
	}
	if err := run(*dir, *root, *parts); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(dir, root, parts string) error {
	corpus, err := cuad.Read(dir)
	if err != nil {
		return err
	}
	held := cuad.Holdout()
	contracts := slices.DeleteFunc(corpus.Contracts, func(c cuad.Contract) bool { return slices.Contains(held, c.Name) })
	samples, err := samplesOf(contracts)
	if err != nil {
		return err
	}
	fmt.Printf("%d contracts, %d sentences, %d kinds; %d held out, %d texts without labels: %s\n", len(contracts), len(samples),
		len(offline.Clauses()), len(corpus.Contracts)-len(contracts), len(corpus.Unmatched), strings.Join(corpus.Unmatched, "; "))
	if parts != "" {
		return writeParts(parts, samples, contracts)
	}
	return write(samples, contracts, filepath.Join(root, "pkg", "offline", "clauses.bin.gz"), filepath.Join(root, "scripts", "cuad", "trained.txt"))
}

// writeParts makes, for each part of the cross-validation, weights and limits of the other parts alone: what the whole
// training would have made if the part had never been there.
func writeParts(dir string, samples []sample, contracts []cuad.Contract) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for the parts: %w", err)
	}
	for part := range parts {
		others := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return partOf(contracts[s.contract]) == part })
		name := filepath.Join(dir, fmt.Sprintf("without-%d", part))
		if err := write(others, contracts, name+".bin.gz", name+".txt"); err != nil {
			return err
		}
	}
	return nil
}

// write makes weights of the samples, which are of some of the contracts, and the list of these contracts' names.
func write(samples []sample, contracts []cuad.Contract, weights, names string) error {
	likely := crossValidate(samples, contracts)
	limits, err := choose(training{contracts, samples, likely})
	if err != nil {
		return err
	}
	fmt.Println("By cross-validation over the training part, by category and by check (R: documents, P: passages):")
	for _, line := range limits.lines {
		fmt.Println(line)
	}
	packed, err := pack(learn(samples, len(offline.Clauses())), limits)
	if err != nil {
		return err
	}
	if err := os.WriteFile(weights, packed, 0o644); err != nil {
		return fmt.Errorf("write the weights: %w", err)
	}
	fmt.Printf("%s: %d bytes\n", weights, len(packed))
	return writeNames(names, contracts, samples)
}

func writeNames(file string, contracts []cuad.Contract, samples []sample) error {
	saw := map[int]bool{}
	for _, s := range samples {
		saw[s.contract] = true
	}
	var b strings.Builder
	b.WriteString("# Contracts of CUAD v1 that the weights in pkg/offline were trained on. Written by scripts/train.\n")
	for i, c := range contracts {
		if saw[i] {
			b.WriteString(c.Name + "\n")
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the names of what was trained on: %w", err)
	}
	return nil
}
