package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Definition is a pipeline: what to ask about every chunk, in which order, and what the answers mean. It is data; the
// engine knows nothing of contracts. A job is pinned to one by its fingerprint.
type Definition struct {
	Name    string                     `json:"name"`
	Version string                     `json:"version"`
	Title   string                     `json:"title"`
	System  string                     `json:"system"` // text of the system prompt
	Shared  string                     `json:"shared"` // template of the part of the document; see PromptData
	Stages  []Stage                    `json:"stages"`
	Schemas map[string]json.RawMessage `json:"schemas"` // JSON Schema (draft 2020-12) by name
	Prompts map[string]string          `json:"prompts"` // templates by name

	Categories []Category `json:"categories,omitempty"` // what findings are about
	Analysts   []Analyst  `json:"analysts,omitempty"`   // who makes them
	Chunking   Chunking   `json:"chunking"`

	// Work that is not a model's: one stage with one call, and no prompts.
	Handler    string        `json:"handler,omitempty"`     // name@version of what works on each chunk; "" = a model
	Command    []string      `json:"command,omitempty"`     // for the handler exec: program and arguments; {} is the chunk's text
	Dir        string        `json:"dir,omitempty"`         // where the command runs, so that a relative name means the same to every worker
	TryCost    Money         `json:"try_cost,omitempty"`    // the most that one try costs; 0 = nothing
	TryTimeout time.Duration `json:"try_timeout,omitempty"` // of one try; 0 = the policy's call_timeout

	Tolerance float64 `json:"tolerance"` // share of cells that may be missing before a job is failed, not partial
}

// Stage is a set of calls that may run at the same time.
type Stage struct {
	Name  string `json:"name"`
	Calls []Call `json:"calls"`
}

// Call is one question about a chunk.
type Call struct {
	ID        string            `json:"id"` // unique in the definition
	Title     string            `json:"title"`
	Prompt    string            `json:"prompt"` // name of a template
	Schema    string            `json:"schema"` // name of a schema
	MaxTokens int               `json:"max_tokens"`
	Category  string            `json:"category,omitempty"`
	Analyst   string            `json:"analyst,omitempty"`
	Vars      map[string]string `json:"vars,omitempty"`     // for the template, as .Vars
	Uses      []string          `json:"uses,omitempty"`     // calls of earlier stages whose replies the template shows
	Value     string            `json:"value,omitempty"`    // a number field of the reply that gates and presence read
	Findings  string            `json:"findings,omitempty"` // an array field of the reply that holds findings
	Replaces  []string          `json:"replaces,omitempty"` // calls whose findings this one's stand for, once answered
	Gate      *Gate             `json:"gate,omitempty"`
}

// Gate lets a call be asked only where an earlier call's value is at least Min.
type Gate struct {
	Call string  `json:"call"`
	Min  float64 `json:"min"`
}

// Category is what findings are about. Absence, if set, is the finding that the whole document has nothing of it:
// made only when every chunk's Presence call was answered and none reached PresenceMin.
type Category struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Instruction string   `json:"instruction,omitempty"`
	Presence    string   `json:"presence,omitempty"` // a call with a Value
	PresenceMin float64  `json:"presence_min,omitempty"`
	Absence     *Absence `json:"absence,omitempty"`
}

// Absence is the finding made of nothing.
type Absence struct {
	Severity   Severity `json:"severity"`
	Title      string   `json:"title"`
	Rationale  string   `json:"rationale"`
	Suggestion string   `json:"suggestion,omitempty"`
}

// Analyst is a specialist.
type Analyst struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// Chunking is how the text is cut, in estimated tokens.
type Chunking struct {
	Target    int `json:"target"`
	Max       int `json:"max"`
	Overlap   int `json:"overlap"`    // context before the core
	MaxChunks int `json:"max_chunks"` // more is refused before anything is queued

	// Lines makes every line that holds more than white space one chunk, and leaves Target, Max and Overlap unused.
	Lines bool `json:"lines,omitempty"`
}

// PromptData is what a template sees.
type PromptData struct {
	Text    string            // the chunk's core
	Context string            // what stands before it
	Heading string            // the path of headings it stands under
	Vars    map[string]string // of the call
	Replies map[string]string // JSON text by call id, of Uses; a call without an answer is missing
}

// Encode is the definition as it is stored under Key.
func (d Definition) Encode() []byte { return Encode(d) }

// Key is the definition's blob key and fingerprint: a hash of all of it.
func (d Definition) Key() string {
	sum := sha256.Sum256(d.Encode())
	return "definition/" + d.Name + "-" + hex.EncodeToString(sum[:8]) + ".json"
}

