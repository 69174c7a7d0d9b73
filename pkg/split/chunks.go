package split

import (
	"errors"
	"fmt"
	"hash/fnv"
	"unicode/utf8"

	"holdfast/pkg/pipeline"
)

// Version names the rules by which a text is cut. Other rules are another version: a job keeps to its own manifest.
const Version = "clauses@1"

// ErrTooManyChunks is a text that needs more chunks than its pipeline allows.
var ErrTooManyChunks = errors.New("too many chunks")

// Chunks cuts a text, along its sections where it has any. Cores tile the text exactly. A chunk, its context included,
// has at most c.Max tokens, about c.Target on average; the context before its core has at most c.Overlap and begins with
// a sentence, or with a clause or word where the sentence is longer.
//
// Where a cut is made depends on the text nearby: at every anchor, and between two anchors, of the strongest places in
// reach, at the one whose text has the greatest hash. So an edit moves the cuts around it, and not all that follow.
func Chunks(text string, c pipeline.Chunking) ([]pipeline.Chunk, error) {
	if err := check(text, c); err != nil {
		return nil, err
	}
	if c.Lines {
		return lines(text, c.MaxChunks)
	}
	o := outlineOf(text)
	reach := reachOf(c)
	anchors := append(o.anchors(c.Target, reach.least/2), len(text))
	var chunks []pipeline.Chunk
	for start := 0; start < len(text); {
		if len(chunks) == c.MaxChunks {
			return nil, fmt.Errorf("%w: %d chunks cover %d of %d bytes; split the document, or raise max_chunks or target of the pipeline",
				ErrTooManyChunks, len(chunks), start, len(text))
		}
		chunk := pipeline.Chunk{Index: len(chunks), Start: start, Context: start, Heading: o.path(start)}
		if len(chunks) > 0 {
			chunk.Context = o.context(chunks[len(chunks)-1].Start, start, c.Overlap)
		}
		for anchors[0] <= start {
			anchors = anchors[1:]
		}
		chunk.End = o.cut(start, anchors[0], reach.without(pipeline.EstimateTokens(text[chunk.Context:start])))
		chunk.Tokens = pipeline.EstimateTokens(text[chunk.Context:chunk.End])
		chunks = append(chunks, chunk)
		start = chunk.End
	}
	return chunks, nil
}

// maxTokens is more than any model reads at once.
const maxTokens = 1 << 24

func check(text string, c pipeline.Chunking) error {
	switch {
	case text == "":
		return errors.New("there is no text to cut")
	case !utf8.ValidString(text):
		return errors.New("the text is not UTF-8")
	case c.MaxChunks < 1:
		return fmt.Errorf("chunking: max_chunks (%d) must be at least 1", c.MaxChunks)
	case c.Lines:
		return nil
	case c.Target < 1 || c.Max < c.Target:
		return fmt.Errorf("chunking: needs 1 <= target (%d) <= max (%d)", c.Target, c.Max)
	case c.Max > maxTokens:
		return fmt.Errorf("chunking: max (%d) must be at most %d", c.Max, maxTokens)
	case c.Overlap < 0 || c.Overlap >= c.Target:
		return fmt.Errorf("chunking: overlap (%d) must be less than target (%d)", c.Overlap, c.Target)
	}
	return nil
}

// reach is how many tokens a chunk may have: as far below the target as above it, so that the mean is the target.
type reach struct{ least, most int }

func reachOf(c pipeline.Chunking) reach {
	spread := min(max(c.Max-c.Target, c.Target/4), c.Target/2)
	return reach{least: max(1, c.Target-spread), most: min(c.Max, c.Target+spread)}
}

// without is what the core may have beside a context of so many tokens.
func (r reach) without(context int) reach {
	return reach{least: max(1, r.least-context), most: max(1, r.most-context)}
}

// cut is where the core that begins at start ends, at the anchor at the latest.
func (o outline) cut(start, anchor int, r reach) int {
	rest, whole := tokensUpTo(o.text[start:anchor], r.most+r.least)
	switch {
	case whole && rest <= r.most:
		return anchor
	case whole: // two more chunks: neither of them a crumb
		share := min(r.least, max(1, rest*2/5))
		r = reach{least: max(share, rest-r.most), most: min(r.most, rest-share)}
	}
	var t tokens
	best := place{strength: nowhere}
	last := start
	for at, c := range o.text[start:anchor] {
		p := start + at
		if p > start && t.sum() >= r.least {
			best = o.better(best, p)
		}
		t.add(c)
		if t.sum() > r.most && p > start {
			break
		}
		last = p + utf8.RuneLen(c)
	}
	if best.strength == nowhere {
		return last
	}
	return best.pos
}

// place is where a cut may be made.
type place struct {
	pos      int
	strength strength
	hash     uint64
	units    int // before it
}

// beats says that p is the better place: the stronger one, of two as strong the one with the greater hash.
func (p place) beats(other place) bool {
	if p.strength != other.strength {
		return p.strength > other.strength
	}
	return p.hash > other.hash
}

// better is the stronger place of best and p; of two as strong the one with the greater hash; the later of equals.
func (o outline) better(best place, p int) place {
	s := o.strengthAt(p)
	if s == nowhere || s < best.strength {
		return best
	}
	if found := (place{pos: p, strength: s, hash: o.hash(p)}); !best.beats(found) {
		return found
	}
	return best
}

// hash is of the text around p: enough to tell places apart, little enough to be left alone by edits elsewhere.
func (o outline) hash(p int) uint64 {
	const before, behind = 16, 48
	h := fnv.New64a()
	h.Write([]byte(o.text[max(0, p-before):p]))
	h.Write([]byte{0})
	h.Write([]byte(o.text[p:min(len(o.text), p+behind)]))
	return h.Sum64()
}

// context is where the context of the core at start begins: as far back as overlap allows, with a sentence if one
// begins there, else with a clause, else with a word. It stays within the chunk before, which begins at earliest.
func (o outline) context(earliest, start, overlap int) int {
	var t tokens
	begins := start
	found := nowhere
	for p := start; p > earliest; {
		c, size := utf8.DecodeLastRuneInString(o.text[:p])
		t.add(c)
		if t.sum() > overlap {
			break
		}
		p -= size
		if s := min(o.strengthAt(p), atSentence); s > anywhere && s >= found {
			begins, found = p, s
		}
	}
	return begins
}
