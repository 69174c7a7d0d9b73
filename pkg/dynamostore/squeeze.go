package dynamostore

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"

	"holdfast/pkg/pipeline"
)

// squeezedKey is the column of a body that is compressed.
const squeezedKey = "z"

// plainBytes is up to what size a body is stored as it is, for a person to read: it is one write unit either way.
const plainBytes = 600

// writers are kept: making one costs more than squeezing a reply.
var writers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestCompression)
	if err != nil {
		panic(err) // only another level gets here
	}
	return w
}}

// setBody puts a body into a row, compressed if it is long: a kilobyte more is a write unit more.
func setBody(row item, body []byte) {
	if len(body) > plainBytes {
		if short, ok := squeezed(body); ok {
			row[squeezedKey] = valueOf(short)
			return
		}
	}
	row[bodyKey] = valueOf(bytes.Clone(body))
}

// squeezed is the body compressed; ok is false if that makes it no shorter.
func squeezed(body []byte) (short []byte, ok bool) {
	var out bytes.Buffer
	w := writers.Get().(*flate.Writer)
	defer writers.Put(w)
	w.Reset(&out)
	_, err1 := w.Write(body)
	err2 := w.Close()
	return out.Bytes(), err1 == nil && err2 == nil && out.Len() < len(body)
}

// bodyIn is the body that setBody put.
func bodyIn(row item) ([]byte, error) {
	short := bytesIn(row, squeezedKey)
	if short == nil {
		return bytesIn(row, bodyKey), nil
	}
	body, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(short)), pipeline.MaxItem+1))
	if err != nil {
		return nil, fmt.Errorf("unpack the body: %w", err)
	}
	return body, nil
}
