package docx

import (
	"strings"
)

// tally counts what the reader of the text must be told.
type tally struct {
	insertions, deletions, comments, hidden, unknown, contents, embedded int
}

// walker turns one part into lines.
type walker struct {
	*stream
	part    string // of the document, as the map back names it
	count   *counters
	styles  *styles
	notes   *notes
	tally   *tally
	left    int  // bytes of text that may still be made
	plain   bool // fields are not told from text: one of them never ends
	fields  []field
	n       int // paragraphs so far
	lines   []line
	prefix  line // of a paragraph whose end was deleted
	margins []margin
}

// paragraph is one that is being read.
type paragraph struct {
	b     strings.Builder
	after []line // text boxes and notes that stand in it
}

// block reads what stands beside each other: paragraphs, tables, and what holds them.
func (w *walker) block() error {
	return w.each(w.inBlock, nil)
}

func (w *walker) inBlock(e element) error {
	switch e.name {
	case "p":
		return w.paragraph()
	case "tbl":
		return w.table()
	case "del", "moveFrom":
		w.tally.deletions++
		return w.skip()
	case "ins", "moveTo":
		w.tally.insertions++
	case "sectPr":
		margins, err := readMargins(w.stream)
		w.margins = append(w.margins, margins...)
		return err
	case "altChunk":
		w.tally.embedded++
	case "sdtPr", "sdtEndPr", "tblPr", "tblGrid", "tcPr":
		return w.skip()
	case "mc:AlternateContent":
		return w.alternate(w.inBlock)
	}
	return w.block()
}

// alternate reads the first of the alternatives, which are the same thing for different programs.
func (w *walker) alternate(f func(element) error) error {
	done := false
	return w.each(func(e element) error {
		if done || (e.name != "mc:Choice" && e.name != "mc:Fallback") {
			return w.skip()
		}
		before := w.left
		err := w.each(f, nil)
		done = w.left != before // one without text says nothing: another may
		return err
	}, nil)
}

// inside reads lines apart: of a cell, a text box, a note.
func (w *walker) inside(read func() error) ([]line, error) {
	lines, prefix := w.lines, w.prefix
	w.lines, w.prefix = nil, line{}
	err := read()
	w.flush()
	inner := w.lines
	w.lines, w.prefix = lines, prefix
	return inner, err
}

func (w *walker) paragraph() error {
	w.n++
	n, p, props := w.n, &paragraph{}, properties{level: -1}
	err := w.each(func(e element) error {
		if e.name == "pPr" {
			var err error
			props, err = readProperties(w.stream)
			return err
		}
		return w.inline(p, e)
	}, nil)
	if err != nil {
		return err
	}
	w.margins = append(w.margins, props.margins...)
	w.put(n, p, props)
	w.lines = append(w.lines, p.after...)
	return nil
}

// put adds the paragraph, with what was left over from one before it whose end was deleted.
func (w *walker) put(n int, p *paragraph, props properties) {
	own := line{text: p.b.String(), from: []from{{0, w.part, n}}}
	if props.removed {
		w.prefix = glue(w.prefix, own)
		return
	}
	label := w.label(props)
	own = glue(w.prefix, own).trimmed()
	w.prefix = line{}
	if own.blank() {
		return
	}
	if label != "" {
		own = labelled(label+" ", own)
	}
	w.lines = append(w.lines, own)
}

// flush puts what was left over at an end.
func (w *walker) flush() {
	if last := w.prefix.trimmed(); !last.blank() {
		w.lines = append(w.lines, last)
	}
	w.prefix = line{}
}

func glue(a, b line) line {
	if a.text == "" {
		return b
	}
	if b.text == "" {
		return a
	}
	for _, f := range b.from {
		f.at += len(a.text)
		a.from = append(a.from, f)
	}
	a.text += b.text
	return a
}

// labelled is the line behind a label that is not in any run.
func labelled(label string, l line) line {
	l.text = label + l.text
	for i := range l.from {
		if i > 0 {
			l.from[i].at += len(label)
		}
	}
	return l
}

// label counts the paragraph in its list. Word counts empty ones too.
func (w *walker) label(props properties) string {
	numID, level := w.styles.list(props.style, w.count.lists)
	if props.numID != "" {
		numID, level = props.numID, max(0, props.level)
	} else if props.level >= 0 {
		level = props.level
	}
	label := w.count.next(numID, level)
	w.left -= len(label) + 2
	return label
}

func (w *walker) table() error {
	return w.each(w.inTable, nil)
}

func (w *walker) inTable(e element) error {
	switch e.name {
	case "tr":
		return w.row()
	case "tblPr", "tblGrid", "sdtPr", "sdtEndPr":
		return w.skip()
	case "del", "moveFrom":
		w.tally.deletions++
		return w.skip()
	case "mc:AlternateContent":
		return w.alternate(w.inTable)
	}
	return w.each(w.inTable, nil)
}

func (w *walker) row() error {
	var cells [][]line
	removed := false
	var inRow func(e element) error
	inRow = func(e element) error {
		switch e.name {
		case "trPr":
			var err error
			removed, err = w.holds("del")
			return err
		case "tc":
			lines, err := w.cell()
			cells = append(cells, lines)
			return err
		case "tblPrEx", "sdtPr", "sdtEndPr":
			return w.skip()
		}
		return w.each(inRow, nil)
	}
	if err := w.each(inRow, nil); err != nil {
		return err
	}
	if removed {
		w.tally.deletions++
		return nil
	}
	w.lines = append(w.lines, row(cells)...)
	return nil
}

// cell is the lines of a cell. Those that a cell above covers are empty in the file, so merged text comes once.
func (w *walker) cell() ([]line, error) {
	removed := false
	lines, err := w.inside(func() error {
		return w.each(func(e element) error {
			if e.name == "tcPr" {
				var err error
				removed, err = w.holds("cellDel")
				return err
			}
			return w.inBlock(e)
		}, nil)
	})
	if removed {
		w.tally.deletions++
		return nil, err
	}
	return lines, err
}

// holds closes the element and says whether a child of that name is in it.
func (w *walker) holds(name string) (found bool, err error) {
	err = w.each(func(e element) error {
		found = found || e.name == name
		return w.skip()
	}, nil)
	return found, err
}
