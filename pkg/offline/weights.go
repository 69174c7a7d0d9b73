package offline

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sync"
)

// The weights are derived from the Contract Understanding Atticus Dataset (CUAD) v1, The Atticus Project, Inc.,
// https://www.atticusprojectai.org/cuad, CC BY 4.0. `make train CUAD=DIR` makes them again.
//
//go:embed clauses.bin.gz
var packedWeights []byte

// Kind is what was learned about one kind of clause, but for its weights.
type Kind struct {
	Name  string  `json:"name"`
	Bias  float32 `json:"bias"`
	Scale float32 `json:"scale"` // what a weight of 1 is worth
	Find  float32 `json:"find"`  // a sentence this likely is a finding without a rule
	Keep  float32 `json:"keep"`  // a rule's hit less likely than this is none
}

// Classifier says how likely a sentence is of each kind.
type Classifier struct {
	kinds   []Kind
	weights []int8 // of feature f and kind k at f*len(kinds)+k
}

// trained is the classifier that ships, unpacked when it is first needed.
var trained = sync.OnceValue(func() *Classifier {
	c, err := ReadClassifier(packedWeights)
	if err != nil {
		panic(fmt.Sprintf("the weights in the binary: %v", err)) // they are part of it, and a test reads them
	}
	return c
})

// weightsHeader is the first line of a weights file; the weights of each kind follow, as pairs of a distance to the
// feature before and a value.
type weightsHeader struct {
	Format string `json:"format"`
	Bits   int    `json:"bits"`
	Source string `json:"source"`
	Kinds  []Kind `json:"kinds"`
}

const (
	weightsFormat = "holdfast-clauses-1"
	weightsSource = "CUAD v1, The Atticus Project, Inc., CC BY 4.0"
)

// PackClassifier is the file of a classifier; weights are, for each kind, one value per feature.
func PackClassifier(kinds []Kind, weights [][]int8) ([]byte, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("pack the weights: %w", err)
	}
	header, err := json.Marshal(weightsHeader{weightsFormat, FeatureBits, weightsSource, kinds})
	if err != nil {
		return nil, fmt.Errorf("pack the weights: %w", err)
	}
	var body []byte
	for _, list := range weights {
		last := -1
		for f, w := range list {
			if w != 0 {
				body = append(binary.AppendUvarint(body, uint64(f-last)), byte(w))
				last = f
			}
		}
		body = binary.AppendUvarint(body, 0)
	}
	if _, err := z.Write(append(append(header, '\n'), body...)); err != nil {
		return nil, fmt.Errorf("pack the weights: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack the weights: %w", err)
	}
	return packed.Bytes(), nil
}

// ReadClassifier reads what PackClassifier wrote.
func ReadClassifier(packed []byte) (*Classifier, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("read the weights: %w", err)
	}
	in := bufio.NewReader(z)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("read the weights: %w", err)
	}
	var header weightsHeader
	if err := json.Unmarshal(line, &header); err != nil {
		return nil, fmt.Errorf("read the weights: %w", err)
	}
	if header.Format != weightsFormat || header.Bits != FeatureBits || len(header.Kinds) != len(clauses) {
		return nil, fmt.Errorf("the weights are of %s with %d bits and %d kinds, this is %s with %d bits and %d kinds: train again",
			header.Format, header.Bits, len(header.Kinds), weightsFormat, FeatureBits, len(clauses))
	}
	c := &Classifier{kinds: header.Kinds, weights: make([]int8, len(header.Kinds)<<FeatureBits)}
	for k, kind := range header.Kinds {
		if kind.Name != clauses[k].kind {
			return nil, fmt.Errorf("kind %d of the weights is %q, not %q: train again", k, kind.Name, clauses[k].kind)
		}
		if err := c.readKind(in, k); err != nil {
			return nil, fmt.Errorf("read the weights of %s: %w", kind.Name, err)
		}
	}
	return c, nil
}

func (c *Classifier) readKind(in *bufio.Reader, k int) error {
	for f := -1; ; {
		step, err := binary.ReadUvarint(in)
		if err != nil {
			return err
		}
		if step == 0 {
			return nil
		}
		if step > 1<<FeatureBits || f+int(step) >= 1<<FeatureBits {
			return io.ErrUnexpectedEOF
		}
		f += int(step)
		w, err := in.ReadByte()
		if err != nil {
			return err
		}
		c.weights[f*len(c.kinds)+k] = int8(w)
	}
}

// Chances is how likely a sentence with these features is of each kind, 0 to 1.
func (c *Classifier) Chances(features []Feature) []float32 {
	n := len(c.kinds)
	sums := make([]int32, n)
	for _, f := range features {
		for k, w := range c.weights[int(f.ID)*n : int(f.ID)*n+n] {
			sums[k] += int32(w)
		}
	}
	norm := math.Sqrt(float64(len(features) + 1))
	all := make([]float32, n)
	for k, kind := range c.kinds {
		all[k] = Chance(float64(kind.Scale)*float64(sums[k])/norm + float64(kind.Bias))
	}
	return all
}

// Chance is the likelihood of a margin.
func Chance(margin float64) float32 { return float32(1 / (1 + math.Exp(-margin))) }

// classifier is who judges the text's sentences.
func (t *text) classifier() *Classifier {
	if t.by != nil {
		return t.by
	}
	return trained()
}

// negligible is a chance that is below every limit.
const negligible = 0.002

// chances of each sentence, computed once.
func (t *text) chances() [][]float32 {
	t.judged.Do(func() {
		t.likely = make([][]float32, len(t.sentences))
		for i := range t.sentences {
			t.likely[i] = t.classifier().Chances(t.features(i))
			for k, p := range t.likely[i] {
				if p > negligible && t.lacks(i, k) {
					t.likely[i][k] = 0
				}
			}
		}
	})
	return t.likely
}

// telling is where in the sentence the words stand that speak most for the kind.
func (t *text) telling(i, k int) span {
	c, s := t.classifier(), t.sentences[i]
	best, at := int8(0), span{s.start, min(s.start+1, s.end)}
	for _, f := range t.features(i) {
		if w := c.weights[int(f.ID)*len(c.kinds)+k]; f.Start >= 0 && w > best {
			best, at = w, span{s.start + int(f.Start), s.start + int(f.End)}
		}
	}
	return at
}
