package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readable refuses what no repair makes good.
func readable(text string) error {
	switch {
	case text == "":
		return errors.New("the answer is empty")
	case len(text) > MaxAnswer:
		return fmt.Errorf("the answer has %d bytes, at most %d are read", len(text), MaxAnswer)
	case !utf8.ValidString(text):
		return errors.New("the answer is not UTF-8")
	case strings.ContainsRune(text, 0):
		return errors.New("the answer holds a NUL")
	}
	return nil
}

// maxDepth is how deep an answer may nest.
const maxDepth = 64

// parse reads one JSON object and nothing else, more strictly than encoding/json does: no name twice in an object, no
// number beyond a float64, no half of a surrogate pair (which would silently become another character), no NUL.
func parse(text string) (map[string]any, error) {
	if !json.Valid([]byte(text)) {
		return nil, syntaxError(text)
	}
	if err := checkEscapes(text); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	value, err := readValue(dec, 0)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the answer is not a JSON object")
	}
	return object, nil
}

func syntaxError(text string) error {
	var any any
	dec := json.NewDecoder(strings.NewReader(text))
	err := dec.Decode(&any)
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the answer is not complete JSON: it ends too early")
	case errors.As(err, &syntax):
		return fmt.Errorf("the answer is not JSON: %v at byte %d", syntax, syntax.Offset)
	case err != nil:
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	return fmt.Errorf("the answer is not one JSON object: something follows at byte %d", dec.InputOffset())
}

func readValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the answer nests deeper than %d levels", maxDepth)
	}
	token, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	switch token := token.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(string(token), 64)
		if err != nil || math.IsInf(f, 0) || len(token) > 40 {
			return nil, fmt.Errorf("the number %.40s is out of range", string(token))
		}
		return token, nil
	case json.Delim:
		if token == '{' {
			return readObject(dec, depth)
		}
		return readArray(dec, depth)
	default:
		return token, nil
	}
}

func readObject(dec *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("the answer is not JSON: %w", err)
		}
		name, _ := token.(string)
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the name %.60q stands twice in one object", name)
		}
		if object[name], err = readValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return object, err
}

func readArray(dec *json.Decoder, depth int) (any, error) {
	array := []any{}
	for dec.More() {
		value, err := readValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	_, err := dec.Token()
	return array, err
}

// checkEscapes refuses \u0000 and halves of surrogate pairs in valid JSON.
func checkEscapes(text string) error {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		unit := hexUnit(text[i+1:])
		switch {
		case unit == 0:
			return errors.New(`the answer holds a NUL (\u0000)`)
		case unit >= 0xDC00 && unit < 0xE000:
			return fmt.Errorf(`the answer holds half of a surrogate pair (\u%04x)`, unit)
		case unit >= 0xD800 && unit < 0xDC00:
			low := -1
			if strings.HasPrefix(text[i+5:], `\u`) {
				low = hexUnit(text[i+7:])
			}
			if low < 0xDC00 || low >= 0xE000 {
				return fmt.Errorf(`the answer holds half of a surrogate pair (\u%04x)`, unit)
			}
			i += 10
			continue
		}
		i += 4
	}
	return nil
}

func hexUnit(text string) int {
	if len(text) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(text[:4], 16, 32)
	if err != nil {
		return -1
	}
	return int(n)
}
