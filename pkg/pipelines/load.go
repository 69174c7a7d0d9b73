package pipelines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast/pkg/pipeline"
)

// Bounds of a definition, so that a mistake in one is an error and not a bill.
const (
	maxFile  = 4 << 20 // bytes of one file
	maxCalls = 1000    // calls of a chunk
)

// defaultChunking is what a definition gets that says nothing about it.
var defaultChunking = pipeline.Chunking{Target: 1000, Max: 1300, Overlap: 80, MaxChunks: 5000}

// loader turns one definition file into a Definition of one profile.
type loader struct {
	problems
	folder  fs.FS
	profile string
	def     pipeline.Definition
	prompts map[string]prompt
	schemas map[string]schema
	lists   map[string]value  // what for_each goes through
	calls   map[string]parsed // by id
}

// parsed is where a call stands in the file, and its stage from 1.
type parsed struct {
	at    place
	stage int
}

func load(folder fs.FS, main, profile string, show func(string) string) (pipeline.Definition, error) {
	l := &loader{
		problems: problems{show: show, seen: map[string]bool{}},
		folder:   folder,
		profile:  profile,
		prompts:  map[string]prompt{},
		schemas:  map[string]schema{},
		lists:    map[string]value{},
		calls:    map[string]parsed{},
	}
	root, ok := l.readYAML(main, place{main, 1})
	if ok {
		l.definition(root)
	}
	if err := l.err(); err != nil {
		return pipeline.Definition{}, err
	}
	if err := l.def.Validate(); err != nil {
		l.add(root.at(), "%v", err)
		return pipeline.Definition{}, l.err()
	}
	return l.def, nil
}

func (l *loader) definition(root value) {
	l.mapping(root, "a definition", "name", "version", "title", "profiles", "system", "shared", "prompts", "schemas",
		"lists", "categories", "analysts", "chunking", "tolerance", "stages")
	if !l.chooseProfile(root) {
		return
	}
	l.head(root)
	l.readPrompts(root.get("prompts"))
	l.readSchemas(root.get("schemas"))
	if !l.readLists(root) {
		return
	}
	l.readCategories()
	l.readAnalysts()
	l.readStages(root.get("stages"))
	l.checkPresence()
	l.checkPrompts(root)
	l.keepUsed()
}

// chooseProfile settles which profile is meant: the one that was asked for, or the first.
func (l *loader) chooseProfile(root value) bool {
	all := l.texts(root.get("profiles"), "profiles")
	if len(all) == 0 {
		all = []string{"full"}
	}
	asked := l.profile
	if asked == "" {
		l.profile = all[0]
	}
	if !slices.Contains(all, l.profile) {
		l.add(root.get("profiles").at(), "there is no profile %q; the profiles are %s", asked, names(all))
		return false
	}
	l.checkProfiles(root.get("stages"), all)
	if l.profile != all[0] {
		l.def.Version = "+" + l.profile
	}
	return true
}

