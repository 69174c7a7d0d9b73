package offline

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast/pkg/pipeline"
)

func entriesOf(t *testing.T, path string) []Entry {
	t.Helper()
	e, err := ReadLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLedger(t *testing.T) {
	t.Run("a try is a begin and an end of one nonce", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		m := New(Config{Ledger: path, Worker: "w1", Faults: Faults{Throttled: 1}})
		defer closed(t, m)
		_, _ = m.Complete(t.Context(), keyed("k", "x")) // the ledger tells how it ended
		e := entriesOf(t, path)
		if len(e) != 2 || e[0].Event != Begin || e[1].Event != End || e[0].Nonce != e[1].Nonce || e[0].Key != "k" ||
			e[1].Outcome != "throttled" || e[0].Process != os.Getpid() || e[0].At == 0 || e[0].Worker != "w1" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("answers that nobody can use are told apart from good ones", func(t *testing.T) {
		for fault, want := range map[Fault]string{Malformed: "malformed", Truncated: "truncated", "": OK} {
			path := filepath.Join(t.TempDir(), "ledger")
			m := New(Config{Ledger: path, Faults: Faults{fault: 1}})
			defer closed(t, m)
			_, _ = m.Complete(t.Context(), keyed("k", "x")) // the ledger tells how it ended
			if e := entriesOf(t, path); e[1].Outcome != want {
				t.Errorf("%q: got %q, want %q", fault, e[1].Outcome, want)
			}
		}
	})
	t.Run("many models write one file and no line is lost", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		var all sync.WaitGroup
		for w := range 8 {
			m := New(Config{Ledger: path, Worker: fmt.Sprint(w)})
			defer closed(t, m)
			for i := range 20 {
				all.Go(func() { _, _ = m.Complete(t.Context(), keyed(fmt.Sprint(i), "x")) })
			}
		}
		all.Wait()
		nonces := map[string]int{}
		for _, e := range entriesOf(t, path) {
			nonces[e.Nonce]++
		}
		if len(nonces) != 160 {
			t.Errorf("got %d tries, want 160", len(nonces))
		}
	})
	t.Run("a line that was cut spoils no other", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		if err := os.WriteFile(path, []byte("\n{\"at\":5,\"event\":\"beg"), 0o600); err != nil {
			t.Fatal(err)
		}
		m := New(Config{Ledger: path})
		defer closed(t, m)
		_, _ = m.Complete(t.Context(), keyed("k", "x")) // the ledger tells
		if e := entriesOf(t, path); len(e) != 2 {
			t.Errorf("got %d entries, want the two after the cut", len(e))
		}
	})
	t.Run("a ledger that cannot be written is no answer", func(t *testing.T) {
		m := New(Config{Ledger: t.TempDir()})
		if _, err := m.Complete(t.Context(), keyed("k", "x")); kindOf(err) != pipeline.Unavailable {
			t.Errorf("got %v, want unavailable", err)
		}
	})
}

// lines makes entries of "begin key nonce", "end key nonce outcome", one millisecond apart, from 1.
func lines(all ...string) []Entry {
	var entries []Entry
	for i, line := range all {
		f := strings.Fields(line + " .")
		entries = append(entries, Entry{At: pipeline.Instant(i + 1), Event: Event(f[0]), Key: pipeline.ReplyKey(f[1]), Nonce: f[2], Outcome: f[3]})
	}
	return entries
}

func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []Entry
		stored  map[pipeline.ReplyKey]pipeline.Instant
		want    Repeated
	}{
		{"no repeat", lines("begin a 1", "end a 1 ok"), map[pipeline.ReplyKey]pipeline.Instant{"a": 3}, Repeated{}},
		{"in flight at a kill, asked again", lines("begin a 1", "begin a 2", "end a 2 ok"), map[pipeline.ReplyKey]pipeline.Instant{"a": 3}, Repeated{InFlight: 1}},
		{"stored, asked again", lines("begin a 1", "end a 1 ok", "begin b 2", "begin a 3"), map[pipeline.ReplyKey]pipeline.Instant{"a": 2}, Repeated{Stored: 1, StoredKeys: []pipeline.ReplyKey{"a"}}},
		{"answered, killed before it was stored", lines("begin a 1", "end a 1 ok", "begin a 2", "end a 2 ok"), map[pipeline.ReplyKey]pipeline.Instant{"a": 4}, Repeated{Unstored: 1}},
		{"failed, asked again", lines("begin a 1", "end a 1 throttled", "begin a 2", "end a 2 malformed", "begin a 3"), nil, Repeated{Failed: 2}},
		{"killed twice", lines("begin a 1", "begin a 2", "begin a 3"), nil, Repeated{InFlight: 2}},
		{"a zombie that began before the reply was stored is not a repeat of a stored one", lines("begin a 1", "begin a 2", "end a 2 ok", "end a 1 ok"), map[pipeline.ReplyKey]pipeline.Instant{"a": 3}, Repeated{InFlight: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Repeats(c.entries, c.stored); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func FuzzReadLedger(f *testing.F) {
	f.Add([]byte("\n{\"at\":1,\"event\":\"begin\",\"key\":\"k\",\"process\":1,\"nonce\":\"n-1\"}\n"))
	f.Add([]byte("{\"at\":1,\"ev\n\n{}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		before, err := readEntries(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = Repeats(before, nil)
		whole := "\n" + `{"at":1,"event":"end","key":"k","process":1,"nonce":"n-1","outcome":"ok"}` + "\n"
		after, err := readEntries(strings.NewReader(string(body) + whole))
		if err != nil || len(after) < len(before) || after[len(after)-1].Outcome != OK {
			t.Errorf("a whole line after %q was lost: %v", body, err)
		}
	})
}
