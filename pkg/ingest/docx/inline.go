package docx

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"holdfast/pkg/ingest/unread"
)

// inline reads what stands in a paragraph. What is not known may hold text and is looked into.
func (w *walker) inline(p *paragraph, e element) error {
	switch e.name {
	case "t", "m:t":
		text, err := w.chars()
		return join2(err, w.write(p, strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(text)))
	case "tab", "ptab":
		return w.sign(p, "\t")
	case "br", "cr":
		return w.sign(p, "\n")
	case "noBreakHyphen":
		return w.sign(p, "-")
	case "sym":
		return w.sign(p, w.symbol(e.attr("font"), e.attr("char")))
	case "fldChar":
		return w.fieldChar(p, e)
	case "fldSimple":
		return w.simpleField(p, e)
	case "instrText":
		return w.instruction()
	case "footnoteReference", "endnoteReference":
		return w.note(p, e)
	case "commentReference":
		w.tally.comments++
		return w.skip()
	case "txbxContent":
		return w.textBox(p)
	case "del", "moveFrom":
		w.tally.deletions++
		return w.skip()
	case "rPr":
		hidden, err := w.hidden()
		if hidden {
			w.tally.hidden++
		}
		return err
	case "pPr", "sdtPr", "sdtEndPr", "rt", "delText", "delInstrText", "smartTagPr", "customXmlPr":
		return w.skip()
	case "mc:AlternateContent":
		return w.alternate(func(e element) error { return w.inline(p, e) })
	case "p":
		return w.paragraph() // of no text box that is known; it is text all the same
	case "ins", "moveTo":
		w.tally.insertions++
	}
	return w.each(func(e element) error { return w.inline(p, e) }, nil)
}

// join2 is the first error of two steps.
func join2(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func (w *walker) sign(p *paragraph, text string) error {
	return join2(w.write(p, text), w.skip())
}

// write adds text to the paragraph, unless it is of a field that shows none.
func (w *walker) write(p *paragraph, text string) error {
	if w.silent() {
		return nil
	}
	if w.left -= len(text); w.left < 0 {
		return fmt.Errorf("%w: it holds more text than is read; split it into several documents", unread.ErrTooLarge)
	}
	p.b.WriteString(text)
	return nil
}

func (w *walker) hidden() (bool, error) {
	found := false
	err := w.each(func(e element) error {
		found = found || e.name == "vanish" && e.on()
		return w.skip()
	}, nil)
	return found, err
}

// textBox reads a text box. Its lines stand behind the paragraph that it is anchored in. Its paragraphs count by
// themselves: in the body of a document nobody counts them.
func (w *walker) textBox(p *paragraph) error {
	part, n, fields := w.part, w.n, w.fields
	w.part, w.n, w.fields = "text box", w.notes.boxes, nil
	if part == "footnote" || part == "endnote" {
		w.part, w.n = part, n
	}
	lines, err := w.inside(w.block)
	if w.part == "text box" {
		w.notes.boxes = w.n
	}
	w.part, w.n, w.fields = part, n, fields
	p.after = append(p.after, lines...)
	return err
}

// unknownSign stands where a sign of a picture font stood that nobody can name.
const unknownSign = "[?]"

// symbols are the signs of picture fonts that contracts use, by the last byte of their code.
var symbols = map[string]map[byte]string{
	"wingdings": {
		0x6C: "●", 0x6E: "■", 0x6F: "☐", 0x71: "❑", 0x72: "❒", 0x76: "❖", 0x9F: "•", 0xA7: "▪", 0xA8: "☐", 0xD8: "➢",
		0xE0: "→", 0xE8: "➔", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
	},
	"symbol": {0xB7: "•", 0xB0: "°", 0xB1: "±", 0xB3: "≥", 0xA3: "≤", 0xB4: "×", 0xD2: "®", 0xD3: "©", 0xD4: "™", 0xAE: "→", 0x2D: "−"},
}

func (w *walker) symbol(font, char string) string {
	code := 0
	if _, err := fmt.Sscanf(char, "%x", &code); err != nil || code < 0 {
		code = 0
	}
	if sign, ok := symbols[strings.ToLower(font)][byte(code)]; ok {
		return sign
	}
	if code >= 0x20 && code < 0xD800 && utf8.ValidRune(rune(code)) {
		return string(rune(code))
	}
	w.tally.unknown++
	return unknownSign
}