func (l *loader) checkProfiles(stages value, all []string) {
	for _, stage := range stages.items() {
		for _, p := range l.texts(stage.get("profiles"), "profiles") {
			if !slices.Contains(all, p) {
				l.add(stage.get("profiles").at(), "stage %s: there is no profile %q; the profiles are %s",
					stage.get("name").written(), p, names(all))
			}
		}
	}
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$`)

const nameRule = "up to 80 letters, digits, dots, dashes and underscores, beginning with a letter or digit"

func (l *loader) head(root value) {
	l.def.Name = l.text(root.get("name"), "name")
	if !goodName.MatchString(l.def.Name) {
		l.add(orParent(root.get("name"), root).at(), "name: %q must be set: %s", l.def.Name, nameRule)
	}
	version := l.text(root.get("version"), "version")
	if version == "" {
		l.add(orParent(root.get("version"), root).at(), "version: must be set, for example \"1\"; change it when the definition changes")
	}
	l.def.Version = version + l.def.Version
	l.def.Title = l.text(root.get("title"), "title")
	if l.def.Title == "" {
		l.def.Title = l.def.Name
	}
	l.def.System, _ = l.textOrFile(root.get("system"), "system")
	l.chunking(root.get("chunking"))
	l.def.Tolerance = l.number(root.get("tolerance"), "tolerance", 1)
	if t := l.def.Tolerance; t < 0 || t > 1 {
		l.add(root.get("tolerance").at(), "tolerance: %v must be 0 to 1: the share of cells that may be missing before a job is failed", t)
	}
}

func (l *loader) chunking(v value) {
	c := defaultChunking
	if !v.missing() && l.mapping(v, "chunking", "target", "max", "overlap", "max_chunks") {
		c.Target = l.whole(v.get("target"), "chunking: target", c.Target)
		c.Max = l.whole(v.get("max"), "chunking: max", c.Max)
		c.Overlap = l.whole(v.get("overlap"), "chunking: overlap", c.Overlap)
		c.MaxChunks = l.whole(v.get("max_chunks"), "chunking: max_chunks", c.MaxChunks)
	}
	switch {
	case c.Target < 1 || c.Max < c.Target:
		l.add(v.at(), "chunking: needs 1 <= target (%d) <= max (%d)", c.Target, c.Max)
	case c.Overlap < 0 || c.Overlap >= c.Target:
		l.add(v.at(), "chunking: overlap (%d) must be less than target (%d)", c.Overlap, c.Target)
	case c.MaxChunks < 1 || c.MaxChunks > 99999:
		l.add(v.at(), "chunking: max_chunks (%d) must be 1 to 99999", c.MaxChunks)
	}
	l.def.Chunking = c
}

// orParent is where to point when a field may be missing.
func orParent(v, parent value) value {
	if v.node == nil {
		return parent
	}
	return v
}

// textOrFile is a text that stands in the definition, or in the file that `file:` names.
func (l *loader) textOrFile(v value, what string) (string, place) {
	if name, ok := l.fileOf(v, what); ok {
		body, _ := l.read(name, v.at())
		return string(body), place{name, 1}
	}
	return l.text(v, what), textBegin(v)
}

// textBegin is where the first line of a scalar's text stands: a block begins on the line after its `|`.
func textBegin(v value) place {
	at := v.at()
	if v.node != nil && v.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		at.line++
	}
	return at
}

// fileOf is the name in a value that is nothing but `file: name`.
func (l *loader) fileOf(v value, what string) (string, bool) {
	if !v.isMapping() || len(v.keys()) != 1 || v.keys()[0] != "file" {
		return "", false
	}
	name := l.text(v.get("file"), what+": file")
	return name, name != ""
}

// read is the content of a file beside the definition.
func (l *loader) read(name string, from place) ([]byte, bool) {
	if !fs.ValidPath(name) {
		l.add(from, "file %q must be a path below the definition's folder, with forward slashes", name)
		return nil, false
	}
	f, err := l.folder.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		l.add(from, "there is no file %s", l.show(name))
		return nil, false
	}
	if err != nil {
		l.add(from, "open %s: %v", l.show(name), err)
		return nil, false
	}
	defer func() { _ = f.Close() }() // only read from
	body, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		l.add(from, "read %s: %v", l.show(name), err)
		return nil, false
	case len(body) > maxFile:
		l.add(from, "%s is larger than %d MB; a definition's files are prompts, schemas and lists", l.show(name), maxFile>>20)
		return nil, false
	}
	return body, true
}

var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s+)?line (\d+): `)

// readYAML is the one document of a YAML file.
func (l *loader) readYAML(name string, from place) (value, bool) {
	body, ok := l.read(name, from)
	if !ok {
		return value{file: name}, false
	}
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&doc); err != nil {
		l.badYAML(name, err)
		return value{file: name}, false
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		l.add(place{name, 1}, "holds more than one YAML document; keep one")
		return value{file: name}, false
	}
	root := value{doc.Content[0], name}
	return root, l.refuseAliases(root)
}

func (l *loader) badYAML(name string, err error) {
	text, line := err.Error(), 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits
		text = text[len(m[0]):]
	}
	if errors.Is(err, io.EOF) {
		text = "the file is empty; it needs at least name, version, prompts, schemas and stages"
	}
	l.add(place{name, line}, "not YAML: %s", strings.TrimPrefix(text, "yaml: "))
}

// keepUsed drops prompts and schemas that this profile does not use: changing one must not change the fingerprint.
func (l *loader) keepUsed() {
	l.def.Prompts, l.def.Schemas = map[string]string{}, map[string]json.RawMessage{}
	for _, s := range l.def.Stages {
		for _, c := range s.Calls {
			l.def.Prompts[c.Prompt] = l.prompts[c.Prompt].text
			l.def.Schemas[c.Schema] = l.schemas[c.Schema].raw
		}
	}
}

// withinCalls says whether one more call is allowed.
func (l *loader) withinCalls(at place) bool {
	if len(l.calls) < maxCalls {
		return true
	}
	l.add(at, "%s", fmt.Sprintf("a chunk has more than %d calls; shorten the lists or join questions in one call", maxCalls))
	return false
}
