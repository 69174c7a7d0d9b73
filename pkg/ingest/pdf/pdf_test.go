package pdf

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/ingest/ingesttest"
	"holdfast/pkg/ingest/unread"
	"holdfast/pkg/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig keeps the compiled reader where the program keeps it: compiling takes seconds.
func testConfig() Config {
	cfg := DefaultConfig
	if dir, err := os.UserCacheDir(); err == nil {
		cfg.Cache = filepath.Join(dir, "holdfast")
	}
	return cfg
}

func mustRead(t testing.TB, p ingesttest.PDF) pipeline.Document {
	t.Helper()
	d, err := Read(t.Context(), p.Bytes(), testConfig())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func refuses(t *testing.T, source []byte, cfg Config, want error, says string) {
	t.Helper()
	d, err := Read(t.Context(), source, cfg)
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) || d.Text != "" {
		t.Errorf("got %d bytes of text and error %v, want %v with %q", len(d.Text), err, want, says)
	}
	if err != nil && (strings.Contains(err.Error(), "wasm") || strings.Contains(err.Error(), ".go:")) {
		t.Errorf("got %q, want nothing of a library's in it", err)
	}
}

func clause(n string) string {
	return n + " The Supplier shall keep the Confidential Information of the other party secret."
}

func TestPagesAreReadInOrderAndTheMapNamesThem(t *testing.T) {
	d := mustRead(t, ingesttest.PDF{Pages: [][]string{{clause("1."), "It is (really) secret."}, {}, {clause("2.")}}})
	want := clause("1.") + "\nIt is (really) secret.\n" + clause("2.") + "\n"
	if d.Text != want {
		t.Errorf("got %q, want %q", d.Text, want)
	}
	for words, place := range map[string]string{"1. The": "page 1", "really": "page 1", "2. The": "page 3"} {
		if got := d.Origin.Where(strings.Index(d.Text, words)); got != place {
			t.Errorf("%q: got place %q, want %q", words, got, place)
		}
	}
	if len(d.Origin.Notes) != 0 {
		t.Errorf("got notes %q, want none: an empty page is nothing that was not read", d.Origin.Notes)
	}
}

func TestI05EncryptedDocuments(t *testing.T) {
	pages := [][]string{{clause("1.")}}
	t.Run("one that opens only with a password is refused in plain words", func(t *testing.T) {
		refuses(t, ingesttest.PDF{Pages: pages, UserPassword: "secret", OwnerPassword: "boss"}.Bytes(), testConfig(), unread.ErrEncrypted, "save a copy without one")
	})
	for name, p := range map[string]ingesttest.PDF{
		"one with an owner's password only is read":        {Pages: pages, OwnerPassword: "boss"},
		"one that is encrypted without a password is read": {Pages: pages, Encrypt: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustRead(t, p)
			if strings.TrimSpace(d.Text) != pages[0][0] {
				t.Errorf("got %q, want %q", d.Text, pages[0][0])
			}
			if len(d.Origin.Notes) != 1 || !strings.Contains(d.Origin.Notes[0], "restricted") {
				t.Errorf("got notes %q, want that its owner restricted it", d.Origin.Notes)
			}
		})
	}
}

func TestI04PagesWithoutTextAreNeverPassedOverInSilence(t *testing.T) {
	text := []string{clause("1.")}
	t.Run("all of them", func(t *testing.T) {
		refuses(t, ingesttest.PDF{Pages: [][]string{{}, {}}, Scanned: map[int]bool{1: true, 2: true}}.Bytes(), testConfig(), unread.ErrNoText, "OCR")
	})
	t.Run("all of them, with a stamp", func(t *testing.T) {
		refuses(t, ingesttest.PDF{Pages: [][]string{{"Page 1 of 2"}, {"Page 2 of 2"}}, Scanned: map[int]bool{1: true, 2: true}}.Bytes(), testConfig(), unread.ErrNoText, "OCR")
	})
	t.Run("some of them", func(t *testing.T) {
		d := mustRead(t, ingesttest.PDF{Pages: [][]string{text, {}, {"Page 3"}, text, {}}, Scanned: map[int]bool{2: true, 3: true, 5: true}})
		if len(d.Origin.Notes) != 1 || !strings.Contains(d.Origin.Notes[0], "no text on pages 2-3, 5 of 5") {
			t.Errorf("got notes %q, want the pages", d.Origin.Notes)
		}
	})
	t.Run("a scan with a layer of text is read", func(t *testing.T) {
		if d := mustRead(t, ingesttest.PDF{Pages: [][]string{text}, Scanned: map[int]bool{1: true}}); len(d.Origin.Notes) != 0 {
			t.Errorf("got notes %q, want none", d.Origin.Notes)
		}
	})
	t.Run("an empty document", func(t *testing.T) {
		refuses(t, ingesttest.PDF{Pages: [][]string{{}}}.Bytes(), testConfig(), unread.ErrNoText, "empty")
	})
}

