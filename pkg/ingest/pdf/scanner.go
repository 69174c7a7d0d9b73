package pdf

import (
	"bytes"
	"strconv"
)

// scanner reads the values of a PDF one after the other. What it does not know is nil.
type scanner struct {
	source []byte
	at     int
}

func (s *scanner) peek() byte {
	if s.at >= len(s.source) {
		return 0
	}
	return s.source[s.at]
}

func (s *scanner) space() {
	for s.at < len(s.source) && bytes.IndexByte([]byte(" \t\r\n\f\x00"), s.source[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) starts(text string) bool { return bytes.HasPrefix(s.source[s.at:], []byte(text)) }

// value is the next value.
func (s *scanner) value(depth int) any {
	s.space()
	switch c := s.peek(); {
	case s.at >= len(s.source) || depth > maxNested:
		s.at = len(s.source)
		return nil
	case s.starts("<<"):
		return s.dict(depth)
	case c == '[':
		return s.array(depth)
	case c == '<':
		s.until('>')
		return nil
	case c == '(':
		s.text()
		return nil
	case c == '/':
		s.at++
		return name(s.word())
	}
	word := s.word()
	if len(word) == 0 {
		s.at++ // of no value: on with the next byte
		return nil
	}
	n, err := strconv.Atoi(string(word))
	if err != nil {
		return nil
	}
	if s.reference() {
		return ref(n)
	}
	return n
}

// reference reads " 0 R" if it comes next.
func (s *scanner) reference() bool {
	before := s.at
	s.space()
	if _, err := strconv.ParseUint(string(s.word()), 10, 16); err == nil {
		s.space()
		if string(s.word()) == "R" {
			return true
		}
	}
	s.at = before
	return false
}

func (s *scanner) word() []byte {
	begin := s.at
	for s.at < len(s.source) && bytes.IndexByte([]byte(" \t\r\n\f\x00/<>[](){}%"), s.source[s.at]) < 0 {
		s.at++
	}
	return s.source[begin:s.at]
}

func (s *scanner) dict(depth int) dict {
	d := dict{}
	for s.at += len("<<"); ; {
		s.space()
		if s.at >= len(s.source) || s.starts(">>") {
			s.at = min(len(s.source), s.at+len(">>"))
			return d
		}
		key, ok := s.value(depth + 1).(name)
		if ok {
			d[string(key)] = s.value(depth + 1)
		}
	}
}

func (s *scanner) array(depth int) array {
	var a array
	for s.at++; ; {
		s.space()
		if s.at >= len(s.source) || s.peek() == ']' {
			s.at = min(len(s.source), s.at+1)
			return a
		}
		a = append(a, s.value(depth+1))
	}
}

func (s *scanner) until(end byte) {
	i := bytes.IndexByte(s.source[s.at:], end)
	if i < 0 {
		i = len(s.source) - s.at - 1
	}
	s.at += i + 1
}

// text passes over a string in parentheses, which may hold others.
func (s *scanner) text() {
	open := 0
	for ; s.at < len(s.source); s.at++ {
		switch s.source[s.at] {
		case '\\':
			s.at++
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				s.at++
				return
			}
		}
	}
	s.at = len(s.source)
}
