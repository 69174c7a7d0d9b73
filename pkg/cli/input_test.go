package cli

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"holdfast/pkg/pipelines"
)

const small = "1. TERM\n\nThis agreement has a term of two years.\n\n2. LIABILITY\n\nThe reseller shall indemnify the vendor.\n"

// nothingLeft checks that a command which was refused made nothing.
func (d *desk) nothingLeft() {
	d.Helper()
	for _, path := range []string{d.store, d.out, d.ledger} {
		if exists(path) {
			d.Errorf("%s was made for a command that was refused", filepath.Base(path))
		}
	}
}

func TestBadDocuments(t *testing.T) {
	big := strings.Repeat("The party shall do a thing.\n", 50<<20/28)
	for name, c := range map[string]struct {
		text string
		code int
		says []string
	}{
		"empty":          {"", exitUsage, []string{"contract.txt", "the file is empty", "check that it is the right file"}},
		"white space":    {" \n\t\r\n ", exitUsage, []string{"nothing but white space"}},
		"binary":         {"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00>\x00\x01", exitUsage, []string{"binary data", "DOCX, PDF and plain text"}},
		"50 MB":          {big, exitUsage, []string{"too large: it has 49 MB of text, the limit is 32 MB", "split it"}},
		"UTF-32":         {"\xff\xfe\x00\x00h\x00\x00\x00i\x00\x00\x00", exitUsage, []string{"UTF-32", "save it as plain text in UTF-8"}},
		"damaged UTF-8":  {strings.Repeat("é", 50) + "\n\xff\x81 oops\n" + strings.Repeat("é", 50), exitUsage, []string{"line 2", "damaged"}},
		"lost character": {"The party\nshall \uFFFD pay\n", exitUsage, []string{"U+FFFD", "line 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "")
			doc := d.doc("contract.txt", c.text)
			for _, command := range []string{"run", "submit"} {
				text := d.does(c.code, command, doc)
				d.says(text, c.says...)
				if strings.Count(text, "\n") != 1 {
					t.Errorf("%s said more than one line: %s", command, text)
				}
			}
			d.nothingLeft()
		})
	}
	t.Run("missing, or a folder", func(t *testing.T) {
		d := newDesk(t, "")
		d.says(d.does(exitUsage, "run", filepath.Join(d.dir, "none.txt")), "there is no file", "none.txt")
		d.says(d.does(exitUsage, "run", d.dir), "is a folder; name the document in it")
		d.nothingLeft()
	})
	t.Run("UTF-16 works", func(t *testing.T) {
		d := newDesk(t, "")
		var text bytes.Buffer
		text.WriteString("\xff\xfe")
		for _, unit := range utf16.Encode([]rune(small)) {
			text.Write([]byte{byte(unit), byte(unit >> 8)})
		}
		if o := d.runs(exitCompleted, d.doc("contract.txt", text.String())); o.Counts.Answered != 28 {
			t.Errorf("%d cells answered, want 28", o.Counts.Answered)
		}
	})
}

// oneCall is a definition that asks one call about each chunk.
const oneCall = `name: one-call
version: "1"
title: One call
system: |
  Answer only with JSON that fits the schema.
shared: |
  [BEGIN]
  {{.Text}}
  [END]
prompts:
  one: |
    Call: {{.Vars.call}}
    How urgent is it, from 0 to 10?
schemas:
  urgency:
    type: object
    additionalProperties: false
    required: [urgency]
    properties:
      urgency: {type: integer, minimum: 0, maximum: 10}
`

