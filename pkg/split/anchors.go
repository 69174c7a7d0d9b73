package split

import (
	"unicode"
	"unicode/utf8"
)

// anchors are the places where the text is cut whatever stands elsewhere: each is better than all others within radius
// tokens, and at least margin from both ends of the text. Text beyond that does not move them, and cuts between two
// anchors depend on the text between them alone. Where no sentence ends there are none.
func (o outline) anchors(radius, margin int) []int {
	places, end := o.sentences()
	far := radius * unitsPerToken
	margin *= unitsPerToken
	var found []int
	var best []int // places that may yet be the best behind the current one, falling: a sliding maximum
	right := 0
	for i, p := range places {
		for ; right < len(places) && places[right].units-p.units <= far; right++ {
			for len(best) > 0 && places[right].beats(places[best[len(best)-1]]) {
				best = best[:len(best)-1]
			}
			best = append(best, right)
		}
		for len(best) > 0 && p.units-places[best[0]].units > far {
			best = best[1:]
		}
		if best[0] == i && p.units >= margin && end-p.units >= margin {
			found = append(found, p.pos)
		}
	}
	return found
}

// sentences are the places where at least a sentence begins, and the length of the text.
func (o outline) sentences() (found []place, units int) {
	space := true
	for p, c := range o.text {
		isSpace := unicode.IsSpace(c)
		if !isSpace && (space || c >= utf8.RuneSelf) {
			if s := o.strengthAt(p); s >= atSentence {
				found = append(found, place{pos: p, strength: s, hash: o.hash(p), units: units})
			}
		}
		space = isSpace
		units += unitsOf(c)
	}
	return found, units
}
