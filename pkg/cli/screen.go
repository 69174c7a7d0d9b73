package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"holdfast/pkg/pipeline"
)

// columns is how wide texts are, and progress where nobody knows the terminal's width.
const columns = 100

// quiet is how long a screen that is no terminal is silent between two lines of progress.
const quiet = 5 * time.Second

// screen shows lines, and below them progress that is drawn over itself on a terminal.
type screen struct {
	out   io.Writer
	width func() int // of the terminal; nil: it is none
	drawn int
	last  time.Time
	begin time.Time
	typed string // how this program is called: what begins so is a command
}

func newScreen(a *app, aside bool) *screen {
	out, file := a.out, os.Stdout
	if aside {
		out, file = a.err, os.Stderr
	}
	s := &screen{out: out, begin: time.Now(), typed: a.typed()}
	if fd := int(file.Fd()); out == io.Writer(file) && term.IsTerminal(fd) {
		s.width = func() int {
			if width, _, err := term.GetSize(fd); err == nil && width > 0 {
				return width
			}
			return columns
		}
	}
	return s
}

// say prints a text, folded to the width of texts.
func (s *screen) say(format string, args ...any) {
	s.lines(fmt.Sprintf(format, args...))
}

func (s *screen) lines(lines ...string) {
	s.clear()
	width := columns
	if s.width != nil {
		width = min(width, s.width())
	}
	for _, line := range lines {
		for _, part := range fold(line, s.typed, width) {
			fmt.Fprintln(s.out, part)
		}
	}
}

func (s *screen) clear() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

// show draws the progress: over the one before on a terminal, now and then one line elsewhere.
func (s *screen) show(p progress, model pipeline.ModelInfo) {
	if s.width == nil && time.Since(s.last) < quiet {
		return
	}
	s.last = time.Now()
	since := time.Since(s.begin)
	if s.width == nil {
		fmt.Fprintln(s.out, "  "+strings.Join(progressLines(p, model, pipeline.NewRealClock().Now(), since, columns), "; "))
		return
	}
	width := s.width()
	var frame strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&frame, "\x1b[%dA", s.drawn)
	}
	lines := progressLines(p, model, pipeline.NewRealClock().Now(), since, width-3)
	for _, line := range lines {
		frame.WriteString("\x1b[2K  " + shorten(line, width-3) + "\n")
	}
	frame.WriteString("\x1b[J") // what an earlier frame had more
	_, _ = io.WriteString(s.out, frame.String())
	s.drawn = len(lines)
}

// shorten cuts a line that would wrap: a wrapped line is not drawn over.
func shorten(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= max(width, 0) {
		return line
	}
	return string(runes[:max(width, 0)])
}

// fold breaks the lines of a text. What it says to type next, after the program's name, stays in one line, whatever its
// width: half of a command is another command.
func fold(text, typed string, width int) []string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		at := strings.Index(line, typed+" ")
		if typed == "" || at < 0 || utf8.RuneCountInString(line) <= width {
			lines = append(lines, foldLine(line, width)...)
			continue
		}
		if before := strings.TrimRight(line[:at], " "); before != "" {
			lines = append(lines, foldLine(before, width)...)
		}
		lines = append(lines, "    "+line[at:])
	}
	return lines
}

// foldLine breaks a line at spaces into lines of at most width columns; those after the first are indented by two more
// than it. A word that is longer stays whole.
func foldLine(line string, width int) []string {
	indent := strings.Repeat(" ", 2+len(line)-len(strings.TrimLeft(line, " ")))
	var lines []string
	for rest := []rune(line); ; {
		if len(rest) <= width {
			return append(lines, string(rest))
		}
		cut := lastSpace(rest, width)
		if cut < 0 {
			return append(lines, string(rest))
		}
		lines = append(lines, strings.TrimRight(string(rest[:cut]), " "))
		rest = []rune(indent + strings.TrimLeft(string(rest[cut:]), " "))
	}
}

// lastSpace is where to break: the last space that fits, else the first after it; never in the indentation.
func lastSpace(line []rune, width int) int {
	begin := 0
	for begin < len(line) && line[begin] == ' ' {
		begin++
	}
	cut := -1
	for i := begin; i < len(line); i++ {
		if line[i] != ' ' {
			continue
		}
		if i > width && cut >= 0 {
			break
		}
		cut = i
		if i > width {
			break
		}
	}
	return cut
}

// indented puts the same before each line.
func indented(indent string, lines ...string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, indent+line)
	}
	return all
}
