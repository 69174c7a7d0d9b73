package docx

import "context"

// maxBasedOn bounds how long a chain of styles is followed: one may be based on itself.
const maxBasedOn = 32

// style is what a paragraph style says about lists.
type style struct {
	basedOn string
	numID   string
	level   int // -1: it says nothing
}

type styles struct {
	byID     map[string]style
	standard string // of paragraphs that name none
}

func readStyles(ctx context.Context, p *pack, part string) (*styles, error) {
	all := &styles{byID: map[string]style{}}
	if part == "" || !p.has(part) {
		return all, nil
	}
	err := p.inPart(ctx, part, func(s *stream, _ element) error {
		return s.each(func(e element) error {
			if e.name != "style" || e.attr("type") != "paragraph" {
				return s.skip()
			}
			id, one := e.attr("styleId"), style{level: -1}
			if standard := e.attr("default"); standard == "1" || standard == "true" || standard == "on" {
				all.standard = id
			}
			err := one.read(s)
			all.byID[id] = one
			return err
		}, nil)
	})
	return all, err
}

func (one *style) read(s *stream) error {
	return s.each(func(e element) error {
		switch e.name {
		case "basedOn":
			one.basedOn = e.attr("val")
		case "pPr":
			p, err := readProperties(s)
			one.numID, one.level = p.numID, p.level
			return err
		}
		return s.skip()
	}, nil)
}

// list is the list and the level that paragraphs of the style are in; "" if in none.
func (all *styles) list(id string, lists *lists) (numID string, level int) {
	if id == "" {
		id = all.standard
	}
	level, named := -1, id
	for range maxBasedOn {
		one, ok := all.byID[named]
		if !ok {
			break
		}
		if numID == "" {
			numID = one.numID
		}
		if level < 0 {
			level = one.level
		}
		if named = one.basedOn; named == "" {
			break
		}
	}
	if own := lists.levelOf(numID, id); own >= 0 {
		level = own
	}
	return numID, max(0, level)
}

// properties are what the walker needs to know of a paragraph's.
type properties struct {
	style   string
	numID   string // "0": in no list, whatever its style says
	level   int    // -1: it says nothing
	removed bool   // its end was deleted: it goes on with the next paragraph
	margins []margin
}

// margin is a reference to a header or footer.
type margin struct{ kind, id string }

// readProperties reads a pPr that was opened. What stood before a tracked change is not read.
func readProperties(s *stream) (properties, error) {
	p := properties{level: -1}
	err := s.each(func(e element) error {
		switch e.name {
		case "pStyle":
			p.style = e.attr("val")
		case "numPr":
			return s.each(func(e element) error {
				switch e.name {
				case "numId":
					p.numID = e.attr("val")
				case "ilvl":
					p.level = number(e.attr("val"))
				}
				return s.skip()
			}, nil)
		case "rPr":
			return s.each(func(e element) error {
				if e.name == "del" || e.name == "moveFrom" {
					p.removed = true
				}
				return s.skip()
			}, nil)
		case "sectPr":
			margins, err := readMargins(s)
			p.margins = margins
			return err
		}
		return s.skip()
	}, nil)
	return p, err
}

// readMargins is what a sectPr that was opened refers to.
func readMargins(s *stream) (all []margin, err error) {
	err = s.each(func(e element) error {
		switch e.name {
		case "headerReference":
			all = append(all, margin{"header", e.attr("id")})
		case "footerReference":
			all = append(all, margin{"footer", e.attr("id")})
		}
		return s.skip()
	}, nil)
	return all, err
}
