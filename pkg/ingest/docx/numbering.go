package docx

import (
	"context"
	"strconv"
	"strings"
)

// levels is how many levels a list of Word has.
const levels = 9

// level is how one level of a list is numbered.
type level struct {
	start   int
	format  string
	text    string // e.g. "%1.%2"
	restart int    // restarts after a paragraph of this level or a higher one, from 1; 0 never, -1 as usual
	legal   bool   // all numbers in digits
	style   string // paragraphs of this style are on this level
}

// list is an abstract numbering: lists that share one count on together.
type list struct {
	levels    [levels]level
	styleLink string // its levels are those of the list with that styleOf
	styleOf   string
}

// num is a use of a list, with its own levels and starts where it has them.
type num struct {
	list     string
	levels   map[int]level
	restarts map[int]int
}

// lists are all lists of the document.
type lists struct {
	lists map[string]*list
	nums  map[string]*num
}

func readLists(ctx context.Context, p *pack, part string) (*lists, error) {
	all := &lists{lists: map[string]*list{}, nums: map[string]*num{}}
	if part == "" || !p.has(part) {
		return all, nil
	}
	err := p.inPart(ctx, part, func(s *stream, _ element) error {
		return s.each(func(e element) error {
			switch e.name {
			case "abstractNum":
				l := &list{}
				for i := range l.levels {
					l.levels[i] = level{start: 0, format: "decimal", restart: -1}
				}
				all.lists[e.attr("abstractNumId")] = l
				return l.read(s)
			case "num":
				n := &num{levels: map[int]level{}, restarts: map[int]int{}}
				all.nums[e.attr("numId")] = n
				return n.read(s)
			}
			return s.skip()
		}, nil)
	})
	all.link()
	return all, err
}

func (l *list) read(s *stream) error {
	return s.each(func(e element) error {
		switch e.name {
		case "lvl":
			at, lvl, err := readLevel(s, e)
			if at >= 0 && at < levels {
				l.levels[at] = lvl
			}
			return err
		case "numStyleLink":
			l.styleLink = e.attr("val")
		case "styleLink":
			l.styleOf = e.attr("val")
		}
		return s.skip()
	}, nil)
}

// link gives lists that point to a list style the levels of the list that defines it.
func (all *lists) link() {
	for _, l := range all.lists {
		if l.styleLink == "" {
			continue
		}
		for _, other := range all.lists {
			if other.styleOf == l.styleLink {
				l.levels = other.levels
			}
		}
	}
}

func (n *num) read(s *stream) error {
	return s.each(func(e element) error {
		switch e.name {
		case "abstractNumId":
			n.list = e.attr("val")
		case "lvlOverride":
			return n.override(s, number(e.attr("ilvl")))
		}
		return s.skip()
	}, nil)
}

func (n *num) override(s *stream, at int) error {
	return s.each(func(e element) error {
		switch e.name {
		case "startOverride":
			n.restarts[at] = number(e.attr("val"))
		case "lvl":
			_, lvl, err := readLevel(s, e)
			n.levels[at] = lvl
			return err
		}
		return s.skip()
	}, nil)
}

func readLevel(s *stream, e element) (at int, l level, err error) {
	at, l = number(e.attr("ilvl")), level{start: 0, format: "decimal", restart: -1}
	err = s.each(func(e element) error {
		switch e.name {
		case "start":
			l.start = number(e.attr("val"))
		case "numFmt":
			l.format = e.attr("val")
		case "lvlText":
			l.text = e.attr("val")
		case "lvlRestart":
			l.restart = number(e.attr("val"))
		case "isLgl":
			l.legal = e.on()
		case "pStyle":
			l.style = e.attr("val")
		case "mc:AlternateContent":
			return s.each(func(e element) error { // formats of newer programs, with one that everybody knows
				if e.name != "mc:Fallback" {
					return s.skip()
				}
				return s.each(func(e element) error {
					if e.name == "numFmt" {
						l.format = e.attr("val")
					}
					return s.skip()
				}, nil)
			}, nil)
		}
		return s.skip()
	}, nil)
	return at, l, err
}

// number reads a number of an attribute; what is none is 0. Numbers beyond a million are no list's.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1_000_000 {
		return 0
	}
	return n
}

// at is how the level of a use of a list is numbered.
func (all *lists) at(numID string, lvl int) (l level, ok bool) {
	n := all.nums[numID]
	if n == nil || lvl < 0 || lvl >= levels {
		return level{}, false
	}
	if own, ok := n.levels[lvl]; ok {
		return own, true
	}
	abstract := all.lists[n.list]
	if abstract == nil {
		return level{}, false
	}
	return abstract.levels[lvl], true
}

// levelOf is the level whose paragraphs have that style; -1 if there is none.
func (all *lists) levelOf(numID, style string) int {
	for lvl := range levels {
		if l, ok := all.at(numID, lvl); ok && style != "" && l.style == style {
			return lvl
		}
	}
	return -1
}

// counters count the lists of one part.
type counters struct {
	lists  *lists
	counts map[string]*[levels]int
	active map[string]*[levels]bool
	begun  map[string]bool // numID and level whose own start was used
}

func newCounters(all *lists) *counters {
	return &counters{lists: all, counts: map[string]*[levels]int{}, active: map[string]*[levels]bool{}, begun: map[string]bool{}}
}

// next counts one paragraph on and is its label, e.g. "4.2"; "" if it has none.
func (c *counters) next(numID string, lvl int) string {
	l, ok := c.lists.at(numID, lvl)
	if !ok {
		return ""
	}
	use := c.lists.nums[numID]
	if c.counts[use.list] == nil {
		c.counts[use.list], c.active[use.list] = new([levels]int), new([levels]bool)
	}
	counts, active := c.counts[use.list], c.active[use.list]
	restart, own := use.restarts[lvl]
	key := numID + "/" + strconv.Itoa(lvl)
	switch {
	case own && !c.begun[key]:
		counts[lvl] = restart
		c.begun[key] = true
	case !active[lvl]:
		counts[lvl] = l.start
	default:
		counts[lvl]++
	}
	active[lvl] = true
	for above := range lvl {
		if !active[above] {
			upper, _ := c.lists.at(numID, above)
			counts[above], active[above] = upper.start, true
		}
	}
	for below := lvl + 1; below < levels; below++ {
		deeper, _ := c.lists.at(numID, below)
		if deeper.restart < 0 || lvl < deeper.restart {
			active[below] = false
		}
	}
	return c.label(numID, l, counts)
}

func (c *counters) label(numID string, l level, counts *[levels]int) string {
	if l.format == "bullet" {
		return "•"
	}
	var b strings.Builder
	for i := 0; i < len(l.text) && b.Len() < maxLabel; i++ {
		if l.text[i] != '%' || i+1 == len(l.text) || l.text[i+1] < '1' || l.text[i+1] > '9' {
			b.WriteByte(l.text[i])
			continue
		}
		i++
		at := int(l.text[i] - '1')
		shown, _ := c.lists.at(numID, at)
		if l.legal && shown.format != "none" {
			shown.format = "decimal"
		}
		b.WriteString(ordinal(counts[at], shown.format))
	}
	return strings.ToValidUTF8(strings.TrimSpace(b.String()), "")
}
