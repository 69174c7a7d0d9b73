// Package cuad reads a folder of the Contract Understanding Atticus Dataset (CUAD v1, The Atticus Project, Inc.,
// https://www.atticusprojectai.org/cuad, CC BY 4.0) for training and evaluation: txt/ holds the contracts, labels.csv
// the clauses that lawyers marked in them. Nothing of it is kept here but the names of contracts.
//
// It may decide: which text a row of labels belongs to and where in the text a labelled clause stands. It may not: know
// what the labels are used for.
package cuad

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Span is a range of bytes of a contract's text.
type Span struct{ Start, End int }

// Overlap is how many bytes two spans have in common.
func (s Span) Overlap(o Span) int { return max(0, min(s.End, o.End)-max(s.Start, o.Start)) }

// leastOverlap is how many bytes a passage and a marked clause must share to be about the same, or all of the shorter.
const leastOverlap = 15

// Meets says that a passage and a marked clause are about the same.
func (s Span) Meets(o Span) bool {
	return s.Overlap(o) >= min(leastOverlap, s.End-s.Start, o.End-o.Start)
}

// Distinct joins places that overlap: a passage counts once, however many findings quote it.
func Distinct(found []Span) []Span {
	sorted := slices.Clone(found)
	slices.SortFunc(sorted, func(a, b Span) int { return a.Start - b.Start })
	var all []Span
	for _, f := range sorted {
		if n := len(all); n > 0 && f.Start < all[n-1].End {
			all[n-1].End = max(all[n-1].End, f.End)
			continue
		}
		all = append(all, f)
	}
	return all
}

// Contract is one text with the clauses that were marked in it, by the names that CUAD gives to kinds of clauses.
type Contract struct {
	Name    string // of the file, without .txt
	Text    string
	Clauses map[string][]Span
	Lost    int // marked clauses that do not stand in the text
}

// Group is the part of the name that tells who filed the contract. Contracts of one group resemble each other, so they
// are trained on, or held out, together.
func (c Contract) Group() string {
	filer, _, _ := strings.Cut(c.Name, "_")
	filer, _, _ = strings.Cut(filer, " - ")
	return plain(filer)
}

// Corpus is a folder's contracts, by name, and the texts that no row of labels could be found for.
type Corpus struct {
	Contracts []Contract
	Unmatched []string
}

// Read reads dir/txt/*.txt and dir/labels.csv.
func Read(dir string) (Corpus, error) {
	rows, err := readRows(filepath.Join(dir, "labels.csv"))
	if err != nil {
		return Corpus{}, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "txt", "*.txt"))
	if err != nil || len(files) == 0 {
		return Corpus{}, fmt.Errorf("there is no text in %s: CUAD=DIR must name a folder with txt/ and labels.csv", filepath.Join(dir, "txt"))
	}
	var corpus Corpus
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		row, ok := rows[plain(name)]
		if !ok {
			corpus.Unmatched = append(corpus.Unmatched, name)
			continue
		}
		body, err := os.ReadFile(file)
		if err != nil {
			return Corpus{}, fmt.Errorf("read a contract: %w", err)
		}
		corpus.Contracts = append(corpus.Contracts, contract(name, strings.ToValidUTF8(string(body), "?"), row))
	}
	slices.SortFunc(corpus.Contracts, func(a, b Contract) int { return strings.Compare(a.Name, b.Name) })
	return corpus, nil
}

// plain is a name without what differs between the spellings of one: case, punctuation and spaces.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// readRows is the marked clauses by the plain name of their contract and then by kind.
func readRows(file string) (map[string]map[string][]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the labels: %w", err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the labels: %w", err)
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("%s is empty", file)
	}
	rows := map[string]map[string][]string{}
	for _, record := range records[1:] {
		row := map[string][]string{}
		for i, kind := range records[0] {
			if i > 0 && !strings.Contains(kind, "Answer") {
				row[kind] = listed(record[i])
			}
		}
		rows[plain(withoutPDF(record[0]))] = row
	}
	return rows, nil
}

func withoutPDF(name string) string {
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".pdf") {
		return strings.TrimSuffix(name, ext)
	}
	return name
}

func contract(name, text string, row map[string][]string) Contract {
	c := Contract{Name: name, Text: text, Clauses: map[string][]Span{}}
	index := newPlaces(text)
	for kind, clauses := range row {
		for _, clause := range clauses {
			found := false
			for _, part := range strings.Split(clause, "<omitted>") {
				if span, ok := index.find(part); ok {
					c.Clauses[kind] = append(c.Clauses[kind], span)
					found = true
				}
			}
			if !found {
				c.Lost++
			}
		}
	}
	return c
}

//go:embed holdout.txt
var holdout string

// Holdout are the names of the contracts that are never trained on.
func Holdout() []string { return Names(holdout) }

//go:embed trained.txt
var trained string

// Trained are the names of the contracts that the shipped weights were made of.
func Trained() []string { return Names(trained) }

// Names are the lines of a list of names; lines that begin with # are for the reader.
func Names(list string) []string {
	var names []string
	for _, line := range strings.Split(list, "\n") {
		if line = strings.TrimSuffix(line, "\r"); line != "" && !strings.HasPrefix(line, "#") { // some names end with a space
			names = append(names, line)
		}
	}
	return names
}
