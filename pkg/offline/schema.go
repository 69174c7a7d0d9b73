package offline

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checker is a JSON Schema, ready to check answers with, and the document that it was made of.
type checker struct {
	schema *jsonschema.Schema
	doc    map[string]any
}

// checkers are the compiled schemas, by their text: a pipeline has a handful.
var checkers sync.Map

const noURL = "holdfast:schema"

func compileSchema(raw []byte) (*checker, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte(`{"type":"object"}`)
	}
	if known, ok := checkers.Load(string(raw)); ok {
		return known.(*checker), nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	top, ok := doc.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the schema is not an object")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(noURL, doc); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	schema, err := c.Compile(noURL)
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	made := &checker{schema, top}
	checkers.Store(string(raw), made)
	return made, nil
}

func (c *checker) valid(body []byte) bool {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	return err == nil && c.schema.Validate(value) == nil
}

type nothing struct{}

// Load refuses: a schema stands on its own.
func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s", url)
}
