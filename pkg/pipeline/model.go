package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Model answers questions. One Complete is one try: no retries inside.
type Model interface {
	// Complete asks once. Its error is a *ModelError, or the context's cause.
	Complete(ctx context.Context, r Request) (Response, error)
	// Info describes the model.
	Info() ModelInfo
}

// ModelInfo is what the plan, the limiter and the reply keys need to know.
type ModelInfo struct {
	Name            string `json:"name"`
	Version         string `json:"version"`
	Price           Price  `json:"price"`
	PricedAs        string `json:"priced_as"` // whose price it is, when the model itself costs nothing
	Free            bool   `json:"free"`      // no money is spent whatever Price says
	ContextTokens   int    `json:"context_tokens"`
	MaxOutput       int    `json:"max_output"`
	TokensPerMinute int    `json:"tokens_per_minute,omitempty"` // input + max_tokens; 0 = no quota to share
	Placeholders    int    `json:"placeholders,omitempty"`      // calls of the job's pipeline, per chunk, whose answers mean nothing: the model has no rules for them
	Handler         bool   `json:"handler,omitempty"`           // no model: a Function, whose tries cost what its definition says
}

// ID is name@version.
func (m ModelInfo) ID() string { return m.Name + "@" + m.Version }

// Caveat says of which answers about so many chunks, of so many calls each, the model does not stand for; "" if for all.
func (m ModelInfo) Caveat(chunks, calls int) string {
	if m.Placeholders == 0 {
		return ""
	}
	return fmt.Sprintf("%s has no rules for %s of %s: its answers to them are placeholders, and say nothing about the text",
		m.Name, Count(m.Placeholders*chunks), CountOf(calls*chunks, "question", "questions"))
}

// Request is one question. System and Shared come first and are the same for many calls, so a provider can cache them.
type Request struct {
	Key       ReplyKey        `json:"key"`
	System    string          `json:"system"`
	Shared    string          `json:"shared"` // the part of the document, inside delimiters
	Prompt    string          `json:"prompt"`
	Schema    json.RawMessage `json:"schema"`
	MaxTokens int             `json:"max_tokens"`

	// What the handler of a definition gets, and how long it may take; nil and 0 for a model.
	Item    *WorkItem     `json:"-"`
	Timeout time.Duration `json:"-"` // of one try; 0 = the policy's call timeout
}

// InputTokens estimates the request's input; never under on English text.
func (r Request) InputTokens() int {
	return EstimateTokens(r.System) + EstimateTokens(r.Shared) + EstimateTokens(r.Prompt) + EstimateTokens(string(r.Schema))
}

// Usage is tokens.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
}

// Stop is why a model stopped.
type Stop string

// The stop reasons.
const (
	StopEnd       Stop = "end"
	StopMaxTokens Stop = "max_tokens"
	StopRefused   Stop = "refused"
)

// Response is what came back.
type Response struct {
	Text      string `json:"text"`
	Stop      Stop   `json:"stop"`
	Usage     Usage  `json:"usage"`
	RequestID string `json:"request_id,omitempty"`
	Cost      Money  `json:"cost,omitempty"` // of a handler's try; a model's is counted by its tokens
}

// ReplyKey addresses a reply by the content of its call.
type ReplyKey string

// Reply is a stored answer.
type Reply struct {
	Key      ReplyKey `json:"key"`
	Text     string   `json:"text,omitempty"` // valid against the call's schema
	Blob     string   `json:"blob,omitempty"` // key of the text where it is too large for an item
	Model    string   `json:"model"`
	Usage    Usage    `json:"usage"` // of the try that was accepted
	Cost     Money    `json:"cost"`
	Repaired bool     `json:"repaired,omitempty"` // the text was not quite JSON
	Job      JobID    `json:"job"`
	Task     TaskID   `json:"task"`
	Call     string   `json:"call"`
	Worker   string   `json:"worker"`
	At       Instant  `json:"at"`
}

// Escalation is how many times its call's max_tokens an answer may have that is asked for again because it was cut.
const Escalation = 2

// reaskRoom bounds what a re-ask adds to a prompt, in bytes.
const reaskRoom = 2 * MaxDetail

// Reask is the prompt that says what was wrong with the last answer. It is made from the first prompt, so it does not
// grow with every re-ask.
func Reask(prompt, wrong string) string {
	return prompt + "\n\nYour last answer could not be used: " + Cut(wrong, reaskRoom/2) +
		"\nAnswer again, with one JSON value that follows the schema and nothing else."
}

// TryCost is the most that one try of a request costs, as far as it can be known before: estimated input and all of
// max_tokens.
func TryCost(m ModelInfo, r Request) Money {
	if m.Handler {
		return r.flat()
	}
	return m.Price.Of(r.InputTokens(), r.MaxTokens)
}

// flat is what a try of a handler costs at most, whatever its text.
func (r Request) flat() Money {
	if r.Item == nil {
		return 0
	}
	return r.Item.TryCost
}

// DearestTry is the most that any try of a first request costs: a re-ask adds to its input, a truncated answer is
// asked for again with more room.
func DearestTry(m ModelInfo, r Request) Money {
	if m.Handler {
		return r.flat()
	}
	return m.Price.Of(r.InputTokens()+reaskRoom, min(Escalation*r.MaxTokens, max(m.MaxOutput, r.MaxTokens)))
}

// CheckModel refuses a model that gives shorter answers than the pipeline asks for: each would be cut, and paid for.
func (d Definition) CheckModel(m ModelInfo) error {
	if m.MaxOutput == 0 || d.Handler != "" {
		return nil
	}
	var long []string
	for _, stage := range d.Stages {
		for _, call := range stage.Calls {
			if call.MaxTokens > m.MaxOutput {
				long = append(long, fmt.Sprintf("%s (%s)", call.ID, Count(call.MaxTokens)))
			}
		}
	}
	if len(long) == 0 {
		return nil
	}
	more := ""
	if n := len(long) - 5; n > 0 {
		long, more = long[:5], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("pipeline %s: max_tokens is more than the %s tokens that %s answers with at most: %s%s; lower it there",
		d.ID(), Count(m.MaxOutput), m.ID(), strings.Join(long, ", "), more)
}
