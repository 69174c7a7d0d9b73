package docx

import "strings"

// maxInstruction bounds what is kept of a field's instruction: its beginning says what it is.
const maxInstruction = 64

// field is one that has begun and not ended.
type field struct {
	instruction string
	result      bool // its result has begun
	contents    bool // it is a table of contents: made from the headings, which come again
}

// silent says that what comes is not shown: an instruction, or a table of contents.
func (w *walker) silent() bool {
	if w.plain {
		return false
	}
	for _, f := range w.fields {
		if !f.result || f.contents {
			return true
		}
	}
	return false
}

func (w *walker) instruction() error {
	text, err := w.chars()
	if last := len(w.fields) - 1; last >= 0 && len(w.fields[last].instruction) < maxInstruction {
		w.fields[last].instruction += text[:min(len(text), maxInstruction)]
	}
	return err
}

func (w *walker) fieldChar(p *paragraph, e element) error {
	switch e.attr("fldCharType") {
	case "begin":
		box, err := w.checkBox()
		if err != nil {
			return err
		}
		if err := w.write(p, box); err != nil {
			return err
		}
		w.fields = append(w.fields, field{})
		return nil
	case "separate":
		if last := len(w.fields) - 1; last >= 0 {
			f := &w.fields[last]
			f.result, f.contents = true, isContents(f.instruction)
			if f.contents {
				w.tally.contents++
			}
		}
	case "end":
		if last := len(w.fields) - 1; last >= 0 {
			w.fields = w.fields[:last]
		}
	}
	return w.skip()
}

// simpleField is a field in one element: its content is its result.
func (w *walker) simpleField(p *paragraph, e element) error {
	contents := isContents(e.attr("instr"))
	if contents {
		w.tally.contents++
	}
	w.fields = append(w.fields, field{result: true, contents: contents})
	err := w.each(func(e element) error { return w.inline(p, e) }, nil)
	w.fields = w.fields[:max(0, len(w.fields)-1)]
	return err
}

func isContents(instruction string) bool {
	words := strings.Fields(instruction)
	return len(words) > 0 && strings.EqualFold(words[0], "TOC")
}

// checkBox closes the beginning of a field and is the box that it shows, if it is one of a form.
func (w *walker) checkBox() (string, error) {
	box := ""
	var inField func(e element) error
	inField = func(e element) error {
		switch e.name {
		case "checkBox":
			box = "☐"
		case "default", "checked":
			if box != "" {
				box = "☐"
				if e.on() {
					box = "☒"
				}
			}
		}
		return w.each(inField, nil)
	}
	err := w.each(inField, nil)
	return box, err
}
