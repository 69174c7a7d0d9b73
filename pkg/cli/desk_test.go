package cli

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// desk is a person with a store, a document and several terminals.
type desk struct {
	*testing.T
	dir, store, ledger, kills, policy, out string
	heard                                  chan string
	backend                                backendFlags
	flags                                  []string // before each command
}

// elsewhere is where desks and benches keep their state, if not in a folder; the tests against LocalStack set it. It
// may slow a policy down.
var elsewhere func(t *testing.T, policy string) (where backendFlags, slower string)

// placed is a backend for a test, and its policy.
func placed(t *testing.T, policy string) (backendFlags, string) {
	t.Helper()
	if elsewhere == nil {
		return backendFlags{}, policy
	}
	return elsewhere(t, policy)
}

// newDesk is a desk over an empty folder; policy is the body of a policy file, or "" for the shipped one.
func newDesk(t *testing.T, policy string) *desk {
	t.Helper()
	dir := t.TempDir()
	backend, policy := placed(t, policy)
	d := &desk{
		T: t, backend: backend, dir: dir, store: filepath.Join(dir, "store"), ledger: filepath.Join(dir, "ledger.log"),
		kills: filepath.Join(dir, "kills"), out: filepath.Join(dir, "out"), heard: make(chan string, 1000),
	}
	d.must(os.Mkdir(d.kills, 0o700))
	d.must(syscall.Mkfifo(filepath.Join(dir, told), 0o600))
	pipe, err := os.OpenFile(filepath.Join(dir, told), os.O_RDWR, 0) // also for writing: it has no end while the test runs
	d.must(err)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			d.heard <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = pipe.Close()
		<-listening
	})
	if policy != "" {
		d.policy = write(t, dir, "policy.yaml", policy)
	}
	t.Setenv(asProgram, "1")
	t.Setenv(killDir, d.kills)
	return d
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// doc puts a document on the desk.
func (d *desk) doc(name, text string) string { return write(d.T, d.dir, name, text) }

// token places what a process does at a point.
func (d *desk) token(name, does string) { write(d.T, d.kills, name, does) }

// hears waits until a process has told that.
func (d *desk) hears(what string) string {
	d.Helper()
	for tooLong := time.After(time.Minute); ; {
		select {
		case line := <-d.heard:
			if strings.HasPrefix(line, what) {
				return line
			}
		case <-tooLong:
			d.Fatalf("nobody told %q", what)
		}
	}
}

// global puts the global flags before a command.
func (d *desk) global(args []string) []string {
	global := []string{"--store", d.store}
	if d.policy != "" {
		global = append(global, "--policy", d.policy)
	}
	return append(append(global, d.flags...), args...)
}

// holdfast runs a command in this process; its workers are processes.
func (d *desk) holdfast(args ...string) (code int, out, errOut string) {
	d.Helper()
	var stdout, stderr bytes.Buffer
	code = Main(d.global(args), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// does runs a command that must end with that exit code, and returns what it printed.
func (d *desk) does(want int, args ...string) string {
	d.Helper()
	code, out, errOut := d.holdfast(args...)
	if code != want {
		d.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errOut)
	}
	return out + errOut
}

// runArgs is a run of the compact profile with the desk's ledger.
func (d *desk) runArgs(doc string, more ...string) []string {
	return append([]string{"run", doc, "--profile", "compact", "--ledger", d.ledger, "--out", d.out, "--concurrency", "16"}, more...)
}

// runs runs a document, wants that exit code, and returns how it went.
func (d *desk) runs(want int, doc string, more ...string) outcome {
	d.Helper()
	code, out, errOut := d.holdfast(d.runArgs(doc, append(more, "--json")...)...)
	if code != want {
		d.Fatalf("run: exit code %d, want %d\n%s%s", code, want, out, errOut)
	}
	var o outcome
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		d.Fatalf("run --json printed %q: %v", out, err)
	}
	return o
}

// terminal is a command in a process of its own: another terminal.
type terminal struct {
	*exec.Cmd
	d           *desk
	stdout, err bytes.Buffer
}

// starts starts a command as a process.
func (d *desk) starts(args ...string) *terminal {
	d.Helper()
	p := &terminal{Cmd: exec.Command(program(d.T), d.global(args)...), d: d}
	p.Stdout, p.Stderr = &p.stdout, &p.err
	d.must(p.Start())
	d.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	return p
}

