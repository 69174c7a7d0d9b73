package pdf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"holdfast/pkg/ingest/unread"
	"holdfast/pkg/pipeline"
)

const (
	fewLetters   = 50  // a page with fewer may be a scan with a stamp on it
	scanCovers   = 0.6 // share of a page that the picture of a scan covers at least
	unknownShare = 50  // one unknown letter in so many is too many
	unknownSign  = "[?]"
)

// collection puts pages together.
type collection struct {
	cfg     Config
	text    strings.Builder
	origin  pipeline.Origin
	unread  []int // pages that show something and hold no text
	damaged []int // pages whose content cannot be read to its end
	letters int
	unknown int
	vague   []int // pages with letters that nobody can tell
}

func (c *collection) add(n int, p page) error {
	text, unknown := clean(p.text)
	found := letters(text)
	switch {
	case found == 0 && p.objects > 0, found < fewLetters && p.image >= scanCovers:
		c.unread = append(c.unread, n)
	}
	if unknown > 0 {
		c.vague = append(c.vague, n)
	}
	c.letters, c.unknown = c.letters+found, c.unknown+unknown
	if text != "" {
		text += "\n"
	}
	if c.text.Len()+len(text) > c.cfg.Text {
		return fmt.Errorf("%w: it holds more than %d MB of text; split it into several documents", unread.ErrTooLarge, c.cfg.Text>>20)
	}
	c.text.WriteString(text)
	c.origin.Add("", n, len(text))
	return nil
}

func (c *collection) document(pages int) (pipeline.Document, error) {
	c.unread = slices.DeleteFunc(c.unread, func(n int) bool { return slices.Contains(c.damaged, n) })
	switch {
	case len(c.damaged) > 0 && c.letters == 0:
		return pipeline.Document{}, fmt.Errorf("%w: the content of %s %s of %d cannot be read to its end, and there is no text before that; get the file again, or print it to a new PDF", unread.ErrDamaged, plural(len(c.damaged)), list(c.damaged), pages)
	case len(c.unread) > 0 && len(c.unread) == pages, len(c.unread) > 0 && c.letters < fewLetters:
		return pipeline.Document{}, fmt.Errorf("%w on any of its %d pages: it is scanned, or drawn; run text recognition (OCR) on it first and submit what that gives", unread.ErrNoText, pages)
	case c.letters == 0:
		return pipeline.Document{}, fmt.Errorf("%w: its %d pages are empty; check that it is the right file", unread.ErrNoText, pages)
	case c.unknown*unknownShare > c.letters:
		return pipeline.Document{}, fmt.Errorf("%w: %d of its %d letters cannot be told, because its fonts do not say what they are (pages %s); print it to a new PDF, or run text recognition (OCR) on it", unread.ErrEncoding, c.unknown, c.letters+c.unknown, list(c.vague))
	}
	c.origin.Version, c.origin.Format, c.origin.Unit = pipeline.OriginVersion, "pdf", "page"
	if len(c.damaged) > 0 {
		c.lacks(c.damaged, "the content is damaged there, or cannot be followed")
		c.origin.Notes = append(c.origin.Notes, fmt.Sprintf("NOT READ TO THE END: the content of %s %s of %d is damaged, or cannot be followed, so text may be missing there. Get the file again, or print it to a new PDF.", plural(len(c.damaged)), list(c.damaged), pages))
	}
	if len(c.unread) > 0 {
		c.lacks(c.unread, "there is no text: scanned, or drawn")
		c.origin.Notes = append(c.origin.Notes, fmt.Sprintf("NOT READ: there is no text on %s %s of %d: scanned, or drawn. Run text recognition (OCR) first if something is to be read there.", plural(len(c.unread)), list(c.unread), pages))
	}
	if c.unknown > 0 {
		c.origin.Notes = append(c.origin.Notes, fmt.Sprintf("%d letters cannot be told because the fonts do not say what they are; they stand as %s in the text (%s %s).", c.unknown, unknownSign, plural(len(c.vague)), list(c.vague)))
	}
	return pipeline.Document{Text: c.text.String(), Origin: c.origin}, nil
}

func (c *collection) lacks(pages []int, why string) {
	c.origin.Unread = append(c.origin.Unread, pipeline.Unread{What: plural(len(pages)) + " " + list(pages), Pages: pages, Why: why})
}

func plural(n int) string {
	if n == 1 {
		return "page"
	}
	return "pages"
}

// clean is the text of a page in lines without spaces at their ends. A hyphen that ends a line comes as a control
// character; a sign of a picture font comes with a private number; what has no letter at all is counted.
func clean(text string) (clean string, unknown int) {
	var b strings.Builder
	for _, c := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case c == 0x02 || c == 0xFFFE || c == 0xAD:
			b.WriteByte('-')
		case c == '\n' || c == '\t':
			b.WriteRune(c)
		case c == '\r' || c == '\v' || c == '\f':
			b.WriteByte('\n')
		case c == 0xF0B7 || c == 0xF09F:
			b.WriteString("•")
		case c == 0xF0A7:
			b.WriteString("▪")
		case c == 0xF0A8 || c == 0xF06F:
			b.WriteString("☐")
		case c == 0xF0FE:
			b.WriteString("☑")
		case c == 0xF0FD:
			b.WriteString("☒")
		case c == unicode.ReplacementChar || unicode.Is(unicode.Co, c) || c == 0xFFFF:
			b.WriteString(unknownSign)
			unknown++
		case unicode.IsControl(c):
		default:
			b.WriteRune(c)
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n"), unknown
}

// letters counts what can be read.
func letters(text string) (n int) {
	for _, c := range text {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			n++
		}
	}
	return n
}

// list is page numbers for people: 3-5, 9.
func list(pages []int) string {
	const most = 12
	var parts []string
	for i := 0; i < len(pages); {
		j := i
		for j+1 < len(pages) && pages[j+1] == pages[j]+1 {
			j++
		}
		part := strconv.Itoa(pages[i])
		if j > i {
			part += "-" + strconv.Itoa(pages[j])
		}
		if len(parts) == most {
			return strings.Join(parts, ", ") + ", ..."
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
