package pipelines

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is a part of a YAML file and where it stands.
type value struct {
	node *yaml.Node
	file string
}

func (v value) at() place {
	if v.node == nil {
		return place{v.file, 1}
	}
	return place{v.file, v.node.Line}
}

func (v value) missing() bool   { return v.node == nil || v.node.Tag == "!!null" }
func (v value) isMapping() bool { return v.node != nil && v.node.Kind == yaml.MappingNode }
func (v value) isList() bool    { return v.node != nil && v.node.Kind == yaml.SequenceNode }
func (v value) isScalar() bool {
	return v.node != nil && v.node.Kind == yaml.ScalarNode && !v.missing()
}

// entries are the keys and values of a mapping in the file's order.
func (v value) entries() (keys, values []value) {
	if !v.isMapping() {
		return nil, nil
	}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		keys = append(keys, value{v.node.Content[i], v.file})
		values = append(values, value{v.node.Content[i+1], v.file})
	}
	return keys, values
}

// get is the entry of that key; missing() if there is none.
func (v value) get(key string) value {
	keys, values := v.entries()
	for i, k := range keys {
		if k.node.Value == key {
			return values[i]
		}
	}
	return value{file: v.file}
}

func (v value) keys() []string {
	keys, _ := v.entries()
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.node.Value
	}
	return list
}

func (v value) items() []value {
	if !v.isList() {
		return nil
	}
	list := make([]value, len(v.node.Content))
	for i, n := range v.node.Content {
		list[i] = value{n, v.file}
	}
	return list
}

// written is the value as text for a prompt: a scalar as it is; a mapping or a list as indented lines, each value on
// one line.
func (v value) written() string {
	if v.isScalar() {
		return strings.TrimSpace(v.node.Value)
	}
	var b strings.Builder
	v.write(&b, "")
	return strings.TrimRight(b.String(), "\n")
}

func (v value) write(b *strings.Builder, indent string) {
	for _, item := range v.items() {
		if item.isScalar() {
			fmt.Fprintf(b, "%s- %s\n", indent, oneLine(item.node.Value))
			continue
		}
		var inner strings.Builder
		item.write(&inner, indent+"  ")
		b.WriteString(indent + "- " + strings.TrimPrefix(inner.String(), indent+"  "))
	}
	keys, values := v.entries()
	for i, k := range keys {
		if values[i].isScalar() {
			fmt.Fprintf(b, "%s%s: %s\n", indent, k.node.Value, oneLine(values[i].node.Value))
		} else if !values[i].missing() {
			fmt.Fprintf(b, "%s%s:\n", indent, k.node.Value)
			values[i].write(b, indent+"  ")
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// mapping checks that v is a mapping which holds only these fields, each once.
func (p *problems) mapping(v value, what string, fields ...string) bool {
	if !v.isMapping() {
		p.add(v.at(), "%s must be a mapping of fields (%s)", what, names(fields))
		return false
	}
	seen := map[string]bool{}
	keys, _ := v.entries()
	for _, k := range keys {
		name := k.node.Value
		if fields != nil && !slices.Contains(fields, name) {
			p.unknown(k.at(), what, name, fields)
		}
		if seen[name] {
			p.add(k.at(), "%s: %q is set twice; keep one", what, name)
		}
		seen[name] = true
	}
	return true
}

// text is a scalar's text; "" when it is missing.
func (p *problems) text(v value, what string) string {
	if v.missing() {
		return ""
	}
	if !v.isScalar() {
		p.add(v.at(), "%s must be a text", what)
		return ""
	}
	return v.node.Value
}

// texts is a text or a list of texts.
func (p *problems) texts(v value, what string) []string {
	if v.isScalar() {
		return []string{v.node.Value}
	}
	if !v.missing() && !v.isList() {
		p.add(v.at(), "%s must be a text or a list of texts", what)
	}
	var list []string
	for _, item := range v.items() {
		if !item.isScalar() {
			p.add(item.at(), "%s must be a list of texts", what)
			continue
		}
		list = append(list, item.node.Value)
	}
	return list
}

func (p *problems) number(v value, what string, otherwise float64) float64 {
	if v.missing() {
		return otherwise
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(v.node.Value), 64)
	if err != nil || !v.isScalar() || n != n {
		p.add(v.at(), "%s must be a number", what)
		return otherwise
	}
	return n
}

func (p *problems) whole(v value, what string, otherwise int) int {
	n := p.number(v, what, float64(otherwise))
	if n != float64(int(n)) {
		p.add(v.at(), "%s must be a whole number", what)
		return otherwise
	}
	return int(n)
}

// refuseAliases says no to anchors and aliases: lists and for_each do what they are used for, and cannot be made to
// grow without end.
func (p *problems) refuseAliases(v value) bool {
	if v.node == nil {
		return true
	}
	if v.node.Kind == yaml.AliasNode || v.node.Anchor != "" {
		p.add(v.at(), "anchors (&) and aliases (*) are not supported; write it out, or use a list with for_each")
		return false
	}
	ok := true
	for _, n := range v.node.Content {
		ok = p.refuseAliases(value{n, v.file}) && ok
	}
	return ok
}
