// Package docx reads the text of a Word document as its reader sees it: with list numbers, tables, notes, text boxes,
// headers and footers; tracked changes are read as if accepted.
//
// It may decide: what of a document is text and in which order.
// It may not: expand more than its limits, open what the text does not need, or lose text without a note.
package docx

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"holdfast/pkg/ingest/unread"
	"holdfast/pkg/pipeline"
)

// reader is what the parts of one document share.
type reader struct {
	pack   *pack
	lists  *lists
	styles *styles
	notes  *notes
	tally  *tally
	left   int // bytes of text that may still be made
}

// Read is the text of a DOCX file.
func Read(ctx context.Context, source []byte, limits Limits) (pipeline.Document, error) {
	p, err := openPack(source, limits)
	if err != nil {
		return pipeline.Document{}, err
	}
	main, rels, err := p.main(ctx)
	if err != nil {
		return pipeline.Document{}, err
	}
	r := &reader{pack: p, notes: newNotes(), tally: &tally{}, left: limits.Text}
	if r.styles, err = readStyles(ctx, p, rels.one("styles")); err != nil {
		return pipeline.Document{}, err
	}
	if r.lists, err = readLists(ctx, p, rels.one("numbering")); err != nil {
		return pipeline.Document{}, err
	}
	lines, err := r.read(ctx, main, rels)
	if err != nil {
		return pipeline.Document{}, err
	}
	d, err := document(lines, limits.Text)
	if err != nil {
		return pipeline.Document{}, err
	}
	if len(lines) == 0 {
		return pipeline.Document{}, r.noText()
	}
	d.Origin.Notes, d.Origin.Unread = r.told(), r.unread()
	return d, nil
}

// read is all lines: headers, the body with its notes, footers.
func (r *reader) read(ctx context.Context, main string, rels relations) ([]line, error) {
	for _, kind := range []string{"footnote", "endnote"} {
		if err := r.readNotes(ctx, kind, rels.one(kind+"s")); err != nil {
			return nil, err
		}
	}
	body, margins, err := r.body(ctx, main)
	if err != nil {
		return nil, err
	}
	header, err := r.margins(ctx, "header", margins, rels)
	if err != nil {
		return nil, err
	}
	footer, err := r.margins(ctx, "footer", margins, rels)
	if err != nil {
		return nil, err
	}
	return append(append(header, body...), footer...), nil
}

func (r *reader) walker(s *stream, part string) *walker {
	return &walker{stream: s, part: part, count: newCounters(r.lists), styles: r.styles, notes: r.notes, tally: r.tally, left: r.left}
}

// body reads the main part. If a field in it never ends, what looked like its instruction is text: it is read again.
func (r *reader) body(ctx context.Context, main string) (lines []line, margins []margin, err error) {
	for _, plain := range []bool{false, true} {
		before, left := *r.tally, r.left
		err = r.pack.inPart(ctx, main, func(s *stream, _ element) error {
			w := r.walker(s, "")
			w.plain = plain
			err := w.block()
			w.flush()
			lines, margins = w.lines, w.margins
			r.left = w.left
			if err == nil && len(w.fields) > 0 && !plain {
				return errUnended
			}
			return err
		})
		if !errors.Is(err, errUnended) {
			return lines, margins, err
		}
		*r.tally, r.left = before, left
		r.notes.shown, r.notes.boxes = newNotes().shown, 0
	}
	return lines, margins, err
}

var errUnended = errors.New("a field never ends")

// margins are the lines of all headers or footers that a section refers to; equal ones once.
func (r *reader) margins(ctx context.Context, kind string, refs []margin, rels relations) ([]line, error) {
	var all []line
	seen, n := map[string]bool{}, 0
	for _, ref := range refs {
		part := rels.byID[ref.id]
		if ref.kind != kind || part == "" || seen[part] || !r.pack.has(part) {
			continue
		}
		seen[part] = true
		err := r.pack.inPart(ctx, part, func(s *stream, _ element) error {
			w := r.walker(s, kind)
			w.n = n
			err := w.block()
			w.flush()
			r.left, n = w.left, w.n
			if text := textOf(w.lines); !seen["\x00"+text] {
				seen["\x00"+text] = true
				all = append(all, w.lines...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func textOf(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.String()
}

func (r *reader) noText() error {
	if r.pack.holds(path.Join("word", "media")) {
		return fmt.Errorf("%w: it holds nothing but pictures; run text recognition (OCR) on them first and submit what that gives", unread.ErrNoText)
	}
	return fmt.Errorf("%w: it is a Word document without any; check that it is the right file", unread.ErrNoText)
}

// told is what the reader must know: what was left out, and how changes were read.
func (r *reader) told() (notes []string) {
	t := r.tally
	say := func(n int, format string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf(format, n))
		}
	}
	if t.insertions+t.deletions > 0 {
		notes = append(notes, fmt.Sprintf("It has tracked changes. They were read as if accepted: %d insertions are in the text, %d deletions are not.", t.insertions, t.deletions))
	}
	say(t.comments, "Its comments (%d) are no part of the text and were not read.")
	say(t.contents, "Its table of contents was left out: the headings come again (%d left out).")
	say(t.hidden, "It has hidden text (%d places), which was read like any other.")
	say(t.unknown, "It has %d signs of picture fonts that nobody can name; they stand as "+unknownSign+" in the text.")
	if parts := r.unread(); len(parts) > 0 {
		notes = append(notes, fmt.Sprintf("NOT READ: %s. Put what they say into the document as text if it is to be judged.", pipeline.NotRead(parts)))
	}
	return notes
}

// unread is what stands in the document and is no text of its own.
func (r *reader) unread() (parts []pipeline.Unread) {
	for _, part := range []struct {
		there bool
		what  string
	}{
		{r.tally.embedded > 0, "imported documents"},
		{r.pack.holds("word/embeddings/"), "embedded documents"},
		{r.pack.holds("word/diagrams/data"), "diagrams"},
		{r.pack.holds("word/charts/"), "charts"},
	} {
		if part.there {
			parts = append(parts, pipeline.Unread{What: part.what, Why: "no text of the document itself"})
		}
	}
	return parts
}
