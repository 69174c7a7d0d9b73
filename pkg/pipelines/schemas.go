package pipelines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast/pkg/pipeline"
)

// schema is a JSON Schema, as it is sent and as it is looked into here.
type schema struct {
	raw    json.RawMessage
	fields map[string]any // its top-level properties; nil when it lists none
}

func (l *loader) readSchemas(v value) {
	if v.missing() {
		l.add(v.at(), "schemas: there must be at least one, as a mapping or as `name: {file: name.json}`")
		return
	}
	l.mapping(v, "schemas")
	keys, values := v.entries()
	for i, k := range keys {
		l.schemas[k.node.Value] = l.readSchema(values[i], "schema "+k.node.Value)
	}
}

func (l *loader) readSchema(v value, what string) schema {
	raw, at, ok := l.schemaText(v, what)
	if !ok {
		return schema{}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		l.add(at, "%s: %v", what, err)
		return schema{raw: raw}
	}
	top, ok := doc.(map[string]any)
	if !ok || top["type"] != "object" {
		l.add(at, "%s: must say `type: object` at the top: an answer is always an object", what)
		return schema{raw: raw}
	}
	if err := compile(doc); err != nil {
		l.add(at, "%s: %s", what, err)
	}
	fields, _ := top["properties"].(map[string]any) // a schema without any is fine
	return schema{raw: raw, fields: fields}
}

// schemaText is the schema as compact JSON, and where it stands.
func (l *loader) schemaText(v value, what string) (json.RawMessage, place, bool) {
	at := v.at()
	name, isFile := l.fileOf(v, what)
	if isFile && strings.HasSuffix(name, ".json") {
		body, ok := l.read(name, at)
		if !ok {
			return nil, at, false
		}
		var whole json.RawMessage
		if err := json.Unmarshal(body, &whole); err != nil {
			l.add(place{name, lineOf(body, err)}, "%s: not JSON: %v", what, err)
			return nil, at, false
		}
		var b bytes.Buffer
		_ = json.Compact(&b, whole) // it was read above
		return b.Bytes(), place{name, 1}, true
	}
	if isFile {
		var ok bool
		if v, ok = l.readYAML(name, at); !ok {
			return nil, at, false
		}
	}
	if !v.isMapping() {
		l.add(v.at(), "%s: must be a mapping (a JSON Schema), or `file:` and the name of one", what)
		return nil, at, false
	}
	var doc any
	err := v.node.Decode(&doc)
	if err == nil {
		var raw []byte
		if raw, err = json.Marshal(doc); err == nil {
			return raw, v.at(), true
		}
	}
	l.add(v.at(), "%s: cannot be written as JSON: %v", what, err)
	return nil, at, false
}

// lineOf is the line of a JSON syntax error.
func lineOf(body []byte, err error) int {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset > int64(len(body)) {
		return 1
	}
	return bytes.Count(body[:syntax.Offset], []byte("\n")) + 1
}

// compile checks that doc is a JSON Schema which stands on its own: a reference to another file or host is refused.
func compile(doc any) error {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("holdfast:schema", doc); err != nil {
		return errors.New(oneLine(err.Error()))
	}
	if _, err := c.Compile("holdfast:schema"); err != nil {
		return errors.New(plainError(err))
	}
	return nil
}

// plainError is the last and most precise of what the compiler says.
func plainError(err error) string {
	text := strings.ReplaceAll(oneLine(err.Error()), "holdfast:schema", "")
	if i := strings.LastIndex(text, " - at '"); i >= 0 {
		return "not a JSON Schema: " + text[i+len(" - "):]
	}
	return text
}

type noLoader struct{}

// Load refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s; write it out under $defs", url)
}

// checkSchemaFields looks at the fields of the reply that the engine will read.
func (l *loader) checkSchemaFields(v value, c pipeline.Call, where string) {
	fields := l.schemas[c.Schema].fields
	if fields == nil {
		return
	}
	if c.Value != "" && !ofType(fields[c.Value], "number", "integer") {
		l.add(v.get("value").at(), "%s: value: schema %s has no number field %q; its fields are %s", where, c.Schema, c.Value, names(sorted(fields)))
	}
	if c.Findings != "" && !ofType(fields[c.Findings], "array") {
		l.add(v.get("findings").at(), "%s: findings: schema %s has no list field %q; its fields are %s", where, c.Schema, c.Findings, names(sorted(fields)))
		return
	}
	l.checkFinding(v, c, where, fields)
}

// checkFinding looks at what the schema lets a finding say: a severity or a category that the engine does not know would
// be a malformed answer, each time and for money.
func (l *loader) checkFinding(v value, c pipeline.Call, where string, fields map[string]any) {
	list, _ := fields[c.Findings].(map[string]any)
	item, _ := list["items"].(map[string]any)
	of, _ := item["properties"].(map[string]any)
	if len(of) == 0 {
		return // it lets anything pass, or refers elsewhere: answers are looked at when they come
	}
	at := v.get("findings").at()
	var severities []string
	for _, s := range pipeline.Severities {
		severities = append(severities, string(s))
	}
	if of["severity"] == nil {
		l.add(at, "%s: findings: in schema %s a finding has no severity; add severity: {type: string, enum: [%s]}", where, c.Schema, names(severities))
	}
	for _, word := range strangers(of["severity"], severities) {
		l.add(at, "%s: findings: schema %s allows the severity %q, which nobody knows; the severities are %s", where, c.Schema, word, names(severities))
	}
	if known := ids(l.lists["categories"]); len(known) > 0 {
		for _, word := range strangers(of["category"], known) {
			l.add(at, "%s: findings: schema %s allows the category %q, which is not there; the categories are %s", where, c.Schema, word, names(known))
		}
	}
}

// strangers are the words of a field's enum that are not known.
func strangers(field any, known []string) []string {
	f, _ := field.(map[string]any)
	enum, _ := f["enum"].([]any)
	var strange []string
	for _, word := range enum {
		if text, ok := word.(string); !ok || !slices.Contains(known, text) {
			strange = append(strange, fmt.Sprint(word))
		}
	}
	return strange
}

func ofType(field any, types ...string) bool {
	f, ok := field.(map[string]any)
	if !ok {
		return false
	}
	name, ok := f["type"].(string)
	return ok && slices.Contains(types, name)
}
