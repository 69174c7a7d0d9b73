package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/view"
	"holdfast/pkg/wiring"
	"holdfast/pkg/work"
)

// bench keeps worker processes alive over one store while tokens kill them.
type bench struct {
	t      *testing.T
	dir    string
	store  string
	policy string
	ledger string
	kills  string
	system *wiring.System
	jobs   []pipeline.JobID

	mu      sync.Mutex
	procs   map[string]*exec.Cmd
	stdin   map[string]interface{ Close() error }
	made    int
	deaths  []death
	closing bool
	ended   chan pipeline.JobID
	group   sync.WaitGroup
}

// death is what was known right after a process was killed.
type death struct {
	worker string
	line   int                        // entries in the ledger
	stored map[pipeline.ReplyKey]bool // replies in the store
	lost   int                        // its questions that had no stored reply
}

func newBench(t *testing.T, policy string) *bench {
	dir := t.TempDir()
	backend, policy := placed(t, policy)
	b := &bench{
		t: t, dir: dir, store: filepath.Join(dir, "store"), ledger: filepath.Join(dir, "ledger.log"), kills: filepath.Join(dir, "kills"),
		policy: write(t, dir, "policy.yaml", policy), procs: map[string]*exec.Cmd{}, stdin: map[string]interface{ Close() error }{},
		ended: make(chan pipeline.JobID, 1000),
	}
	if err := os.Mkdir(b.kills, 0o700); err != nil {
		t.Fatal(err)
	}
	a := &app{grammar: &grammar{Store: b.store, Policy: b.policy, Tenant: "local", backendFlags: backend}, ctx: context.Background(), clock: pipeline.NewRealClock()}
	var err error
	if a.policy, err = a.loadPolicy(); err != nil {
		t.Fatal(err)
	}
	s, closeStore, err := a.system()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeStore)
	b.system = s
	return b
}

func (b *bench) submit(name, text string) pipeline.JobID {
	b.t.Helper()
	path := write(b.t, b.dir, name, text)
	code, out, errOut := holdfast(b.t, "--store", b.store, "--policy", b.policy, "submit", path, "--profile", "compact", "--start")
	if code != 0 {
		b.t.Fatalf("submit: exit code %d: %s", code, errOut)
	}
	id := pipeline.JobID(strings.TrimSpace(out))
	b.jobs = append(b.jobs, id)
	return id
}

// start starts a worker process: the real command.
func (b *bench) start(pace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return
	}
	b.made++
	name := fmt.Sprintf("w%d", b.made)
	cmd := exec.Command(program(b.t), "--store", b.store, "--policy", b.policy, "worker", "--supervised",
		"--concurrency", "8", "--claims", "1", "--pace", pace, "--ledger", b.ledger)
	cmd.Env = append(os.Environ(), asProgram+"=1", killDir+"="+b.kills, workerName+"="+name)
	log, err := os.Create(filepath.Join(b.dir, name+".log"))
	if err != nil {
		b.t.Error(err)
		return
	}
	defer log.Close()
	cmd.Stderr = log
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.t.Error(err)
		return
	}
	b.procs[name], b.stdin[name] = cmd, in
	b.group.Go(func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var e work.Event
			if json.Unmarshal(lines.Bytes(), &e) == nil && e.What == "end" && e.Task.Kind() == pipeline.TaskFinalize {
				b.ended <- e.Job
			}
		}
		err := cmd.Wait()
		b.died(name, err)
		b.start(pace)
	})
}

// died does what a supervisor does, and writes down what the ledger and the store knew at that moment.
func (b *bench) died(name string, exit error) {
	b.mu.Lock()
	delete(b.procs, name)
	delete(b.stdin, name)
	b.mu.Unlock()
	if exit == nil {
		return
	}
	entries := b.entries()
	d := death{worker: name, stored: map[pipeline.ReplyKey]bool{}}
	for key := range b.replies(entries) {
		d.stored[key] = true
	}
	d.line = len(b.entries()) // read last: what is asked from here on was not stored when the replies were read
	for _, e := range entries {
		if e.Event == offline.Begin && e.Worker == name && !d.stored[e.Key] {
			d.lost++
		}
	}
	b.mu.Lock()
	b.deaths = append(b.deaths, d)
	b.mu.Unlock()
	if _, err := b.system.Reaper.Exited(context.Background(), name); err != nil {
		b.t.Errorf("expire the claims of %s: %v", name, err)
	}
	b.ended <- "" // somebody may have ended a job without a word
}

