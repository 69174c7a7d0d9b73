//go:build localstack

package s3blob_test

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
	"holdfast/pkg/pipelinetest/awstest"
)

var (
	puts = pipelinetest.OpCalls("PUT Object")
	gets = pipelinetest.OpCalls("GET Object")
)

func TestFaults(t *testing.T) {
	p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.All))
	s := open(t, awsclient.Settings{Endpoint: p.URL})
	body := bytes.Repeat([]byte("a text of some length "), 20_000)
	check := func(t *testing.T, want []byte) {
		t.Helper()
		if got, err := s.Blob(t.Context(), "key"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %d bytes, error %v; want %d", len(got), err, len(want))
		}
	}
	run := func(name string, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			test(t)
			p.Clear()
		})
	}
	run("an upload whose connection is cut is made by the next sending", func(t *testing.T) {
		p.Lose(1, puts)
		p.Drop(1, puts)
		if err := s.PutBlob(t.Context(), "key", body); err != nil {
			t.Fatal(err)
		}
		check(t, body)
	})
	run("an upload that fails to the end is busy, and what stood stands whole", func(t *testing.T) {
		for code, status := range map[string]int{"InternalError": 500, "SlowDown": http.StatusServiceUnavailable} {
			p.Clear()
			p.FailXML(-1, puts, status, code)
			before := p.Seen("PUT Object")
			if err := s.PutBlob(t.Context(), "key", []byte("new")); !errors.Is(err, pipeline.ErrBusy) {
				t.Errorf("%s: got error %v, want ErrBusy", code, err)
			}
			if n := p.Seen("PUT Object") - before; n != 3 {
				t.Errorf("%s: sent %d times, want 3", code, n)
			}
		}
		check(t, body)
	})
	run("a body that is cut off on the way is read again", func(t *testing.T) {
		p.Rewrite(2, gets, func(answer []byte) []byte { return answer[:len(answer)/2] })
		check(t, body)
	})
	run("a body that is always cut off is busy, never half a text", func(t *testing.T) {
		p.Rewrite(-1, gets, func(answer []byte) []byte { return answer[:len(answer)/2] })
		if got, err := s.Blob(t.Context(), "key"); !errors.Is(err, pipeline.ErrBusy) || got != nil {
			t.Errorf("got %d bytes, error %v; want ErrBusy", len(got), err)
		}
	})
}

func TestRemove(t *testing.T) {
	p := pipelinetest.NewProxy(t, awstest.Endpoint(awstest.All))
	s := open(t, awsclient.Settings{Endpoint: p.URL})
	for _, key := range []string{"a", "b", "c"} {
		if err := s.PutBlob(t.Context(), key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(t.Context(), "a", "never there"); err != nil {
		t.Error(err)
	}
	if _, err := s.Blob(t.Context(), "a"); !errors.Is(err, pipeline.ErrNotFound) {
		t.Errorf("got error %v for what was removed, want ErrNotFound", err)
	}
	p.FailXML(1, pipelinetest.OpCalls("DELETE Object"), http.StatusForbidden, "AccessDenied")
	if err := s.Remove(t.Context(), "b", "c"); err == nil {
		t.Error("no error says that one may not be removed")
	}
	if _, err := s.Blob(t.Context(), "c"); !errors.Is(err, pipeline.ErrNotFound) {
		t.Errorf("got error %v, want the other one removed", err)
	}
}