func TestBrokenDocuments(t *testing.T) {
	whole := ingesttest.PDF{Pages: [][]string{{clause("1.")}, {clause("2.")}}}.Bytes()
	t.Run("one that was cut is refused", func(t *testing.T) {
		refuses(t, whole[:60], testConfig(), unread.ErrDamaged, "cut")
	})
	t.Run("one whose table of objects is wrong is read all the same", func(t *testing.T) {
		broken := []byte(strings.Replace(string(whole), "startxref\n", "startxref\n9", 1))
		if d, err := Read(t.Context(), broken, testConfig()); err != nil || !strings.Contains(d.Text, "2. The Supplier") {
			t.Errorf("got %q and %v, want the text", d.Text, err)
		}
	})
	t.Run("one with too many pages is refused", func(t *testing.T) {
		cfg := testConfig()
		cfg.Pages = 1
		refuses(t, whole, cfg, unread.ErrTooLarge, "2 pages, the limit is 1")
	})
	t.Run("one with too much text is refused", func(t *testing.T) {
		cfg := testConfig()
		cfg.Text = 100
		refuses(t, whole, cfg, unread.ErrTooLarge, "split it")
	})
	t.Run("one that needs more memory than the sandbox has is refused", func(t *testing.T) {
		cfg := testConfig()
		cfg.Memory = 24 << 20
		large := append(strings.Split(strings.Repeat(clause("1.")+"\n", 1), "\n"), strings.Repeat("x", 30<<20))
		refuses(t, ingesttest.PDF{Pages: [][]string{large}}.Bytes(), cfg, unread.ErrDamaged, "")
	})
}

// I-09: the limit interrupts the reader in the middle of its work, and it leaves nothing behind (goleak).
func TestI09AReaderThatNeverComesBackIsInterrupted(t *testing.T) {
	timed := testConfig()
	timed.Limit = func(ctx context.Context) (context.Context, context.CancelFunc) {
		return pipeline.NewRealClock().WithTimeout(ctx, 500*time.Millisecond, pipeline.ErrTimedOut)
	}
	t.Run("pages that draw forever", func(t *testing.T) {
		_, err := Read(t.Context(), ingesttest.PDF{Pages: [][]string{{clause("1.")}}, Endless: true}.Bytes(), timed)
		if !errors.Is(err, pipeline.ErrTimedOut) {
			t.Errorf("got %v, want %v", err, pipeline.ErrTimedOut)
		}
	})
	t.Run("pages that point back to themselves end by themselves", func(t *testing.T) {
		d, err := Read(t.Context(), ingesttest.PDF{Pages: [][]string{{clause("1.")}}, Loop: true}.Bytes(), testConfig())
		if err == nil && !strings.Contains(d.Text, "1. The Supplier") {
			t.Errorf("got %q, want the text or a reason", d.Text)
		}
	})
}

func TestClean(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		unknown          int
	}{
		{"line ends and spaces before them", "a \r\nb\t\n\n", "a\nb", 0},
		{"a hyphen that ends a line", "agree\x02\r\nment", "agree-\nment", 0},
		{"signs of picture fonts", "\uf0b7 a \uf0fe", "• a ☑", 0},
		{"letters that nobody can tell", "a\ufffdb\ue000", "a[?]b[?]", 2},
		{"control characters", "a\x01b", "ab", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, unknown := clean(c.text); got != c.want || unknown != c.unknown {
				t.Errorf("got %q and %d unknown, want %q and %d", got, unknown, c.want, c.unknown)
			}
		})
	}
}

func TestTooManyUnknownLettersAreRefused(t *testing.T) {
	c := collection{cfg: DefaultConfig}
	for n := 1; n <= 2; n++ {
		if err := c.add(n, page{text: strings.Repeat("\ue001", 200) + "abc"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.document(2); !errors.Is(err, unread.ErrEncoding) || !strings.Contains(err.Error(), "pages 1-2") {
		t.Errorf("got %v, want %v with the pages", err, unread.ErrEncoding)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(ingesttest.PDF{Pages: [][]string{{"x"}}}.Bytes())
	f.Add(ingesttest.PDF{Pages: [][]string{{"x"}}, Encrypt: true}.Bytes())
	f.Add(ingesttest.PDF{Pages: [][]string{{"x"}, {}}, Scanned: map[int]bool{2: true}, Loop: true}.Bytes())
	cfg := testConfig()
	cfg.Memory, cfg.Text, cfg.Pages = 64<<20, 1<<16, 20
	cfg.Limit = func(ctx context.Context) (context.Context, context.CancelFunc) {
		return pipeline.NewRealClock().WithTimeout(ctx, 5*time.Second, pipeline.ErrTimedOut)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if len(source) > 1<<14 {
			return
		}
		d, err := Read(context.Background(), source, cfg)
		if err == nil && len(d.Text) == 0 {
			t.Fatal("got neither text nor a reason")
		}
	})
}
