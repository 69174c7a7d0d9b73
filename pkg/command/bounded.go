package command

import (
	"strings"
	"sync"
)

const (
	maxTail   = 4 << 10 // how much of the end of standard error is kept
	tailLines = 3       // how many of its lines are told
)

// bounded keeps the beginning, or the end, of what is written to it, and takes all of it: a command never waits for
// us to read.
type bounded struct {
	mu   sync.Mutex
	head int // keep so many bytes of the beginning
	tail int // or so many of the end
	kept []byte
	all  int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all += len(p)
	if b.head > 0 {
		b.kept = append(b.kept, p[:min(len(p), b.head-len(b.kept))]...)
		return len(p), nil
	}
	b.kept = append(b.kept, p...)
	b.kept = b.kept[max(0, len(b.kept)-b.tail):]
	return len(p), nil
}

// over says that there was more than is kept.
func (b *bounded) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all > len(b.kept)
}

func (b *bounded) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.kept)
}

// lastLines are the last lines that say something, as far as they fit a failure.
func (b *bounded) lastLines() string {
	lines := strings.Split(strings.TrimSpace(b.text()), "\n")
	return strings.TrimSpace(strings.Join(lines[max(0, len(lines)-tailLines):], "\n"))
}

func lastLine(text string) string { return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:]) }
