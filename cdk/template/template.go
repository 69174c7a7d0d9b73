// Package template reads a CloudFormation template as data: its resources, and values with their references written
// out as text.
//
// It may not: know what a resource means.
package template

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Template is a CloudFormation template.
type Template struct {
	Resources map[string]Resource
	Outputs   map[string]any
}

// Resource is one of its resources.
type Resource struct {
	ID                  string `json:"-"`
	Type                string
	Properties          map[string]any
	Metadata            map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
	DependsOn           any
}

// Parse reads a template's JSON.
func Parse(body []byte) (Template, error) {
	var t Template
	if err := json.Unmarshal(body, &t); err != nil {
		return t, fmt.Errorf("read the template: %w", err)
	}
	for id, r := range t.Resources {
		r.ID = id
		t.Resources[id] = r
	}
	return t, nil
}

// Load reads a template's file.
func Load(path string) (Template, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return Template{}, err
	}
	return Parse(body)
}

// Of are the resources of a type, by their logical ids' order.
func (t Template) Of(kind string) (all []Resource) {
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		if r := t.Resources[id]; r.Type == kind {
			all = append(all, r)
		}
	}
	return all
}

// Join is all resources of several templates. Their logical ids must differ or their resources be the same.
func Join(all ...Template) Template {
	joined := Template{Resources: map[string]Resource{}}
	for n, t := range all {
		for id, r := range t.Resources {
			joined.Resources[fmt.Sprintf("%d.%s", n, id)] = r
		}
	}
	return joined
}

// Get is a property by its path, e.g. "Code.S3Key"; nil if it is not set.
func (r Resource) Get(path string) any {
	var at any = r.Properties
	for _, name := range strings.Split(path, ".") {
		m, is := at.(map[string]any)
		if !is {
			return nil
		}
		at = m[name]
	}
	return at
}

// Text is a property as text, with its references written out; "" if it is not set.
func (r Resource) Text(path string) string { return Text(r.Get(path)) }

// Number is a property as a number; 0 if it is not set.
func (r Resource) Number(path string) float64 {
	n, _ := r.Get(path).(float64)
	return n
}

// Text is a value as text. A reference is written as in Fn::Sub: ${Name} or ${Name.Attribute}.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any:
		return reference(v)
	default:
		return fmt.Sprint(v)
	}
}

func reference(v map[string]any) string {
	for name, of := range v {
		switch name {
		case "Ref":
			return "${" + Text(of) + "}"
		case "Fn::GetAtt":
			return "${" + strings.Join(Texts(of), ".") + "}"
		case "Fn::Sub":
			return Text(of)
		case "Fn::Join":
			if parts, is := of.([]any); is && len(parts) == 2 {
				return strings.Join(Texts(parts[1]), Text(parts[0]))
			}
		}
	}
	body, _ := json.Marshal(v)
	return string(body)
}

// Texts is a list of values, or one value, as texts.
func Texts(v any) (all []string) {
	list, is := v.([]any)
	if !is {
		if v == nil {
			return nil
		}
		return []string{Text(v)}
	}
	for _, each := range list {
		all = append(all, Text(each))
	}
	return all
}
