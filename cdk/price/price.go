// Package price reckons what a deployment costs a month while nothing is done: from its templates, and from the prices
// and assumptions in one file, which says where they are from and of when they are.
//
// It may not: price what work costs. That is by the call, and `holdfast plan` tells it.
package price

import (
	_ "embed" // the prices
	"encoding/json"
	"fmt"
	"strings"

	"holdfast/cdk/template"
)

//go:embed prices.json
var file []byte

// List is the file.
type List struct {
	Region string             `json:"region"`
	AsOf   string             `json:"as_of"`
	Source string             `json:"source"`
	Hours  float64            `json:"hours_per_month"`
	Prices map[string]float64 `json:"prices"`
	Idle   map[string]struct {
		Value float64 `json:"value"`
		Why   string  `json:"why"`
	} `json:"idle"`
}

// Read reads the file.
func Read() (List, error) {
	var l List
	if err := json.Unmarshal(file, &l); err != nil {
		return l, fmt.Errorf("read the prices: %w", err)
	}
	return l, nil
}

// Line is one part of a bill.
type Line struct {
	What    string
	Dollars float64 // a month
}

// bill is a bill while it is reckoned.
type bill struct {
	List
	lines []Line
	errs  []string
}

// Idle is what the templates' resources cost a month while there is no job, without free tiers, dearest lines as they
// come. A resource of a type that nobody has thought about is an error: it might cost something.
func Idle(l List, t template.Template) ([]Line, float64, error) {
	b := &bill{List: l}
	for _, r := range t.Resources {
		if _, known := perResource[r.Type]; !known && !free[r.Type] {
			b.errs = append(b.errs, r.Type)
		}
	}
	if len(b.errs) > 0 {
		return nil, 0, fmt.Errorf("nobody has said what these cost while idle: %s; add them to price.go", strings.Join(unique(b.errs), ", "))
	}
	for _, kind := range order {
		if all := t.Of(kind); len(all) > 0 {
			perResource[kind](b, all, t)
		}
	}
	sum := 0.0
	for _, line := range b.lines {
		sum += line.Dollars
	}
	if len(b.errs) > 0 {
		return nil, 0, fmt.Errorf("the price list lacks: %s", strings.Join(unique(b.errs), ", "))
	}
	return b.lines, sum, nil
}

func (b *bill) add(what string, dollars float64) { b.lines = append(b.lines, Line{what, dollars}) }

// of is a price.
func (b *bill) of(name string) float64 {
	price, known := b.Prices[name]
	if !known {
		b.errs = append(b.errs, name)
	}
	return price
}

// idle is an assumption about a deployment that does nothing.
func (b *bill) idle(name string) float64 {
	assumed, known := b.List.Idle[name]
	if !known {
		b.errs = append(b.errs, name)
	}
	return assumed.Value
}

func unique(all []string) (once []string) {
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s] {
			seen[s] = true
			once = append(once, s)
		}
	}
	return once
}
