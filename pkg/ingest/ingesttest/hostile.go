package ingesttest

import (
	"bytes"
	"compress/flate"
	"hash/crc32"
	"io"
)

func deflate(body io.Reader) (packed []byte, sum uint32) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	must(err)
	crc := crc32.NewIEEE()
	_, err = io.Copy(io.MultiWriter(w, crc), body)
	must(err)
	must(w.Close())
	return out.Bytes(), crc.Sum32()
}

// Repeat is a reader of begin, then middle n times, then end: a large part that nobody has to hold.
func Repeat(begin, middle string, n int, end string) io.Reader {
	return io.MultiReader(bytes.NewReader([]byte(begin)), &repeated{text: []byte(middle), n: n}, bytes.NewReader([]byte(end)))
}

type repeated struct {
	text []byte
	n    int
	at   int
}

func (r *repeated) Read(b []byte) (int, error) {
	read := 0
	for read < len(b) && r.n > 0 {
		n := copy(b[read:], r.text[r.at:])
		read += n
		if r.at += n; r.at == len(r.text) {
			r.at, r.n = 0, r.n-1
		}
	}
	if read == 0 {
		return 0, io.EOF
	}
	return read, nil
}

// Compound is a compound file (OLE) as far as a reader looks that tells them apart by the names of their streams.
func Compound(streams ...string) []byte {
	out := make([]byte, 1024)
	copy(out, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
	for _, stream := range streams {
		entry := make([]byte, 128)
		for i, c := range []byte(stream) {
			entry[2*i] = c
		}
		out = append(out, entry...)
	}
	return out
}