func (b *bench) entries() []offline.Entry {
	entries, err := offline.ReadLedger(b.ledger)
	if err != nil && !os.IsNotExist(unwrap(err)) {
		b.t.Errorf("read the ledger: %v", err)
	}
	return entries
}

func unwrap(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = inner.Unwrap()
	}
}

func (b *bench) replies(entries []offline.Entry) map[pipeline.ReplyKey]pipeline.Reply {
	var keys []pipeline.ReplyKey
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	backend := b.system.Backend
	found, err := pipeline.ReadReplies(context.Background(), backend.Store, backend.Blobs, pipeline.NewRealClock(), keys)
	if err != nil {
		b.t.Errorf("read the replies: %v", err)
	}
	return found
}

// wait waits until all jobs have ended, then drains the workers.
func (b *bench) wait() map[pipeline.JobID]pipeline.Job { return b.waitWatching(func() {}) }

// waitWatching is wait, looking whenever something may have happened.
func (b *bench) waitWatching(look func()) map[pipeline.JobID]pipeline.Job {
	b.t.Helper()
	jobs := map[pipeline.JobID]pipeline.Job{}
	for len(jobs) < len(b.jobs) {
		<-b.ended
		look()
		for _, id := range b.jobs {
			job, err := b.system.Backend.Store.Job(context.Background(), id)
			if err != nil {
				b.t.Fatal(err)
			}
			if job.Status.Ended() {
				jobs[id] = job
			}
		}
	}
	b.mu.Lock()
	b.closing = true
	for _, in := range b.stdin {
		_ = in.Close()
	}
	b.mu.Unlock()
	b.group.Wait()
	return jobs
}

// token places a kill.
func (b *bench) token(format string, args ...any) {
	write(b.t, b.kills, fmt.Sprintf(format, args...), "")
}

func (b *bench) tokensLeft(prefix string) []string {
	left, _ := filepath.Glob(filepath.Join(b.kills, prefix+"*"))
	return left
}

func TestKillsCostNothingThatWasStored(t *testing.T) {
	b := newBench(t, killPolicy)
	r := rand.New(rand.NewPCG(7, 11))
	for i, party := range []string{"Reseller", "Dealer", "Distributor"} { // three texts that share no reply
		id := b.submit(fmt.Sprintf("doc%d.txt", i), signed(contract(0, killBytes), party))
		for _, point := range [][2]string{{"split-PutItemOnce-after", "finalize-SetJob-before"}, {"split-End-before", "finalize-End-before"}} {
			b.token("%s-%s", point[0], id)
			b.token("%s-%s", point[1], id)
		}
	}
	for i := range killWrites {
		b.token("write-%d", 50+5*i+r.IntN(5))
	}
	for i := range killLines {
		b.token("line-%d-%s", lineStep/2+i*lineStep+r.IntN(lineStep/2), []string{"begin", "answered"}[i%2])
	}
	for range 3 {
		b.start("15ms")
	}
	jobs := b.wait()
	cells := 0
	for id, job := range jobs {
		if job.Status != pipeline.JobCompleted {
			t.Errorf("job %s: got %s (%s), want completed", id, job.Status, job.Reason)
			continue
		}
		result, err := view.Result(context.Background(), b.system, job)
		if err != nil {
			t.Fatal(err)
		}
		if c := result.Counts; c.Answered != c.Cells || c.Cells == 0 {
			t.Errorf("job %s: %d of %d cells answered, want all", id, c.Answered, c.Cells)
		}
		cells += result.Counts.Cells
	}
	keys := map[pipeline.ReplyKey]bool{}
	for _, e := range b.entries() {
		keys[e.Key] = true
	}
	if len(keys) < cells {
		t.Errorf("%d questions for %d cells: two documents share replies, and may ask for one at the same time", len(keys), cells)
	}
	b.witness(killsAtAll)
}

// story is all that is known of a key that was asked once too often.
func (b *bench) story(key pipeline.ReplyKey) string {
	var lines []string
	for _, e := range b.entries() {
		if e.Key == key {
			lines = append(lines, fmt.Sprintf("  %s %s by %s: %s", e.At, e.Event, e.Worker, e.Outcome))
		}
	}
	reply := b.replies([]offline.Entry{{Key: key}})[key]
	lines = append(lines, fmt.Sprintf("  stored %s by %s for %s %s", reply.At, reply.Worker, reply.Task, reply.Call))
	history, err := pipeline.ReadHistory(context.Background(), b.system.Backend.Store, pipeline.Ref{Job: reply.Job, ID: reply.Task})
	if err != nil {
		return err.Error()
	}
	for _, r := range history.Records {
		lines = append(lines, fmt.Sprintf("  generation %d claimed %s by %s at stage %d, ended %s by %s: %s", r.Generation, r.ClaimedAt, r.Worker, r.Stage, r.EndedAt, r.Ender, r.Failure))
	}
	return strings.Join(lines, "\n")
}

