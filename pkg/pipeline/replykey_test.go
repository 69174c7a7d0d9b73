package pipeline

import (
	"slices"
	"strings"
	"testing"
)

func TestKeysOf(t *testing.T) {
	requests := []Request{
		{System: "s", Shared: "doc", Prompt: "p", Schema: []byte("{}")},
		{System: "s", Shared: "doc", Prompt: "q", Schema: []byte("{}")},
		{System: "t", Shared: "doc", Prompt: "q", Schema: []byte("{}")},
		{System: "t", Shared: "other", Prompt: "q", Schema: []byte("{}")},
		{System: "t", Shared: "other", Prompt: "q"},
		{},
	}
	t.Run("a key does not depend on what it was made with", func(t *testing.T) {
		for round := range 2 {
			for i, got := range KeysOf("tenant", "model@1", 0, requests) {
				if want := KeyOf("tenant", "model@1", 0, requests[i]); got != want {
					t.Errorf("round %d, request %d: got %s, want %s", round, i, got, want)
				}
			}
			slices.Reverse(requests)
		}
	})
	t.Run("stored replies are found again: a key is the same in every version", func(t *testing.T) {
		if got, want := KeyOf("tenant", "model@1", 0, requests[len(requests)-1]), ReplyKey("3b0233180222294c93017a5b7268006e"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := KeyOf("tenant", "model@1", 3, requests[0]), ReplyKey("5152ff83d21015a20c386e3519055c6b"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func FuzzCutLooksAtNoMoreThanItKeeps(f *testing.F) {
	for _, text := range []string{"short", "aé", "日本", "a\xff\xfeb", "aaaa\xe6\x97", "\xbf\xbf\xbf\xbf\xbf", "\xe6\x97x\xe6\x97\xa5", strings.Repeat("é", 9)} {
		for n := range 10 {
			f.Add(text, n)
		}
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		if n < 0 {
			return
		}
		want := strings.ToValidUTF8(text, "?")
		if len(want) > n {
			for ; n > 0 && want[n]&0xC0 == 0x80; n-- {
			}
			want = want[:n]
		}
		if got := Cut(text, n); got != want {
			t.Errorf("%q to %d bytes: got %q, want %q", text, n, got, want)
		}
	})
}
