package pipeline

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecodeMessage(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":                "",
		"no JSON":                "hello",
		"no object":              `["job"]`,
		"no job":                 `{"task":"split","generation":0,"ring":0}`,
		"no task":                `{"job":"a-1","generation":0,"ring":0}`,
		"an unknown task":        `{"job":"a-1","task":"sweep","generation":0,"ring":0}`,
		"a generation below 0":   `{"job":"a-1","task":"split","generation":-1,"ring":0}`,
		"a ring below 0":         `{"job":"a-1","task":"split","generation":0,"ring":-1}`,
		"a generation as a text": `{"job":"a-1","task":"split","generation":"1","ring":0}`,
		"two messages":           `{"job":"a-1","task":"split"}{"job":"a-1","task":"split"}`,
	} {
		if m, err := DecodeMessage([]byte(body)); err == nil {
			t.Errorf("%s: got %+v, want an error", name, m)
		}
	}
	for _, want := range []Message{
		{Job: "a-1", Task: SplitTask}, {Job: "a-1", Task: WorkTask(7), Tenant: "t", Generation: 3, Ring: 9}, {Job: "a-1", Task: FinalizeTask(1)},
	} {
		if got, err := DecodeMessage(Encode(want)); err != nil || got != want {
			t.Errorf("got %+v, error %v; want %+v", got, err, want)
		}
	}
}

// A later version may send what this one does not know: that is no stranger's.
func TestAMessageOfANewerVersionIsOursAndNotForUs(t *testing.T) {
	m := Message{Job: "0123456789-1", Task: WorkTask(1), Format: FormatVersion + 1}
	if _, err := DecodeMessage(Encode(m)); !errors.Is(err, ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
	m.Task = "something new"
	if _, err := DecodeMessage(Encode(m)); !errors.Is(err, ErrNewer) {
		t.Errorf("got %v, want ErrNewer: its tasks may be others", err)
	}
	m.Task, m.Format = WorkTask(1), FormatVersion
	if _, err := DecodeMessage(Encode(m)); err != nil {
		t.Error(err)
	}
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte(`{"job":"a-1","task":"work#00007","tenant":"t","generation":3,"ring":9}`))
	f.Add([]byte(`{"job":"a-1","task":"split","generation":-1}`))
	f.Add([]byte("\x00\xff"))
	f.Add([]byte(`{"job":"` + strings.Repeat("é", 100) + `","task":"x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := DecodeMessage(body)
		if err != nil {
			if len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes for a body of %d", len(err.Error()), len(body))
			}
			return
		}
		if m.Job == "" || m.Generation < 0 || m.Ring < 0 || !slices.Contains([]TaskKind{TaskSplit, TaskWork, TaskFinalize}, m.Task.Kind()) {
			t.Errorf("%q was taken for %+v", body, m)
		}
		again, err := DecodeMessage(Encode(m))
		if err != nil || again != m {
			t.Errorf("got %+v, error %v; want %+v", again, err, m)
		}
	})
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 10, "short"}, {"short", 5, "short"}, {"short", 2, "sh"}, {"", 0, ""}, {"aé", 2, "a"}, {"é", 1, ""}, {"aéb", 3, "aé"}, {"日本", 5, "日"}, {"a\xff\xfeb", 10, "a?b"},
	} {
		if got := Cut(test.text, test.n); got != test.want || !utf8.ValidString(got) {
			t.Errorf("%q to %d bytes: got %q, want %q", test.text, test.n, got, test.want)
		}
	}
}

// Keys are in order of time, and nobody's prefix is the beginning of somebody else's.
func TestKeys(t *testing.T) {
	keys := []string{
		RecordKey(WorkTask(1), 2, "z"), RecordKey(WorkTask(1), 10, "a"),
		JournalKey(WorkTask(1), 10, 2), JournalKey(WorkTask(1), 10, 10),
	}
	if !slices.IsSorted(keys) {
		t.Errorf("not in order: %v", keys)
	}
	if !slices.IsSorted([]string{BodyKey(WorkTask(1), 2, 9), BodyKey(WorkTask(1), 2, 10), BodyKey(WorkTask(1), 10, 1)}) {
		t.Error("bodies are not in order of stage and generation")
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, RecordsPrefix(WorkTask(1))) || strings.HasPrefix(key, RecordsPrefix(WorkTask(10))) {
			t.Errorf("%s is not under its task's prefix alone", key)
		}
	}
	if strings.HasPrefix(BodyKey(WorkTask(1), 1, 1), RecordsPrefix(WorkTask(1))) || strings.HasPrefix(CancellationKey(WorkTask(1)), RecordsPrefix(WorkTask(1))) {
		t.Error("a body or a cancellation is under the prefix of the records")
	}
	if strings.HasPrefix(RecordKey(FinalizeTask(12), 1, "a"), RecordsPrefix(FinalizeTask(1))) {
		t.Error("the records of one epoch's finalize are under those of another")
	}
}

func TestNewCancellation(t *testing.T) {
	for accepted, want := range []string{"cancelled-at-stage-1", "cancelled-at-stage-2", "cancelled-at-stage-2"} {
		got := NewCancellation(Task{Ref: Ref{ID: WorkTask(1)}, Accepted: accepted, Stages: 2}, "A", Fail(Cancelled, "by a person"), noon)
		if got.Label != want || got.Saved != accepted {
			t.Errorf("%d of 2 accepted: got %s, %d saved; want %s, %d", accepted, got.Label, got.Saved, want, accepted)
		}
	}
}

func TestTriesThatAWorkerWroteDownLateAreCountedOnce(t *testing.T) {
	r := Record{Tries: 2, Unnamed: 3}
	for named, want := range map[int]int{0: 3, 2: 3, 3: 2, 5: 0, 7: 0} {
		if got := r.UnnamedBeside(named); got != want {
			t.Errorf("%d named: got %d unnamed, want %d", named, got, want)
		}
	}
}