func TestOneLongLine(t *testing.T) {
	d := newDesk(t, "")
	code, out, errOut := d.holdfast("submit", d.doc("line.txt", strings.Repeat("The party shall pay the other party for each loss. ", longLine/51)), "--profile", "compact")
	if code != exitCompleted {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	id := strings.TrimSpace(out)
	d.token("split-End-after-"+id, say)
	worker := d.starts("worker", "--ledger", d.ledger)
	d.hears("split-End-after")
	d.must(worker.Process.Signal(os.Interrupt))
	worker.ends(exitCompleted)
	d.says(d.does(exitCompleted, "status", id), "chunks x 28 calls", "holdfast resume")
}

func TestBadFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"pipeline":     {[]string{"--pipeline", "nope"}, []string{`no pipeline "nope"`, "contract-review"}},
		"profile":      {[]string{"--profile", "nope"}, []string{`no profile "nope"`, "full, compact"}},
		"model":        {[]string{"--model", "nope"}, []string{`no model "nope"`, "offline"}},
		"price":        {[]string{"--price-as", "nope"}, []string{"nope", "claude-sonnet-5-5"}},
		"fault":        {[]string{"--fail", "bogus=3%"}, []string{`no fault "bogus"`, "throttled"}},
		"share":        {[]string{"--fail", "throttled=3"}, []string{"for example throttled=3%"}},
		"money":        {[]string{"--max-cost", "5abc"}, []string{"5abc", "2.50"}},
		"no money":     {[]string{"--max-cost", "0"}, []string{"2.50"}},
		"infinite":     {[]string{"--max-cost", "inf"}, []string{"2.50"}},
		"workers":      {[]string{"--workers", "0"}, []string{"--workers (0)"}},
		"concurrency":  {[]string{"--concurrency", "1", "--workers", "2"}, []string{"--concurrency (1)"}},
		"flag":         {[]string{"--nope"}, []string{"unknown flag", "holdfast --help"}},
		"policy":       {[]string{"--policy", "none.yaml"}, []string{"none.yaml"}},
		"folder":       {[]string{"--store", "main_test.go"}, []string{"main_test.go is a file; --store names a folder"}},
		"out":          {[]string{"--out", "main_test.go/out"}, []string{"the report cannot be written", "--out"}},
		"no such file": {[]string{"--pipeline", "none.yaml"}, []string{"no pipeline file none.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "")
			doc := d.doc("contract.txt", small)
			d.says(d.does(exitUsage, append([]string{"run", doc, "--out", d.out}, c.args...)...), c.says...)
			d.nothingLeft()
		})
	}
	t.Run("a broken definition names its file and line", func(t *testing.T) {
		d := newDesk(t, "")
		file := d.doc("mine.yaml", oneCall+"stages:\n  - nam: first\n")
		d.says(d.does(exitUsage, "run", d.doc("contract.txt", small), "--pipeline", file), "mine.yaml:22:")
		d.nothingLeft()
	})
	t.Run("a policy that cannot hold names its file, line and both sides", func(t *testing.T) {
		d := newDesk(t, "max_tries: 4\nclaim_ttl: 2s\n")
		d.says(d.does(exitUsage, "run", d.doc("contract.txt", small)), "policy.yaml:2:", "max_skew (5s)", "claim_ttl - renew_every")
		d.nothingLeft()
	})
	t.Run("commands about a job that is not there", func(t *testing.T) {
		d := newDesk(t, "")
		commands := []string{"status", "watch", "pause", "resume", "cancel", "redrive", "report", "why"}
		for _, command := range commands {
			d.says(d.does(exitUsage, command, "nope"), "there is no store in", "holdfast run FILE")
		}
		d.says(d.does(exitCompleted, "--version"), "holdfast ")
		d.says(d.does(exitCompleted, "jobs"), "no jobs in", "holdfast run FILE")
		d.nothingLeft()
		d.does(exitCompleted, "submit", d.doc("contract.txt", small))
		for _, command := range commands {
			d.says(d.does(exitUsage, command, "nope"), `no job "nope"`, "holdfast jobs")
		}
		job := string(d.job(d.system()).ID)
		d.says(d.does(exitUsage, "why", job, "first"), `"first" names no task`)
		d.says(d.does(exitUsage, "why", job, "7"), "has no work#00007", "holdfast status "+job)
	})
}