// ID is name@version.
func (d Definition) ID() string { return d.Name + "@" + d.Version }

// CallsAfter is how many calls a chunk has in the stages after an accepted one.
func (d Definition) CallsAfter(accepted int) int {
	n := 0
	for _, stage := range d.Stages[min(accepted, len(d.Stages)):] {
		n += len(stage.Calls)
	}
	return n
}

// Calls is how many calls a chunk has.
func (d Definition) Calls() int {
	n := 0
	for _, s := range d.Stages {
		n += len(s.Calls)
	}
	return n
}

// Find is the call of that id and its stage's number (from 1).
func (d Definition) Find(id string) (call Call, stage int, ok bool) {
	for i, s := range d.Stages {
		for _, c := range s.Calls {
			if c.ID == id {
				return c, i + 1, true
			}
		}
	}
	return Call{}, 0, false
}

// DecodeDefinition reads what Encode wrote.
func DecodeDefinition(body []byte) (Definition, error) {
	return Decode[Definition](body, "definition")
}

// Validate checks what the engine relies on. Each error names the field.
func (d Definition) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if d.Name == "" || strings.ContainsAny(d.Name, "/#@ ") {
		bad("name: %q must be set and hold none of / # @ and space", d.Name)
	}
	if d.Version == "" {
		bad("version: must be set")
	}
	errs = append(errs, d.Chunking.validate()...)
	if d.Tolerance < 0 || d.Tolerance > 1 {
		bad("tolerance: %v must be 0 to 1", d.Tolerance)
	}
	if d.Calls() == 0 {
		bad("stages: there must be at least one call")
	}
	if d.Handler != "" {
		errs = append(errs, d.validateHandler()...)
	} else {
		errs = append(errs, d.validateCalls()...)
	}
	return errors.Join(errs...)
}

func (c Chunking) validate() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !c.Lines && (c.Target < 1 || c.Max < c.Target) {
		bad("chunking: needs 1 <= target (%d) <= max (%d)", c.Target, c.Max)
	}
	if !c.Lines && (c.Overlap < 0 || c.Overlap >= c.Target) {
		bad("chunking: overlap (%d) must be less than target (%d)", c.Overlap, c.Target)
	}
	if c.MaxChunks < 1 || c.MaxChunks > 99999 {
		bad("chunking: max_chunks (%d) must be 1 to 99999", c.MaxChunks)
	}
	return errs
}

// validateCalls checks each call, and that it names only what there is: prompts, schemas, categories, earlier calls.
func (d Definition) validateCalls() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	categories, analysts := map[string]bool{}, map[string]bool{}
	for _, c := range d.Categories {
		categories[c.ID] = true
	}
	for _, a := range d.Analysts {
		analysts[a.ID] = true
	}
	seen := map[string]int{}
	for i, s := range d.Stages {
		if s.Name == "" || len(s.Calls) == 0 {
			bad("stages[%d]: needs a name and at least one call", i)
		}
		for _, c := range s.Calls {
			where := fmt.Sprintf("stage %s: call %s", s.Name, c.ID)
			if c.ID == "" || seen[c.ID] > 0 {
				bad("%s: ids must be set and unique", where)
			}
			if d.Prompts[c.Prompt] == "" {
				bad("%s: there is no prompt %q", where, c.Prompt)
			}
			if len(d.Schemas[c.Schema]) == 0 {
				bad("%s: there is no schema %q", where, c.Schema)
			}
			if c.MaxTokens < 1 {
				bad("%s: max_tokens (%d) must be at least 1", where, c.MaxTokens)
			}
			if c.Category != "" && len(categories) > 0 && !categories[c.Category] {
				bad("%s: there is no category %q", where, c.Category)
			}
			if c.Analyst != "" && len(analysts) > 0 && !analysts[c.Analyst] {
				bad("%s: there is no analyst %q", where, c.Analyst)
			}
			earlier := append(append([]string{}, c.Uses...), c.Replaces...)
			if c.Gate != nil {
				earlier = append(earlier, c.Gate.Call)
			}
			for _, id := range earlier {
				if stage := seen[id]; stage == 0 || stage > i {
					bad("%s: %q is not a call of an earlier stage", where, id)
				}
			}
			seen[c.ID] = i + 1
		}
	}
	for _, c := range d.Categories {
		if c.Presence != "" && seen[c.Presence] == 0 {
			bad("category %s: presence: there is no call %q", c.ID, c.Presence)
		}
		if c.Absence != nil && !c.Absence.Severity.Valid() {
			bad("category %s: absence: %q is no severity (one of %s)", c.ID, c.Absence.Severity, severityNames())
		}
	}
	return errs
}
