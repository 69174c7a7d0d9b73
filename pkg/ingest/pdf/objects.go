package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// objects are the objects of a document as the engine writes it anew: without encryption, each by itself, in a plain
// table. Only what a page's content is found by is understood: nothing else of the format is.
type objects struct {
	source []byte
	at     map[int]int // by number: where its value begins
	root   dict
}

type (
	dict  map[string]any // of dict, array, ref, name, int, or nil for anything else
	array []any
	ref   int
	name  string
)

// stream is a dictionary and the bytes behind it, as they are packed.
type stream struct {
	dict dict
	raw  []byte
}

var errObjects = errors.New("its objects cannot be followed")

// maxNested bounds how deep values may stand within each other.
const maxNested = 64

func readObjects(source []byte) (*objects, error) {
	o := &objects{source: source, at: map[int]int{}}
	begin := bytes.LastIndex(source, []byte("startxref"))
	if begin < 0 {
		return nil, errObjects
	}
	table, err := strconv.Atoi(string(bytes.TrimSpace(firstLine(source[begin+len("startxref"):]))))
	if err != nil || table < 0 || table >= len(source) {
		return nil, errObjects
	}
	trailer := bytes.Index(source[table:], []byte("trailer"))
	if trailer < 0 {
		return nil, errObjects
	}
	o.readTable(bytes.Fields(source[table : table+trailer]))
	s := &scanner{source: source, at: table + trailer + len("trailer")}
	dict, _ := s.value(0).(dict)
	if o.root = o.dict(dict["Root"]); o.root == nil {
		return nil, errObjects
	}
	return o, nil
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimLeft(text, "\r\n "), []byte("\n"))
	return line
}

// readTable reads "xref", then sections: first and count, and for each object offset, generation, n or f.
func (o *objects) readTable(words [][]byte) {
	number := func(i int) int { n, _ := strconv.Atoi(string(words[i])); return n }
	for i := 1; i+1 < len(words); {
		first, count := number(i), number(i+1)
		i += 2
		for n := first; n < first+count && i+2 < len(words); n++ {
			if at := number(i); words[i+2][0] == 'n' && at > 0 && at < len(o.source) {
				o.at[n] = at
			}
			i += 3
		}
	}
}

// begin is a scanner behind "n 0 obj"; nil if there is no such object.
func (o *objects) begin(n int) *scanner {
	at, ok := o.at[n]
	if !ok || !bytes.HasPrefix(o.source[at:], fmt.Appendf(nil, "%d ", n)) {
		return nil
	}
	skip := bytes.Index(o.source[at:min(len(o.source), at+40)], []byte("obj"))
	if skip < 0 {
		return nil
	}
	return &scanner{source: o.source, at: at + skip + len("obj")}
}

// value is v, or what it refers to.
func (o *objects) value(v any) any {
	for range maxNested {
		n, ok := v.(ref)
		if !ok {
			return v
		}
		s := o.begin(int(n))
		if s == nil {
			return nil
		}
		v = s.value(0)
	}
	return nil
}

func (o *objects) dict(v any) dict { d, _ := o.value(v).(dict); return d }

// all is the values of an array; of any other value, itself.
func (o *objects) all(v any) array {
	switch of := o.value(v).(type) {
	case array:
		return of
	case nil:
		return nil
	}
	return array{v}
}

// stream is the stream that n is.
func (o *objects) stream(n ref) (stream, bool) {
	s := o.begin(int(n))
	if s == nil {
		return stream{}, false
	}
	d, _ := s.value(0).(dict)
	length, known := o.value(d["Length"]).(int)
	if s.space(); d == nil || !known || !bytes.HasPrefix(s.source[s.at:], []byte("stream")) {
		return stream{}, false
	}
	s.at += len("stream")
	if s.peek() == '\r' {
		s.at++
	}
	s.at++
	if length < 0 || length > len(s.source)-s.at {
		return stream{}, false
	}
	return stream{d, s.source[s.at : s.at+length]}, true
}