func TestBadStores(t *testing.T) {
	change := func(d *desk, statement string) {
		d.must(os.MkdirAll(d.store, 0o700))
		db, err := sql.Open("sqlite", filepath.Join(d.store, "holdfast.db"))
		d.must(err)
		_, err = db.ExecContext(context.Background(), statement)
		d.must(err)
		d.must(db.Close())
	}
	refused := func(d *desk, says ...string) {
		d.Helper()
		file := filepath.Join(d.store, "holdfast.db")
		before, err := os.ReadFile(file)
		d.must(err)
		doc := d.doc("contract.txt", small)
		for _, args := range [][]string{{"run", doc, "--out", d.out}, {"submit", doc}, {"jobs"}, {"worker", "--idle"}} {
			text := d.does(exitFailed, args...)
			d.says(text, says...)
		}
		after, err := os.ReadFile(file)
		d.must(err)
		if !bytes.Equal(before, after) {
			d.Error("the file was changed")
		}
	}
	t.Run("of a newer version", func(t *testing.T) {
		d := newDesk(t, "")
		d.does(exitCompleted, "submit", d.doc("contract.txt", small))
		change(d, "PRAGMA user_version = 99")
		refused(d, "newer version", "Install the version that wrote it")
	})
	t.Run("a database that is none of ours", func(t *testing.T) {
		d := newDesk(t, "")
		change(d, "CREATE TABLE theirs (id INTEGER)")
		refused(d, "is not a Holdfast store", "use another folder")
	})
	t.Run("no database at all", func(t *testing.T) {
		d := newDesk(t, "")
		d.must(os.MkdirAll(d.store, 0o700))
		write(t, d.store, "holdfast.db", strings.Repeat("This is no database. ", 500))
		refused(d, "damaged or not a Holdfast store", "use another folder")
	})
	t.Run("that may not be written", func(t *testing.T) {
		d := newDesk(t, "")
		said := readOnly(d, d.doc("contract.txt", small))
		d.says(said, "cannot be written", "--store")
	})
}

// readOnly runs a document over a store in a folder that this user may not write. The superuser may write anywhere:
// then another user does it.
func readOnly(d *desk, doc string) string {
	d.Helper()
	d.must(os.Mkdir(filepath.Join(d.dir, "locked"), 0o555))
	for dir := d.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		d.must(os.Chmod(dir, 0o755))
	}
	d.must(os.Chmod(doc, 0o644))
	out := filepath.Join(d.dir, "free")
	d.must(os.Mkdir(out, 0o700))
	d.must(os.Chmod(out, 0o777)) //nolint:gosec // for another user
	self, err := os.Open(program(d.T))
	d.must(err)
	defer self.Close()
	binary, err := os.OpenFile(filepath.Join(d.dir, "holdfast"), os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // it is run
	d.must(err)
	_, err = io.Copy(binary, self)
	d.must(err)
	d.must(binary.Close())
	cmd := exec.Command(binary.Name(), "--store", filepath.Join(d.dir, "locked", "store"), "run", doc, "--out", out)
	cmd.Dir = out
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	said, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exitUsage {
		d.Errorf("%v: %s", err, said)
	}
	return string(said)
}

func TestFullDisk(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	doc := d.doc("contract.txt", pipelines.SampleContract()[:14_000])
	t.Run("no room for a store", func(t *testing.T) {
		d.says(d.does(exitFailed, append([]string{"--max-pages", "5"}, d.runArgs(doc)...)...), "is full", "Free space there, then run the same again")
	})
	t.Run("no room for the answers: it stops at once, and says so once", func(t *testing.T) {
		said := d.does(exitFailed, append([]string{"--max-pages", "32"}, d.runArgs(doc, "--workers", "2")...)...)
		d.says(said, "is full", "Free space there, then run the same again: what is stored is kept")
		if n := strings.Count(said, "is full"); n != 1 {
			t.Errorf("it is said %d times:\n%s", n, said)
		}
		if asked := d.asked(); asked == 0 || asked >= 84 {
			t.Errorf("%d of 84 calls were asked; choose another number of pages", asked)
		}
	})
	t.Run("with room the same run completes", func(t *testing.T) {
		o := d.runs(exitCompleted, doc)
		if o.Counts.Answered != 84 || o.Again != 0 {
			t.Errorf("%d of 84 cells answered, %d stored answers asked again", o.Counts.Answered, o.Again)
		}
	})
}
