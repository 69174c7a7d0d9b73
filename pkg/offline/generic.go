package offline

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/pkg/pipeline"
)

// generic is an honest answer for a call that no rules know: what the schema demands, with texts from the document,
// numbers at their least, and at most one finding: the first sentence that shares words with the question.
func (q question) generic(check *checker) (string, error) {
	for _, g := range []generator{{q: q, root: check.doc, full: true}, {q: q, root: check.doc}} {
		g.sentence, g.shared = q.relevant()
		body, err := json.Marshal(g.value(check.doc, "", 0))
		if err != nil {
			return "", fmt.Errorf("encode the answer: %w", err)
		}
		if check.valid(body) && !(q.maxTokens > 0 && g.full && outputTokens(string(body)) > q.maxTokens) {
			return string(body), nil
		}
	}
	return "", errNoAnswer
}

// generator makes a value that fits a schema. Full ones fill lists and optional fields.
type generator struct {
	q        question
	root     map[string]any
	full     bool
	sentence string   // verbatim
	shared   []string // the words that it shares with the question
}

const maxDepth = 12

func (g generator) value(schema map[string]any, name string, depth int) any {
	schema = g.resolve(schema, depth)
	if depth > maxDepth {
		return nil
	}
	if v, ok := schema["const"]; ok {
		return v
	}
	if list, ok := schema["enum"].([]any); ok && len(list) > 0 {
		return list[0]
	}
	switch g.typeOf(schema) {
	case "object":
		return g.object(schema, depth)
	case "array":
		return g.array(schema, name, depth)
	case "number", "integer":
		return g.number(schema, name)
	case "boolean":
		return false
	case "null":
		return nil
	}
	return g.text(schema, name)
}

// resolve follows $ref within the schema, and takes the first of alternatives; allOf is laid over the rest.
func (g generator) resolve(schema map[string]any, depth int) map[string]any {
	for i := depth; i <= maxDepth; i++ {
		if ref, ok := schema["$ref"].(string); ok {
			schema = g.lookup(ref)
			continue
		}
		first := firstOf(schema, "anyOf", "oneOf")
		all, _ := schema["allOf"].([]any)
		if first == nil && len(all) == 0 {
			return schema
		}
		merged := map[string]any{}
		for _, part := range append([]any{schema, first}, all...) {
			overlay(merged, part)
		}
		schema = merged
	}
	return schema
}

func firstOf(schema map[string]any, keys ...string) any {
	for _, k := range keys {
		if list, ok := schema[k].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	return nil
}

func overlay(into map[string]any, part any) {
	fields, _ := part.(map[string]any)
	for k, v := range fields {
		if k == "anyOf" || k == "oneOf" || k == "allOf" {
			continue
		}
		old, both := into[k].(map[string]any)
		if more, ok := v.(map[string]any); ok && both {
			joined := map[string]any{}
			overlay(joined, old)
			overlay(joined, more)
			v = joined
		}
		if list, ok := v.([]any); ok && k == "required" {
			if old, ok := into[k].([]any); ok {
				v = append(slices.Clone(old), list...)
			}
		}
		into[k] = v
	}
}

func (g generator) lookup(ref string) map[string]any {
	var at any = g.root
	for _, part := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if part == "" {
			continue
		}
		fields, _ := at.(map[string]any)
		at = fields[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	found, _ := at.(map[string]any)
	return found
}

func (g generator) typeOf(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			name, _ := t[0].(string)
			return name
		}
	}
	if _, ok := schema["properties"]; ok {
		return "object"
	}
	if _, ok := schema["items"]; ok {
		return "array"
	}
	return "string"
}

func (g generator) object(schema map[string]any, depth int) any {
	made := map[string]any{}
	fields, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for name, f := range fields {
		field, ok := f.(map[string]any)
		if ok && (g.full && depth < 4 || slices.Contains(required, any(name))) {
			made[name] = g.value(field, name, depth+1)
		}
	}
	for _, r := range required {
		if name, ok := r.(string); ok && fields[name] == nil {
			made[name] = g.sentence
		}
	}
	return made
}