// ends waits for the process, wants that exit code, and returns what it printed.
func (p *terminal) ends(want int) string {
	p.d.Helper()
	_ = p.Wait() // the exit code says it
	if got := p.ProcessState.ExitCode(); got != want {
		p.d.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(p.Args[1:], " "), got, want, p.stdout.String(), p.err.String())
	}
	return p.stdout.String() + p.err.String()
}

// system is the store, for looking into it.
func (d *desk) system() *wiring.System {
	d.Helper()
	a := &app{grammar: &grammar{Store: d.store, Policy: d.policy, Tenant: "local", backendFlags: d.backend}, ctx: context.Background(), clock: pipeline.NewRealClock()}
	var err error
	a.policy, err = a.loadPolicy()
	d.must(err)
	s, done, err := a.system()
	d.must(err)
	d.Cleanup(done)
	return s
}

// task is a row.
func (d *desk) task(s *wiring.System, job pipeline.JobID, id pipeline.TaskID) pipeline.Task {
	d.Helper()
	row, err := s.Backend.Store.Task(d.Context(), pipeline.Ref{Job: job, ID: id})
	d.must(err)
	return row
}

// rows are the work tasks of a job.
func (d *desk) rows(s *wiring.System, job pipeline.JobID) []pipeline.Task {
	d.Helper()
	all, err := pipeline.AllTasks(d.Context(), s.Backend.Store, job)
	d.must(err)
	var rows []pipeline.Task
	for _, row := range all {
		if row.ID.Kind() == pipeline.TaskWork {
			rows = append(rows, row)
		}
	}
	return rows
}

// job is the only job in the store, or the newest.
func (d *desk) job(s *wiring.System) pipeline.Job {
	d.Helper()
	jobs, _, err := s.Backend.Store.Jobs(d.Context(), "local", "", 1)
	d.must(err)
	if len(jobs) == 0 {
		d.Fatal("there is no job")
	}
	return jobs[0]
}

// quiet checks that no message is left that leads to anything: all are made visible, a worker that does another job
// to its end meets them before it, and then both queues are empty.
func (d *desk) quiet(s *wiring.System) {
	d.Helper()
	embedded := !d.backend.isAWS()
	if embedded {
		db, err := sql.Open("sqlite", filepath.Join(d.store, "holdfast.db"))
		d.must(err)
		_, err = db.ExecContext(d.Context(), "PRAGMA busy_timeout = 5000; UPDATE messages SET visible_at = 1")
		d.must(errors.Join(err, db.Close()))
	}
	d.does(exitCompleted, "run", d.doc("tickets.txt", "Ticket 1\nNobody can log in.\n"), "--pipeline", "../pipelines/examples/support-tickets.yaml", "--fresh", "--out", d.out)
	for name, q := range map[string]pipeline.Queue{"control": s.Backend.Queues.Control, "work": s.Backend.Queues.Work} {
		if visible, inFlight, err := q.Depth(d.Context()); err != nil || visible > 0 || (embedded && inFlight > 0) { // nobody can make SQS show what a dead worker holds
			d.Errorf("queue %s: %d visible, %d in flight, %v; want it empty", name, visible, inFlight, err)
		}
	}
}

// entries are the lines of the model's ledger.
func (d *desk) entries() []offline.Entry {
	d.Helper()
	entries, err := offline.ReadLedger(d.ledger)
	if err != nil && !os.IsNotExist(unwrap(err)) {
		d.Fatal(err)
	}
	return entries
}

// asked is how often the model was asked, by its own ledger.
func (d *desk) asked() int {
	d.Helper()
	n := 0
	for _, e := range d.entries() {
		if e.Event == offline.Begin {
			n++
		}
	}
	return n
}

// says checks that a text says all of that, wherever its lines are folded.
func (d *desk) says(text string, all ...string) {
	d.Helper()
	for _, want := range all {
		if !strings.Contains(oneLine(text), oneLine(want)) {
			d.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// exists says whether a file or folder is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// storedReplies are the replies to what the ledger knows.
func storedReplies(d *desk, s *wiring.System) map[pipeline.ReplyKey]pipeline.Reply {
	d.Helper()
	var keys []pipeline.ReplyKey
	for _, e := range d.entries() {
		keys = append(keys, e.Key)
	}
	found, err := pipeline.ReadReplies(d.Context(), s.Backend.Store, s.Backend.Blobs, pipeline.NewRealClock(), keys)
	d.must(err)
	return found
}
