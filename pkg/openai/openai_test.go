package openai_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/modelsim"
	"holdfast/pkg/openai"
	"holdfast/pkg/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var asked = pipeline.Request{System: "You review.", Shared: "<text>", Prompt: "What?", MaxTokens: 50, Schema: []byte(`{"type":"object"}`)}

// serve is a model at a server that answers by handler.
func serve(t *testing.T, handler http.HandlerFunc) *openai.Model {
	t.Helper()
	server := httptest.NewServer(handler)
	m := openai.New(openai.Config{URL: server.URL + "/v1", Key: "secret", Name: "m"})
	t.Cleanup(func() {
		m.Close()
		server.Close()
	})
	return m
}

// serveAddress is that of a server without TLS.
func serveAddress(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	return server.URL
}

// echo is a model that answers with what it was asked.
type echo struct{ stop pipeline.Stop }

func (echo) Info() pipeline.ModelInfo { return pipeline.ModelInfo{} }

func (e echo) Complete(_ context.Context, r pipeline.Request) (pipeline.Response, error) {
	text := strings.Join([]string{r.System, r.Shared, r.Prompt, string(r.Schema)}, "|")
	return pipeline.Response{Text: text, Stop: e.stop, Usage: pipeline.Usage{Input: 7, Output: 3, CacheRead: 2}}, nil
}

func TestAnswers(t *testing.T) {
	for _, stop := range []pipeline.Stop{pipeline.StopEnd, pipeline.StopMaxTokens, pipeline.StopRefused} {
		sim := &modelsim.Server{Model: echo{stop}}
		m := serve(t, sim.ServeHTTP)
		got, err := m.Complete(t.Context(), asked)
		if err != nil || got.Text != `You review.|<text>|What?|{"type":"object"}` || got.Stop != stop || got.Usage != (pipeline.Usage{Input: 7, Output: 3, CacheRead: 2}) {
			t.Errorf("got %+v, error %v; want all parts of the question, stopped by %s", got, err, stop)
		}
		if _, err := m.Complete(t.Context(), asked); err != nil {
			t.Error(err)
		}
		if all, again := sim.Billed(); all != 2 || again != 1 {
			t.Errorf("billed %d, %d of them again; want 2, 1", all, again)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   pipeline.Kind
	}{
		{429, `{"error":{"code":"rate_limit_exceeded"}}`, pipeline.Throttled},
		{429, `{"error":{"code":"insufficient_quota"}}`, pipeline.Quota},
		{429, ``, pipeline.Throttled},
		{400, `{"error":{"code":"context_length_exceeded"}}`, pipeline.TooLong},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens."}}`, pipeline.TooLong},
		{400, `{"error":{"code":"content_filter"}}`, pipeline.Refused},
		{400, `{"error":{"code":null,"type":"invalid_request_error"}}`, pipeline.Invalid},
		{400, `not JSON`, pipeline.Invalid},
		{401, `{"error":{"code":"invalid_api_key"}}`, pipeline.Rejected},
		{403, ``, pipeline.Rejected},
		{404, `{"error":{"code":"model_not_found"}}`, pipeline.Rejected},
		{408, ``, pipeline.Ambiguous},
		{413, ``, pipeline.TooLong},
		{500, ``, pipeline.Unavailable},
		{502, ``, pipeline.Ambiguous},
		{503, `{"error":{"code":503}}`, pipeline.Unavailable},
		{504, ``, pipeline.Ambiguous},
		{529, ``, pipeline.Unavailable},
		{200, ``, pipeline.Ambiguous},
		{200, `{"choices":[]}`, pipeline.Ambiguous},
		{200, `{"choices":[{"message":{"content":"half"}}]}`, pipeline.Ambiguous},
	} {
		m := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		_, err := m.Complete(t.Context(), asked)
		var failed *pipeline.ModelError
		if !errors.As(err, &failed) || failed.Kind != c.want {
			t.Errorf("%d %s: got %v, want %s", c.status, c.body, err, c.want)
			continue
		}
		if c.status != 200 && failed.RetryAfter != 3*time.Second {
			t.Errorf("%d: got Retry-After %v, want 3 s", c.status, failed.RetryAfter)
		}
	}
}

func TestConnections(t *testing.T) {
	kind := func(m *openai.Model) pipeline.Kind {
		_, err := m.Complete(t.Context(), asked)
		var failed *pipeline.ModelError
		if !errors.As(err, &failed) {
			t.Fatalf("got error %v, want a ModelError", err)
		}
		return failed.Kind
	}
	t.Run("a connection that is cut before the answer may have been billed", func(t *testing.T) {
		var n atomic.Int64
		m := serve(t, func(http.ResponseWriter, *http.Request) { n.Add(1); panic(http.ErrAbortHandler) })
		if got := kind(m); got != pipeline.Ambiguous || n.Load() != 1 {
			t.Errorf("got %s after %d requests, want ambiguous after one", got, n.Load())
		}
	})
	t.Run("an answer that is cut off may have been billed", func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"choices":[{"message":`)
			panic(http.ErrAbortHandler)
		})
		if got := kind(m); got != pipeline.Ambiguous {
			t.Errorf("got %s, want ambiguous", got)
		}
	})
	t.Run("nobody at the address is an outage, and free", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		url := "http://" + listener.Addr().String()
		_ = listener.Close()
		if got := kind(openai.New(openai.Config{URL: url})); got != pipeline.Unavailable {
			t.Errorf("got %s, want unavailable", got)
		}
	})
	t.Run("a connection that is never made is an outage, and free", func(t *testing.T) {
		other := httptest.NewTLSServer(http.NotFoundHandler()) // nobody vouches for it
		defer other.Close()
		other.Config.ErrorLog = log.New(io.Discard, "", 0)
		for what, url := range map[string]string{
			"a name that is none":      "http://nobody.invalid",
			"a certificate of nobody":  other.URL,
			"no TLS where it is asked": strings.Replace(serveAddress(t), "http:", "https:", 1),
			"no port that can be":      "http://127.0.0.1:99999",
		} {
			m := openai.New(openai.Config{URL: url})
			if got := kind(m); got != pipeline.Unavailable {
				t.Errorf("%s: got %s, want unavailable", what, got)
			}
			m.Close()
		}
	})
	t.Run("a cancelled call is no failure of the model", func(t *testing.T) {
		begun := make(chan struct{})
		m := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(begun)
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		var group pipeline.Group
		group.Go(func() { <-begun; cancel(pipeline.ErrCancelled) })
		if _, err := m.Complete(ctx, asked); !errors.Is(err, pipeline.ErrCancelled) {
			t.Errorf("got error %v, want ErrCancelled", err)
		}
		group.Wait()
	})
}
