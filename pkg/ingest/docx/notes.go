package docx

import (
	"context"
	"fmt"
)

// notes are the footnotes and endnotes of the document, by kind and id.
type notes struct {
	lines map[string]map[string][]line
	shown map[string]map[string]int // the number of those that were referred to
	boxes int                       // paragraphs in text boxes so far
}

func newNotes() *notes {
	return &notes{lines: map[string]map[string][]line{}, shown: map[string]map[string]int{"footnote": {}, "endnote": {}}}
}

// readNotes reads the part with all notes of a kind. Separators are notes too, and have a type.
func (r *reader) readNotes(ctx context.Context, kind, part string) error {
	r.notes.lines[kind] = map[string][]line{}
	if part == "" || !r.pack.has(part) {
		return nil
	}
	return r.pack.inPart(ctx, part, func(s *stream, _ element) error {
		w := r.walker(s, kind)
		return w.each(func(e element) error {
			if separates := e.attr("type"); e.name != kind || (separates != "" && separates != "normal") {
				return w.skip()
			}
			lines, err := w.inside(w.block)
			r.notes.lines[kind][e.attr("id")] = lines
			r.left = w.left
			return err
		}, nil)
	})
}

// note puts the mark of a note into the paragraph, and the note's text behind the paragraph the first time.
func (w *walker) note(p *paragraph, e element) error {
	kind, id := e.name[:len(e.name)-len("Reference")], e.attr("id")
	lines, ok := w.notes.lines[kind][id]
	if !ok || w.silent() {
		return w.skip()
	}
	n, again := w.notes.shown[kind][id]
	if !again {
		n = len(w.notes.shown[kind]) + 1
		w.notes.shown[kind][id] = n
		p.after = append(p.after, noteLines(kind, n, lines)...)
	}
	mark := fmt.Sprintf("[%d]", n)
	if kind == "endnote" {
		mark = fmt.Sprintf("[%s]", ordinal(n, "lowerRoman"))
	}
	return w.sign(p, mark)
}

func noteLines(kind string, n int, lines []line) []line {
	name, number := "Footnote", fmt.Sprint(n)
	if kind == "endnote" {
		name, number = "Endnote", ordinal(n, "lowerRoman")
	}
	out := make([]line, len(lines))
	for i, l := range lines {
		out[i] = line{text: l.text, from: make([]from, len(l.from))}
		for j, f := range l.from {
			out[i].from[j] = from{f.at, kind, n}
		}
		if i == 0 {
			out[i] = labelled(fmt.Sprintf("[%s %s] ", name, number), out[i])
		}
	}
	return out
}
