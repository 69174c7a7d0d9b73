package pipeline

import (
	"strings"
	"testing"
)

func TestEstimateTokens(t *testing.T) {
	for text, want := range map[string]int{
		"":                0,
		"a":               1,
		"agreed":          1,
		"agreement":       2,
		"12":              1,
		"2026":            2,
		"(a)":             3,
		"      ":          1,
		"Section 12.3(b)": 6, // 8 letters and a space, 3 digits, 3 others
		"§":               1,
		"日本":              2,
	} {
		if got := EstimateTokens(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	long := strings.Repeat("The Company shall indemnify. ", 1000)
	whole, parts := EstimateTokens(long), EstimateTokens(long[:len(long)/2])+EstimateTokens(long[len(long)/2:])
	if parts < whole {
		t.Errorf("two halves: got %d, want at least the whole's %d", parts, whole)
	}
}

func TestKeyOf(t *testing.T) {
	r := Request{System: "s", Shared: "doc", Prompt: "p", Schema: []byte("{}"), MaxTokens: 100}
	key := KeyOf("tenant", "model@1", 0, r)
	other := func(edit func(r *Request)) ReplyKey {
		changed := r
		edit(&changed)
		return KeyOf("tenant", "model@1", 0, changed)
	}
	t.Run("max_tokens is learned and no part of it", func(t *testing.T) {
		if got := other(func(r *Request) { r.MaxTokens, r.Key = 999, "x" }); got != key {
			t.Errorf("got %s, want %s", got, key)
		}
	})
	seen := map[ReplyKey]string{key: "the request itself"}
	for name, got := range map[string]ReplyKey{
		"tenant": KeyOf("other", "model@1", 0, r), "model": KeyOf("tenant", "model@2", 0, r), "sample": KeyOf("tenant", "model@1", 1, r),
		"system": other(func(r *Request) { r.System = "t" }), "shared": other(func(r *Request) { r.Shared = "d" }),
		"prompt": other(func(r *Request) { r.Prompt = "q" }), "schema": other(func(r *Request) { r.Schema = []byte("[]") }),
		"a border between two parts": other(func(r *Request) { r.System, r.Shared = "sd", "oc" }),
	} {
		if same, ok := seen[got]; ok {
			t.Errorf("another %s: the key is that of another %s", name, same)
		}
		seen[got] = name
	}
}