// witness holds the ledger against what was stored when each process died.
func (b *bench) witness(kills int) {
	b.t.Helper()
	splits, finalizes := b.lostClaims(pipeline.SplitTask), b.lostClaims(pipeline.FinalizeTask(1))
	if splits < 5 || finalizes < 5 {
		b.t.Errorf("%d kills in a split and %d in a finalize, want at least 5 of each; tokens left: %v", splits, finalizes, b.tokensLeft(""))
	}
	if len(b.deaths) < kills {
		b.t.Errorf("%d kills, want at least %d; tokens left: %v", len(b.deaths), kills, b.tokensLeft(""))
	}
	entries := b.entries()
	lost := 0
	for _, d := range b.deaths {
		lost += d.lost
		for _, e := range entries[d.line:] {
			if e.Event == offline.Begin && d.stored[e.Key] {
				b.t.Errorf("key %s was stored when %s died and was asked again by %s:\n%s", e.Key, d.worker, e.Worker, b.story(e.Key))
			}
		}
	}
	stored := map[pipeline.ReplyKey]pipeline.Instant{}
	for key, reply := range b.replies(entries) {
		stored[key] = reply.At
	}
	repeated := offline.Repeats(entries, stored)
	if repeated.Stored > 0 {
		b.t.Errorf("%d stored answers were asked again: %v", repeated.Stored, repeated.StoredKeys)
	}
	again, stalled := b.repeats(entries)
	if again > lost {
		b.t.Errorf("%d calls were asked again, want at most the %d that were in flight at the kills", again, lost)
	}
	lapsed := b.lapsed()
	if stalled > 0 && lapsed == 0 {
		b.t.Errorf("%d calls of workers that live were asked again, and no claim of theirs had lapsed", stalled)
	}
	b.t.Logf("%d kills (%d in split, %d in finalize), %d calls asked again of %d in flight, %d because of %d claims that lapsed",
		len(b.deaths), splits, finalizes, again, lost, stalled, lapsed)
}

// lostClaims is how many claims of that task of all jobs ended with their worker.
func (b *bench) lostClaims(task pipeline.TaskID) (n int) {
	for _, job := range b.jobs {
		history, err := pipeline.ReadHistory(context.Background(), b.system.Backend.Store, pipeline.Ref{Job: job, ID: task})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, r := range history.Records {
			if r.Ender == pipeline.ExpiredBy {
				n++
			}
		}
	}
	return n
}

// repeats counts the questions that were asked again because nobody had kept an answer: those of workers that were
// killed, and those of workers that live.
func (b *bench) repeats(entries []offline.Entry) (killed, alive int) {
	dead := map[string]bool{}
	for _, d := range b.deaths {
		dead[d.worker] = true
	}
	last, outcomes := map[pipeline.ReplyKey]offline.Entry{}, map[string]string{}
	for _, e := range entries {
		if e.Event == offline.End {
			outcomes[e.Nonce] = e.Outcome
			continue
		}
		before, repeated := last[e.Key]
		last[e.Key] = e
		outcome, ended := outcomes[before.Nonce]
		switch {
		case !repeated, ended && outcome != offline.OK:
		case dead[before.Worker]:
			killed++
		default:
			alive++
		}
	}
	return killed, alive
}

// lapsed is how many claims lapsed although nobody had waited for an exit: on a machine with too much to do, a worker
// may renew too late.
func (b *bench) lapsed() (n int) {
	for _, job := range b.jobs {
		rows, err := pipeline.AllTasks(context.Background(), b.system.Backend.Store, job)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, row := range rows {
			history, err := pipeline.ReadHistory(context.Background(), b.system.Backend.Store, row.Ref)
			if err != nil {
				b.t.Fatal(err)
			}
			for _, r := range history.Records {
				if r.Ender == pipeline.ExpiredBy && strings.Contains(r.Failure.Cause, "its claim lapsed") {
					n++
				}
			}
		}
	}
	return n
}
