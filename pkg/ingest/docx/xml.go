package docx

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"holdfast/pkg/ingest/unread"
)

// The namespaces of WordprocessingML, as most programs write it and as the strict variant of the standard has it.
const (
	wordNS       = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
	wordStrictNS = "http://purl.oclc.org/ooxml/wordprocessingml/main"
	mathNS       = "http://schemas.openxmlformats.org/officeDocument/2006/math"
	mathStrictNS = "http://purl.oclc.org/ooxml/officeDocument/math"
	compatNS     = "http://schemas.openxmlformats.org/markup-compatibility/2006"
)

// tokensPerLook is after how many tokens a stream looks whether it shall stop.
const tokensPerLook = 1024

// stream reads the elements of one part.
type stream struct {
	ctx    context.Context // of the one call of Read that it serves
	dec    *xml.Decoder
	name   string
	depth  int
	limit  int
	tokens int
}

// element is one that was opened; whoever gets it closes it, with each or skip.
type element struct {
	name  string // local name, of Word's namespace; else with a prefix: "mc:Choice", "m:t", "?:wsp"
	attrs []xml.Attr
}

// attr is the value of the attribute with that local name; "" without one.
func (e element) attr(name string) string {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// on is a property that is set unless it says that it is not.
func (e element) on() bool {
	switch e.attr("val") {
	case "0", "false", "off":
		return false
	}
	return true
}

// inPart opens a part and hands its root to f.
func (p *pack) inPart(ctx context.Context, name string, f func(s *stream, root element) error) error {
	body, err := p.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	s := &stream{ctx: ctx, dec: xml.NewDecoder(body), name: name, limit: p.limits.Depth}
	for {
		token, err := s.token()
		if err != nil {
			return err
		}
		if start, ok := token.(xml.StartElement); ok {
			return f(s, elementOf(start))
		}
	}
}

// each calls f for every child of the element that was opened last, until that element closes. text may be nil.
func (s *stream) each(f func(child element) error, text func(chars []byte)) error {
	s.depth++
	defer func() { s.depth-- }()
	if s.depth > s.limit {
		return s.tooDeep()
	}
	for {
		token, err := s.token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if err := f(elementOf(t)); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		case xml.CharData:
			if text != nil {
				text(t)
			}
		}
	}
}

// skip closes the element that was opened last.
func (s *stream) skip() error {
	for depth := 1; depth > 0; {
		token, err := s.token()
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			if depth++; depth+s.depth > s.limit {
				return s.tooDeep()
			}
		case xml.EndElement:
			depth--
		}
	}
	return nil
}

func (s *stream) tooDeep() error {
	return fmt.Errorf("%w: the elements of its part %s are nested more than %d deep, which no Word document needs", unread.ErrTooLarge, s.name, s.limit)
}

// chars closes the element and returns the text that stood directly in it.
func (s *stream) chars() (string, error) {
	var b strings.Builder
	err := s.each(func(element) error { return s.skip() }, func(chars []byte) { b.Write(chars) })
	return b.String(), err
}

func (s *stream) token() (xml.Token, error) {
	if s.tokens++; s.tokens%tokensPerLook == 0 && s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	token, err := s.dec.Token()
	if err != nil {
		return nil, s.broken(err)
	}
	if _, ok := token.(xml.Directive); ok {
		return nil, fmt.Errorf("%w: its part %s declares a document type, which no Word document does", unread.ErrDamaged, s.name)
	}
	return token, nil
}

func (s *stream) broken(err error) error {
	for _, known := range []error{unread.ErrTooLarge, unread.ErrDamaged} {
		if errors.Is(err, known) {
			return err
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: its part %s is no XML that can be read (%v); save it again with Word", unread.ErrDamaged, s.name, err)
}

func elementOf(t xml.StartElement) element {
	e := element{name: t.Name.Local, attrs: t.Attr}
	switch t.Name.Space {
	case wordNS, wordStrictNS:
	case compatNS:
		e.name = "mc:" + e.name
	case mathNS, mathStrictNS:
		e.name = "m:" + e.name
	default:
		e.name = "?:" + e.name
	}
	return e
}
