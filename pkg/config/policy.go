// Package config is what is set from outside: a policy file, model prices, and the environment of the processes of a
// deployment, with the names that they and what deploys them share.
//
// It may decide: what a file or a variable may say, and where the mistake in it is. It may not: read the environment
// by itself (its caller hands it a lookup), open a store, or hold a number about retrying that is not in
// pipeline.Policy.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast/pkg/pipeline"
)

// maxPolicyFile bounds a policy file, in bytes.
const maxPolicyFile = 1 << 20

// LoadPolicy reads a policy from a YAML or JSON file: the shipped policy, but for the fields that the file names.
// Durations are written as "20s" or "5m". Every error says where in the file it is.
func LoadPolicy(path string) (pipeline.Policy, error) {
	body, err := readFile(path)
	if err != nil {
		return pipeline.Policy{}, fmt.Errorf("read the policy: %w", err)
	}
	return ReadPolicy(path, body)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxPolicyFile+1))
	if err == nil && len(body) > maxPolicyFile {
		err = fmt.Errorf("%s is larger than %d bytes: that is no policy", path, maxPolicyFile)
	}
	return body, err
}

// ReadPolicy is LoadPolicy of a file's body.
func ReadPolicy(path string, body []byte) (pipeline.Policy, error) {
	policy := pipeline.DefaultPolicy()
	fields, err := parse(path, body)
	if err != nil {
		return policy, err
	}
	slots := slotsOf(&policy)
	var errs []error
	lines := map[string]int{}
	for _, f := range fields {
		slot, known := slots[f.name]
		switch {
		case !known:
			errs = append(errs, fmt.Errorf("%s:%d: there is no field %q; the fields are %s", path, f.line, f.name, strings.Join(slices.Sorted(maps.Keys(slots)), ", ")))
		case lines[f.name] != 0:
			errs = append(errs, fmt.Errorf("%s:%d: %s is set already in line %d", path, f.line, f.name, lines[f.name]))
		default:
			lines[f.name] = f.line
			if err := f.set(slot); err != nil {
				errs = append(errs, fmt.Errorf("%s:%d: %s: %w", path, f.line, f.name, err))
			}
		}
	}
	if len(errs) > 0 {
		return policy, errors.Join(errs...)
	}
	return policy, located(path, lines, policy.Validate())
}

// field is one setting of a file.
type field struct {
	name  string
	line  int
	value *yaml.Node
}

func parse(path string, body []byte) ([]field, error) {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		body = bytes.ReplaceAll(body, []byte("\t"), []byte(" ")) // JSON may be indented with tabs, YAML may not
	}
	var root yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	err := decoder.Decode(&root)
	if errors.Is(err, io.EOF) {
		return nil, nil // an empty file changes nothing
	}
	if err != nil {
		return nil, errors.New(yamlProblem(path, err))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is more than one document in it", path)
	}
	top := root.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: a policy is a list of names and values, e.g. claim_ttl: 20s", path, top.Line)
	}
	var fields []field
	for i := 0; i+1 < len(top.Content); i += 2 {
		fields = append(fields, field{top.Content[i].Value, top.Content[i].Line, top.Content[i+1]})
	}
	return fields, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// yamlProblem puts file and line in front of what the parser says.
func yamlProblem(path string, err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if found := yamlLine.FindStringSubmatch(text); found != nil {
		return fmt.Sprintf("%s:%s: %s", path, found[1], strings.Replace(text, found[0], "", 1))
	}
	return path + ": " + text
}

// slotsOf are the policy's fields by their names in files.
func slotsOf(policy *pipeline.Policy) map[string]reflect.Value {
	slots := map[string]reflect.Value{}
	value := reflect.ValueOf(policy).Elem()
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		slots[name] = value.Field(i)
	}
	return slots
}

func (f field) set(slot reflect.Value) error {
	if f.value.Kind != yaml.ScalarNode {
		return errors.New("must be one value")
	}
	text := f.value.Value
	if slot.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is no duration: write e.g. 20s, 500ms or 5m", text)
		}
		slot.SetInt(int64(d))
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%q is no whole number", text)
	}
	slot.SetInt(int64(n))
	return nil
}

// located puts the line of the first field that each problem names in front of it.
func located(path string, lines map[string]int, problems error) error {
	if problems == nil {
		return nil
	}
	var errs []error
	for problem := range strings.Lines(problems.Error()) {
		problem = strings.TrimSpace(problem)
		where := path
		for _, word := range regexp.MustCompile(`[a-z_]+`).FindAllString(problem, -1) {
			if line := lines[word]; line > 0 {
				where = fmt.Sprintf("%s:%d", path, line)
				break
			}
		}
		errs = append(errs, fmt.Errorf("%s: %s", where, problem))
	}
	return errors.Join(errs...)
}
