package review

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// mend finds the one JSON object that an answer holds, in a fence or in prose, and mends what can be meant in one way
// only. why is what a strict reading said; it is returned when there is nothing to mend.
func mend(text string, why error) (clean string, answer map[string]any, err error) {
	rest := text
	for {
		before, behind, found := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return "", nil, errors.New("the answer is not JSON: there is a closing brace too many")
		}
		if !found {
			break
		}
		if strings.HasSuffix(strings.TrimSpace(before), "[") {
			return "", nil, errors.New("the answer is an array: one JSON object is asked for")
		}
		end := balanced("{" + behind)
		if end < 0 {
			return "", nil, errors.New("the answer is not complete JSON: an object in it is not closed")
		}
		span := "{" + behind[:end-1]
		rest = behind[end-1:]
		fixed := mendSpan(span)
		object, err := parse(fixed)
		switch {
		case err != nil && strings.Contains(span, `"`): // meant as JSON: nothing after it may take its place
			return "", nil, err
		case err != nil: // braces in prose
		case answer != nil && !reflect.DeepEqual(answer, object):
			return "", nil, errors.New("the answer holds two different JSON objects: one is asked for")
		case answer == nil:
			clean, answer = fixed, object
		}
	}
	if answer == nil {
		return "", nil, fmt.Errorf("there is no JSON object in the answer (%w)", why)
	}
	return clean, answer, nil
}

// balanced is where the object that text begins with ends; -1 if it does not.
func balanced(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// mendSpan escapes line breaks and tabs inside of strings, and leaves out commas before a closing bracket.
func mendSpan(span string) string {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(span); i++ {
		c := span[i]
		switch {
		case quoted && c == '\\' && i+1 < len(span):
			out.WriteByte(c)
			i++
			out.WriteByte(span[i])
			continue
		case c == '"':
			quoted = !quoted
		case quoted && c == '\n':
			out.WriteString(`\n`)
			continue
		case quoted && c == '\r':
			out.WriteString(`\r`)
			continue
		case quoted && c == '\t':
			out.WriteString(`\t`)
			continue
		case !quoted && c == ',' && closesNext(span[i+1:]):
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

func closesNext(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	return strings.HasPrefix(rest, "}") || strings.HasPrefix(rest, "]")
}
