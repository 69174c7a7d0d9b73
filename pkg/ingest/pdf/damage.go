package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/ascii85"
	"encoding/hex"
	"errors"
	"io"

	"github.com/klippa-app/go-pdfium/requests"
)

// The engine reads a damaged content as far as it can and says nothing: the text then ends in the middle. So the content
// of every page is unpacked here once more, to its checksum.

const (
	maxCopy     = 256 << 20 // bytes of the document as the engine writes it anew
	maxUnpacked = 512 << 20 // bytes of all contents
	maxLevels   = 1024      // of the tree of pages
)

// damagedPages are the pages whose content is damaged, or cannot be followed, by number.
func (e *engine) damagedPages(ctx context.Context, count int) []int {
	all := make([]int, count)
	for i := range all {
		all[i] = i + 1
	}
	copied := &bounded{left: maxCopy}
	if _, err := e.lib.FPDF_SaveAsCopy(&requests.FPDF_SaveAsCopy{Document: e.doc, Flags: requests.SaveFlagRemoveSecurity, FileWriter: copied}); err != nil {
		return all
	}
	o, err := readObjects(copied.Bytes())
	if err != nil {
		return all
	}
	c := &contents{objects: o, damaged: map[ref]bool{}, left: maxUnpacked}
	pages := o.pages(o.root["Pages"], nil, map[ref]bool{}, 0)
	if len(pages) != count {
		return all
	}
	var damaged []int
	for i, page := range pages {
		if ctx.Err() != nil || !c.whole(page) {
			damaged = append(damaged, i+1)
		}
	}
	return damaged
}

// bounded is a buffer that takes so many bytes.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("the document is too large")
	}
	return b.Buffer.Write(p)
}

// pages are the leaves of the tree of pages, in order, each with the resources that it inherits.
func (o *objects) pages(node, resources any, seen map[ref]bool, depth int) []dict {
	if n, ok := node.(ref); ok {
		if seen[n] {
			return nil
		}
		seen[n] = true
	}
	d := o.dict(node)
	if d == nil || depth > maxLevels {
		return nil
	}
	if d["Resources"] == nil {
		d["Resources"] = resources
	}
	if d["Kids"] == nil {
		return []dict{d}
	}
	var pages []dict
	for _, kid := range o.all(d["Kids"]) {
		pages = append(pages, o.pages(kid, d["Resources"], seen, depth+1)...)
	}
	return pages
}

// contents unpacks what pages show, each stream once.
type contents struct {
	*objects
	damaged map[ref]bool // by the stream's number
	left    int64        // bytes that may still be unpacked
}

// whole says that all of the page's content can be unpacked: what it shows, and the forms that it shows.
func (c *contents) whole(page dict) bool {
	whole := true
	for _, part := range c.all(page["Contents"]) {
		whole = c.sound(part) && whole
	}
	return c.resources(page["Resources"], 0) && whole
}

// resources says the same of the forms, and of the tables by which letters are told.
func (c *contents) resources(v any, depth int) bool {
	d, whole := c.dict(v), true
	if depth > maxNested {
		return false
	}
	for _, font := range c.dict(d["Font"]) {
		if table, ok := c.dict(font)["ToUnicode"].(ref); ok {
			whole = c.sound(table) && whole
		}
	}
	for _, object := range c.dict(d["XObject"]) {
		form := c.dict(object)
		if form["Subtype"] != name("Form") {
			continue
		}
		n, _ := object.(ref)
		if _, known := c.damaged[n]; known {
			whole = !c.damaged[n] && whole
			continue
		}
		sound := c.sound(object) // before what it shows: a form may show itself
		c.damaged[n] = !(c.resources(form["Resources"], depth+1) && sound)
		whole = !c.damaged[n] && whole
	}
	return whole
}

// sound says that the stream can be unpacked to its end.
func (c *contents) sound(v any) bool {
	n, ok := v.(ref)
	if !ok {
		return false
	}
	damaged, known := c.damaged[n]
	if !known {
		s, found := c.stream(n)
		damaged = found && !c.unpacks(s) || !found && c.value(n) != nil
		c.damaged[n] = damaged
	}
	return !damaged
}

// unpacks says that the stream's bytes are whole, as far as their packing tells: only zlib has a checksum.
func (c *contents) unpacks(s stream) bool {
	var r io.Reader = bytes.NewReader(s.raw)
	for i, filter := range c.all(s.dict["Filter"]) {
		switch c.value(filter) {
		case name("ASCIIHexDecode"), name("AHx"):
			digits, _, _ := bytes.Cut(s.raw, []byte(">"))
			r = hex.NewDecoder(bytes.NewReader(bytes.Join(bytes.Fields(digits), nil)))
		case name("ASCII85Decode"), name("A85"):
			letters, _, _ := bytes.Cut(s.raw, []byte("~>"))
			r = ascii85.NewDecoder(bytes.NewReader(letters))
		case name("FlateDecode"), name("Fl"):
			return len(s.raw) == 0 || c.inflates(r)
		default:
			return true
		}
		if i > 0 {
			return true // letters packed into letters: nobody does
		}
	}
	return true
}

func (c *contents) inflates(packed io.Reader) bool {
	r, err := zlib.NewReader(packed)
	if err != nil {
		return false
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, c.left))
	c.left -= n
	return err == nil && c.left > 0
}
