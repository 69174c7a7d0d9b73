// Command train makes the weights of the offline model's classifier, pkg/offline/clauses.bin.gz, from a folder of CUAD.
//
//	make train CUAD=DIR        the same folder gives the same file, byte for byte
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
	flag.Parse()
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "train: name the folder of CUAD: make train CUAD=DIR")
		os.Exit(2)
	}
	if err := run(*dir, *root); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(dir, root string) error {
	corpus, err := cuad.Read(dir)
	if err != nil {
		return err
	}
	held := cuad.Holdout()
	training := slices.DeleteFunc(corpus.Contracts, func(c cuad.Contract) bool { return slices.Contains(held, c.Name) })
	samples, err := samplesOf(training)
	if err != nil {
		return err
	}
	fmt.Printf("%d contracts, %d sentences, %d kinds; %d held out, %d texts without labels: %s\n", len(training), len(samples),
		len(offline.Clauses()), len(corpus.Contracts)-len(training), len(corpus.Unmatched), strings.Join(corpus.Unmatched, "; "))
	likely := crossValidate(samples, training)
	limits := choose(samples, likely)
	fmt.Println("By cross-validation over the training part, by check and by category (R: documents, P: passages):")
	for _, line := range slices.Concat(limits.lines, limits.byCategory(samples, likely)) {
		fmt.Println(line)
	}
	packed, err := pack(learn(samples, len(offline.Clauses())), limits)
	if err != nil {
		return err
	}
	file := filepath.Join(root, "pkg", "offline", "clauses.bin.gz")
	if err := os.WriteFile(file, packed, 0o644); err != nil {
		return fmt.Errorf("write the weights: %w", err)
	}
	fmt.Printf("%s: %d bytes\n", file, len(packed))
	return writeNames(filepath.Join(root, "scripts", "cuad", "trained.txt"), training)
}

func writeNames(file string, contracts []cuad.Contract) error {
	var b strings.Builder
	b.WriteString("# Contracts of CUAD v1 that the weights in pkg/offline were trained on. Written by scripts/train.\n")
	for _, c := range contracts {
		b.WriteString(c.Name + "\n")
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the names of what was trained on: %w", err)
	}
	return nil
}
