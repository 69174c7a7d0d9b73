package cli

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// words splits a command into its program and arguments: at white space, but not inside of quotes or after a
// backslash, as a shell does. Nothing is expanded.
func words(text string) ([]string, error) {
	var all []string
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune(`"\$`+"`", c) {
				word.WriteRune('\\')
			}
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, begun = true, true
		case c == quote && quote != 0:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case unicode.IsSpace(c):
			if begun {
				all = append(all, word.String())
			}
			word.Reset()
			begun = false
		case strings.ContainsRune("|<>;&", c):
			return nil, fmt.Errorf("no shell reads %q here: say so with sh -c '... \"$1\" ...' sh {}, or put it in quotes", string(c))
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote or a backslash is left open")
	}
	if begun {
		all = append(all, word.String())
	}
	return all, nil
}
