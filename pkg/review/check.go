package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast/pkg/pipeline"
)

// MaxAnswer is the longest answer that is read, in bytes.
const MaxAnswer = 1 << 20

// Check says what is wrong with an answer, in words that can be put into the next ask. clean is the JSON to keep: the
// answer itself, or what stands in it where that is beyond doubt (repaired): inside a fence or prose, with line breaks
// inside of strings, with a comma too many. Anything that could be read in two ways is refused.
func (r *Reviewer) Check(d pipeline.Definition, call pipeline.Call, text string) (clean string, repaired bool, err error) {
	if d.Handler != "" {
		return checkItem(text)
	}
	clean = strings.TrimSpace(text)
	if err := readable(clean); err != nil {
		return "", false, err
	}
	answer, err := parse(clean)
	if err != nil {
		if clean, answer, err = mend(clean, err); err != nil {
			return "", false, err
		}
		repaired = true
	}
	if err := r.fits(d, call, answer); err != nil {
		return "", false, err
	}
	return clean, repaired, nil
}

// fits checks an answer against the call's schema and against what the engine reads of it.
func (r *Reviewer) fits(d pipeline.Definition, call pipeline.Call, answer map[string]any) error {
	schema, err := r.schema(d.Schemas[call.Schema])
	if err != nil {
		return fmt.Errorf("schema %s: %w", call.Schema, err)
	}
	if err := schema.Validate(answer); err != nil {
		return errors.New(mismatch(err))
	}
	if _, err := valueOf(call, answer); err != nil {
		return err
	}
	given, err := givenOf(call, answer)
	if err != nil {
		return err
	}
	for i, g := range given {
		if err := g.known(d); err != nil {
			return fmt.Errorf("%s[%d]: %w", call.Findings, i, err)
		}
	}
	return nil
}

// schema compiles a schema, once.
func (r *Reviewer) schema(text json.RawMessage) (*jsonschema.Schema, error) {
	if compiled, ok := r.schemas.Load(string(text)); ok {
		return compiled.(*jsonschema.Schema), nil
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	const name = "answer.json"
	if err := c.AddResource(name, document); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, err
	}
	kept, _ := r.schemas.LoadOrStore(string(text), compiled)
	return kept.(*jsonschema.Schema), nil
}

// maxMismatches is how many differences from a schema are told at once.
const maxMismatches = 3

// mismatch says where an answer differs from its schema, each place in one line.
func mismatch(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return "the answer does not match the schema: " + pipeline.Cut(err.Error(), pipeline.MaxDetail)
	}
	var told []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 && len(told) < maxMismatches {
			told = append(told, pipeline.Cut(e.Error(), pipeline.MaxDetail/maxMismatches))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(invalid)
	return "the answer does not match the schema: " + strings.Join(told, "; ")
}
