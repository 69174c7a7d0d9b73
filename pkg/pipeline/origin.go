package pipeline

import (
	"fmt"
	"slices"
)

// Document is what ingest makes of what was submitted.
type Document struct {
	Text   string
	Origin Origin
}

// OriginVersion is the format of Origin that this program writes.
const OriginVersion = 1

// Origin is the map back: where the text stood in what was submitted, and what of it was not read. It is optional: a
// plain text has none, and whoever finds another version goes without.
type Origin struct {
	Version  int          `json:"version"`
	Format   string       `json:"format"`          // of the source: text, docx, pdf
	Unit     string       `json:"unit,omitempty"`  // what is counted in the body: page, paragraph
	Document string       `json:"document"`        // sha256 of the text that it maps
	Notes    []string     `json:"notes,omitempty"` // for the reader: what was left out, what could not be read
	Unread   []Unread     `json:"unread,omitempty"`
	Parts    []OriginPart `json:"parts,omitempty"` // they tile the text, in its order
}

// OriginPart is a stretch of the text whose units follow each other in the source.
type OriginPart struct {
	Name    string `json:"name,omitempty"` // header, footer, footnote, endnote, text box; empty for the body
	First   int    `json:"first"`          // number of its first unit, from 1
	Lengths []int  `json:"lengths"`        // bytes of each unit in the text; 0 for one without text
}

// Where is the place in the source that the byte at offset came from, for people: "page 12", "footnote 3". Empty if it
// is not known.
func (o Origin) Where(offset int) string {
	if o.Version != OriginVersion || offset < 0 {
		return ""
	}
	end := 0
	for _, part := range o.Parts {
		for i, length := range part.Lengths {
			if end += length; offset < end {
				return part.name(o.Unit, part.First+i)
			}
		}
	}
	return ""
}

func (p OriginPart) name(unit string, n int) string {
	switch p.Name {
	case "":
		return fmt.Sprintf("%s %d", unit, n)
	case "footnote", "endnote":
		return fmt.Sprintf("%s %d", p.Name, n)
	}
	return fmt.Sprintf("%s, %s %d", p.Name, unit, n)
}

// Add puts length bytes of the unit n of the named part behind what is there.
func (o *Origin) Add(name string, n, length int) {
	if len(o.Parts) > 0 {
		last := &o.Parts[len(o.Parts)-1]
		skipped := n - (last.First + len(last.Lengths))
		switch {
		case last.Name == name && skipped == -1:
			last.Lengths[len(last.Lengths)-1] += length
			return
		case last.Name == name && skipped >= 0 && skipped < 100:
			last.Lengths = append(slices.Grow(last.Lengths, skipped+1), make([]int, skipped)...)
			last.Lengths = append(last.Lengths, length)
			return
		}
	}
	o.Parts = append(o.Parts, OriginPart{Name: name, First: n, Lengths: []int{length}})
}

// OriginKey is the blob key of the map of a source, by the hash of its bytes.
func OriginKey(source string) string { return "source/" + source + ".origin" }
