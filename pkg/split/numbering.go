package split

// numbering is the outline that runs through a text: the numbers last seen, lists inside of sections on top.
type numbering struct {
	running  [][]int
	articles int // number of the last article
}

const (
	// maxNesting is how many numberings may run inside each other.
	maxNesting = 5
	// lookahead is how many candidates behind one may vouch for it.
	lookahead = 6
)

// accept says whether c continues the numbering, and the rank of its heading. next are the candidates behind it: where
// the numbering broke off (a section was taken out), one that the next ones continue begins it anew.
func (n *numbering) accept(c candidate, next []candidate) (rank int, accepted bool) {
	switch c.kind {
	case part:
		n.running, n.articles = nil, 0
		return rankPart, true
	case article:
		step := c.path[0] - n.articles
		if step != 1 && step != 2 && c.path[0] != 1 && !n.resumed(c, next) {
			return 0, false
		}
		n.articles = c.path[0]
		return rankArticle, true
	case capitals:
		return rankSection, true
	}
	if n.follow(c.path) || n.begin(c.path) {
		return n.rank(), true
	}
	if !c.inline && n.resumed(c, next) {
		n.resume(c.path)
		return n.rank(), true
	}
	return 0, false
}

// follow takes up the innermost numbering that path continues.
func (n *numbering) follow(path []int) bool {
	for i := len(n.running) - 1; i >= 0; i-- {
		if continues(n.running[i], path) {
			n.running = append(n.running[:i], path)
			return true
		}
	}
	return false
}

// begin starts a numbering: 1, 1.1, or the first of an article.
func (n *numbering) begin(path []int) bool {
	first := path[0] == 1 || len(path) > 1 && path[0] == n.articles
	for _, number := range path[1:] {
		first = first && number <= 1
	}
	return first && n.push(path)
}

// resume goes on with the innermost numbering that had come less far, after a gap.
func (n *numbering) resume(path []int) {
	for i := len(n.running) - 1; i >= 0; i-- {
		if n.running[i][0] <= path[0] {
			n.running = append(n.running[:i], path)
			return
		}
	}
	n.push(path)
}

func (n *numbering) push(path []int) bool {
	n.running = append(n.running, path)
	if len(n.running) > maxNesting {
		n.running = n.running[1:]
	}
	return true
}

// resumed says that one of the next candidates continues c before any continues what ran until now.
func (n *numbering) resumed(c candidate, next []candidate) bool {
	for _, other := range next {
		if other.kind != c.kind || len(other.path) == 0 {
			continue
		}
		if continues(c.path, other.path) {
			return true
		}
		for _, running := range n.running {
			if continues(running, other.path) {
				return false
			}
		}
	}
	return false
}

func (n *numbering) rank() int {
	depth := 0
	for _, path := range n.running {
		depth += len(path)
	}
	return rankSection + depth - 1
}

// continues says that path may come after last: its next sibling, its first child, or the next of one of its parents
// (with that one's first child, where the parent itself has no heading). One number may be missing.
func continues(last, path []int) bool {
	same := 0
	for same < len(last) && same < len(path) && last[same] == path[same] {
		same++
	}
	rest := path[same:]
	switch {
	case len(rest) == 0:
		return false
	case same == len(last):
		return rest[0] <= 2 && len(rest) <= 2 && allFirst(rest[1:])
	default:
		step := rest[0] - last[same]
		return (step == 1 || step == 2) && len(rest) <= 2 && allFirst(rest[1:])
	}
}

func allFirst(numbers []int) bool {
	for _, n := range numbers {
		if n > 2 {
			return false
		}
	}
	return true
}