func (g generator) array(schema map[string]any, name string, depth int) any {
	least := int(numberAt(schema, "minItems", 0))
	want := least
	item, _ := schema["items"].(map[string]any)
	if g.full && item != nil && g.isFinding(item) && g.sentence != "" && len(g.shared) > 1 {
		want = max(least, 1)
	}
	want = min(want, 20)
	list := make([]any, 0, want)
	for range want {
		list = append(list, g.value(item, name, depth+1))
	}
	return list
}

// isFinding says that the items of a list have a quote.
func (g generator) isFinding(item map[string]any) bool {
	fields, _ := g.resolve(item, 0)["properties"].(map[string]any)
	return fields["quote"] != nil
}

func (g generator) number(schema map[string]any, name string) any {
	n := numberAt(schema, "minimum", 0)
	if least, ok := schema["exclusiveMinimum"]; ok {
		n = asNumber(least, 0) + 1
	}
	if most := numberAt(schema, "maximum", math.Inf(1)); n > most {
		n = most
	}
	if name == "confidence" && g.typeOf(schema) == "number" && n <= 0.3 {
		n = 0.3
	}
	if by := numberAt(schema, "multipleOf", 0); by > 0 {
		n = math.Ceil(n/by) * by
	}
	if g.typeOf(schema) == "integer" {
		return int64(math.Ceil(n))
	}
	return n
}

func numberAt(schema map[string]any, key string, otherwise float64) float64 {
	v, ok := schema[key]
	if !ok {
		return otherwise
	}
	return asNumber(v, otherwise)
}

func asNumber(v any, otherwise float64) float64 {
	n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		return otherwise
	}
	return n
}

func (g generator) text(schema map[string]any, name string) string {
	s := g.words(name)
	if most := numberAt(schema, "maxLength", math.Inf(1)); float64(len([]rune(s))) > most {
		s = string([]rune(s)[:int(most)])
	}
	if short := int(numberAt(schema, "minLength", 0)) - len([]rune(s)); short > 0 && short < 10_000 {
		s += strings.Repeat(".", short)
	}
	return s
}

// words are a text for a field, by its name.
func (g generator) words(name string) string {
	switch {
	case name == "quote":
		return g.sentence
	case name == "title" || name == "heading":
		return firstWords(g.sentence, 8)
	case name == "summary" || name == "text" || name == "answer":
		return pipeline.Cut(g.q.text.summary(), mostSummary)
	case name == "rationale" || name == "reason" || name == "explanation":
		if len(g.shared) == 0 {
			return "No sentence shares words with the question."
		}
		return "The sentence shares these words with the question: " + strings.Join(g.shared, ", ") + "."
	}
	return firstWords(g.sentence, 20)
}

func firstWords(s string, n int) string {
	all := strings.Fields(s)
	return strings.TrimRight(strings.Join(all[:min(n, len(all))], " "), ".,;:")
}

var wordPattern = regexp.MustCompile(`[A-Za-z]{3,}`)

var commonWords = wordSet(`the and for was are did not you all any but can has had her his its our out who why how one two each
	call with from that this there they them their have been were will shall each once about answer list
	empty good report topic quote sentence text only json what when where which whose part into such also than then some
	none name names first earlier reply replies first between more most must says said does customer customers ticket tickets`)

// relevant is the first sentence that shares two words with the question, verbatim, and those words; the first
// sentence of all, with none, if there is no such one.
func (q question) relevant() (string, []string) {
	asked := map[string]bool{}
	for _, w := range wordPattern.FindAllString(q.prompt, -1) {
		if w = stem(w); !commonWords[w] {
			asked[w] = true
		}
	}
	for _, s := range q.text.sentences {
		var shared []string
		for _, w := range wordPattern.FindAllString(q.text.plain[s.start:s.end], -1) {
			if w = stem(w); asked[w] && !slices.Contains(shared, w) {
				shared = append(shared, w)
			}
		}
		if len(shared) > 1 {
			return q.text.quote(s, s), shared
		}
	}
	if len(q.text.sentences) == 0 {
		return "", nil
	}
	s := q.text.sentences[0]
	return q.text.quote(s, s), nil
}

func stem(w string) string {
	w = strings.ToLower(w)
	for _, ending := range []string{"ing", "ed", "s"} {
		if len(w) > len(ending)+3 && strings.HasSuffix(w, ending) {
			return strings.TrimSuffix(w, ending)
		}
	}
	return w
}
