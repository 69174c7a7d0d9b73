// Package openai asks a model that speaks the OpenAI dialect of HTTP: chat completions. Many servers do.
//
// It may decide what kind of failure an answer is, in errors.go and nowhere else. It may not retry, keep answers, or
// wait: one Complete is one request.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"

	"holdfast/pkg/pipeline"
)

// Config is which model is asked, and where.
type Config struct {
	URL   string // up to and with the version: https://api.openai.com/v1
	Key   string // "" sends none
	Name  string // the server's name of the model
	Info  pipeline.ModelInfo
	Calls int // requests at once that keep their connections; 0 = 64
}

// Model is a [pipeline.Model] behind HTTP.
type Model struct {
	cfg    Config
	client *http.Client
}

var _ pipeline.Model = (*Model)(nil)

// maxAnswer bounds what is read of an answer: nothing sensible is longer.
const maxAnswer = 4 << 20

// New is a model. Nothing is asked yet.
func New(cfg Config) *Model {
	if cfg.Calls <= 0 {
		cfg.Calls = 64
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 2*cfg.Calls, cfg.Calls
	return &Model{cfg: cfg, client: &http.Client{Transport: transport}}
}

// Info describes the model.
func (m *Model) Info() pipeline.ModelInfo { return m.cfg.Info }

// Close closes the connections that nobody uses.
func (m *Model) Close() { m.client.CloseIdleConnections() }

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type question struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens"`
	Format    any       `json:"response_format,omitempty"`
}

type answer struct {
	ID      string `json:"id"`
	Choices []struct {
		Finish  string `json:"finish_reason"`
		Message struct {
			Content string `json:"content"`
			Refusal string `json:"refusal"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// body puts what many calls share first, so that a provider can cache it.
func (m *Model) body(r pipeline.Request) ([]byte, error) {
	q := question{
		Model: m.cfg.Name, MaxTokens: r.MaxTokens,
		Messages: []message{{"system", r.System}, {"user", []part{{"text", r.Shared}, {"text", r.Prompt}}}},
	}
	if len(r.Schema) > 0 {
		q.Format = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "schema": r.Schema}}
	}
	return json.Marshal(q)
}

// Complete asks once.
func (m *Model) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	body, err := m.body(r)
	if err != nil {
		return pipeline.Response{}, failed(pipeline.Invalid, "", "the request cannot be written", err)
	}
	left := false // the request, perhaps
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { left = true }})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, strings.TrimSuffix(m.cfg.URL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return pipeline.Response{}, failed(pipeline.Rejected, "", "the model's address is none", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if m.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+m.cfg.Key)
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return pipeline.Response{}, unanswered(ctx, left, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return pipeline.Response{}, cut(ctx, r, err)
	}
	if resp.StatusCode != http.StatusOK {
		return pipeline.Response{}, refused(resp, text)
	}
	return read(r, text)
}

// read takes the answer out of a body. One that cannot be read was billed all the same.
func read(r pipeline.Request, text []byte) (pipeline.Response, error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil || len(a.Choices) == 0 {
		if err == nil {
			err = fmt.Errorf("it has no choices: %s", pipeline.Cut(string(text), 100))
		}
		return pipeline.Response{}, billed(r, "the answer cannot be read", err)
	}
	choice := a.Choices[0]
	out := pipeline.Response{
		Text: choice.Message.Content, Stop: pipeline.StopEnd, RequestID: a.ID,
		Usage: pipeline.Usage{Input: a.Usage.Prompt, Output: a.Usage.Completion, CacheRead: a.Usage.Details.Cached},
	}
	switch {
	case choice.Message.Refusal != "", choice.Finish == "content_filter":
		out.Stop = pipeline.StopRefused
	case choice.Finish == "length":
		out.Stop = pipeline.StopMaxTokens
	case choice.Finish == "":
		return pipeline.Response{}, billed(r, "the answer has no end", io.ErrUnexpectedEOF)
	}
	return out, nil
}
