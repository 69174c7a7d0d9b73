// Package modelsim is a model behind HTTP that costs nothing: it speaks the OpenAI dialect, answers as another model
// does, counts at the socket every request that can be read, and fails on command. Workers of several processes can ask it, and what it
// counted is the witness of what would have been billed.
//
// It may decide nothing about what is asked or kept. It may not be told by a client what it counted.
package modelsim

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"holdfast/pkg/pipeline"
)

// Server is the model. The zero value of all but Model is one that never fails.
type Server struct {
	Model pipeline.Model // whose answers it gives
	// React, if set, may answer in the place of the model: a status other than 0 with this code. n is the number of
	// the request, from 1; again is how often the same was asked before.
	React func(n, again int) (status int, code string)

	mu    sync.Mutex
	n     int
	asked map[pipeline.ReplyKey]int
	done  map[pipeline.ReplyKey]int // answered in full
}

type incoming struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Format struct {
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

// request is the question as the model inside knows it.
func (in incoming) request() (pipeline.Request, error) {
	r := pipeline.Request{MaxTokens: in.MaxTokens, Schema: in.Format.Schema.Schema}
	for _, m := range in.Messages {
		var text string
		var parts []struct{ Text string }
		if json.Unmarshal(m.Content, &text) == nil {
			if m.Role == "system" {
				r.System = text
			} else {
				r.Prompt = text
			}
			continue
		}
		if err := json.Unmarshal(m.Content, &parts); err != nil || len(parts) != 2 {
			return r, errors.New("a user's message has a text, or two parts: what is shared and what is asked")
		}
		r.Shared, r.Prompt = parts[0].Text, parts[1].Text
	}
	r.Key = pipeline.KeyOf("", in.Model, 0, r)
	return r, nil
}

// ServeHTTP answers /chat/completions under any path before it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in incoming
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	q, err := in.request()
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	n, again := s.count(q.Key)
	if s.React != nil {
		if status, code := s.React(n, again); status != 0 {
			refuse(w, status, code, "on command")
			return
		}
	}
	response, err := s.Model.Complete(r.Context(), q)
	if err != nil {
		status, code := statusOf(err)
		refuse(w, status, code, err.Error())
		return
	}
	s.answered(q.Key)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply(n, in.Model, response)) // a client that has gone was billed all the same
}

func (s *Server) count(key pipeline.ReplyKey) (n, again int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked, s.done = map[pipeline.ReplyKey]int{}, map[pipeline.ReplyKey]int{}
	}
	s.n++
	again = s.asked[key]
	s.asked[key]++
	return s.n, again
}

func (s *Server) answered(key pipeline.ReplyKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[key]++
}

// Requests is how many came, and how many different questions they were.
func (s *Server) Requests() (all, different int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, len(s.asked)
}

// Billed is how many answers were given in full, and how many of them were for a question that had one already.
func (s *Server) Billed() (all, again int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.done {
		all += n
		again += n - 1
	}
	return all, again
}

func reply(n int, model string, r pipeline.Response) map[string]any {
	message := map[string]any{"role": "assistant", "content": r.Text}
	finish := "stop"
	switch r.Stop {
	case pipeline.StopMaxTokens:
		finish = "length"
	case pipeline.StopRefused:
		finish = "content_filter"
	}
	return map[string]any{
		"id": "sim-" + strconv.Itoa(n), "object": "chat.completion", "model": model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage": map[string]any{
			"prompt_tokens": r.Usage.Input, "completion_tokens": r.Usage.Output, "total_tokens": r.Usage.Input + r.Usage.Output,
			"prompt_tokens_details": map[string]any{"cached_tokens": r.Usage.CacheRead},
		},
	}
}

// statusOf is how a provider says what the model inside said.
func statusOf(err error) (status int, code string) {
	var failed *pipeline.ModelError
	if !errors.As(err, &failed) {
		return http.StatusInternalServerError, "server_error"
	}
	switch failed.Kind {
	case pipeline.Throttled:
		return http.StatusTooManyRequests, "rate_limit_exceeded"
	case pipeline.Quota:
		return http.StatusTooManyRequests, "insufficient_quota"
	case pipeline.Unavailable:
		return http.StatusServiceUnavailable, "server_error"
	case pipeline.Ambiguous:
		return http.StatusGatewayTimeout, "timeout"
	case pipeline.TooLong:
		return http.StatusBadRequest, "context_length_exceeded"
	case pipeline.Refused:
		return http.StatusBadRequest, "content_filter"
	case pipeline.Rejected:
		return http.StatusForbidden, "permission_denied"
	}
	return http.StatusBadRequest, "invalid_request_error"
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "0.1")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": text, "type": code, "code": code}})
}
