package cli

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// released checks that no claim is left, and that a task which was given back was not counted against.
func released(d *desk, s *wiring.System, job pipeline.JobID) {
	d.Helper()
	deferred := 0
	for _, row := range d.rows(s, job) {
		if row.Status == pipeline.TaskClaimed || row.Losses > 0 {
			d.Errorf("%s is %s with %d losses: its claim was not released", row.ID, row.Status, row.Losses)
		}
		if row.Deferrals > 0 && row.Attempts > 1 {
			d.Errorf("%s has %d attempts: a shutdown was counted", row.ID, row.Attempts)
		}
		deferred += row.Deferrals
	}
	if deferred == 0 {
		d.Error("nothing was given back: it was stopped too late to show anything")
	}
}

// once checks that no reply that was stored after those lines of the ledger was asked again.
func (d *desk) once(s *wiring.System) {
	d.Helper()
	stored := map[pipeline.ReplyKey]pipeline.Instant{}
	for key, reply := range storedReplies(d, s) {
		stored[key] = reply.At
	}
	if r := offline.Repeats(d.entries(), stored); r.Stored > 0 {
		d.Errorf("%d stored answers were asked again: %v", r.Stored, r.StoredKeys)
	}
}

func TestSignals(t *testing.T) {
	const slow = "100ms"
	t.Run("Ctrl-C drains: claims are released, and the same run goes on", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		doc := d.doc("contract.txt", contract(0, 9000))
		d.token("line-20-begin", say)
		run := d.starts(d.runArgs(doc, "--workers", "2", "--pace", slow, "--concurrency", "4")...)
		d.hears("line-20-begin")
		d.must(run.Process.Signal(os.Interrupt))
		said := run.ends(exitInterrupted)
		s := d.system()
		job := d.job(s)
		d.says(said, "Stopped: claims are released, every answer is kept", "holdfast status "+string(job.ID))
		released(d, s, job.ID)
		if n := len(storedReplies(d, s)); n < d.asked() {
			t.Errorf("%d of %d questions have a stored reply: those in flight were dropped", n, d.asked())
		}
		again := d.runs(exitCompleted, doc)
		if again.Job != job.ID || again.Again != 0 || d.asked() != 56 {
			t.Errorf("job %s, %d calls asked in all, %d of them stored before; want %s, 56 and none", again.Job, d.asked(), again.Again, job.ID)
		}
	})
	t.Run("SIGTERM drains a worker", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		_, out, _ := d.holdfast("submit", d.doc("contract.txt", contract(0, 9000)), "--profile", "compact", "--start")
		job := pipeline.JobID(strings.TrimSpace(out))
		d.token("line-20-begin", say)
		worker := d.starts("worker", "--pace", slow, "--concurrency", "4", "--ledger", d.ledger)
		d.hears("line-20-begin")
		d.must(worker.Process.Signal(syscall.SIGTERM))
		worker.ends(exitCompleted)
		s := d.system()
		released(d, s, job)
		d.does(exitCompleted, "worker", "--idle", "--ledger", d.ledger)
		d.does(exitCompleted, "watch", string(job))
		d.once(s)
	})
	t.Run("when the supervisor is killed its workers drain, and a new run completes", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		doc := d.doc("contract.txt", contract(0, 9000))
		d.token("line-20-begin", say)
		run := d.starts(d.runArgs(doc, "--workers", "2", "--pace", slow, "--concurrency", "4")...)
		d.hears("line-20-begin")
		d.must(run.Process.Kill())
		for range 2 {
			if line := d.hears("exit"); !strings.HasPrefix(line, "exit 0 worker-") {
				t.Errorf("got %q, want both workers to end by themselves", line)
			}
		}
		s := d.system()
		job := d.job(s)
		released(d, s, job.ID)
		if again := d.runs(exitCompleted, doc); again.Job != job.ID || again.Again != 0 || d.asked() != 56 {
			t.Errorf("job %s, %d calls asked in all, %d of them stored before; want %s, 56 and none", again.Job, d.asked(), again.Again, job.ID)
		}
	})
}

// stopped waits until the process has been stopped by SIGSTOP.
func stopped(d *desk, cmd *exec.Cmd) {
	d.Helper()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid != cmd.Process.Pid || !status.Stopped() {
			d.Fatalf("wait for the stop of %d: %v, %v", cmd.Process.Pid, status, err)
		}
		return
	}
}

// unlocked lets a process that was stopped while it wrote go on a little: SQLite lets nobody else write until that is
// done, and this is no test of SQLite. No other store has such a lock.
func unlocked(d *desk, cmd *exec.Cmd) {
	d.Helper()
	if d.backend.isAWS() {
		return
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(d.store, "holdfast.db")+"?_pragma=busy_timeout(500)&_txlock=immediate")
	d.must(err)
	defer db.Close()
	for range 100 {
		tx, err := db.BeginTx(d.Context(), nil)
		if err == nil {
			d.must(tx.Rollback())
			return
		}
		d.must(cmd.Process.Signal(syscall.SIGCONT))
		d.must(cmd.Process.Signal(syscall.SIGSTOP))
		stopped(d, cmd)
	}
	d.Fatal("the stopped worker never left the store")
}

func TestCaseD03FrozenWorkerComesBackTooLate(t *testing.T) {
	d := newDesk(t, swiftPolicy)
	_, out, _ := d.holdfast("submit", d.doc("contract.txt", contract(0, 9000)), "--profile", "compact", "--start")
	job := pipeline.JobID(strings.TrimSpace(out))
	d.token("line-20-answered", stop)
	zombie := d.starts("worker", "--idle", "--pace", "100ms", "--concurrency", "4", "--ledger", d.ledger)
	stopped(d, zombie.Cmd) // with calls in flight, and one answer that it has not stored
	unlocked(d, zombie.Cmd)
	s := d.system()
	held := map[pipeline.TaskID]int64{}
	for _, row := range d.rows(s, job) {
		if row.Status == pipeline.TaskClaimed {
			held[row.ID] = row.Generation
		}
	}
	if len(held) == 0 {
		t.Fatal("it held no claim when it was frozen")
	}
	d.must(os.RemoveAll(d.kills)) // nothing more happens on the way
	d.must(os.Mkdir(d.kills, 0o700))
	d.does(exitCompleted, "worker", "--idle", "--ledger", d.ledger) // waits until the claims have lapsed
	ended, err := s.Backend.Store.Job(t.Context(), job)
	d.must(err)
	if ended.Status != pipeline.JobCompleted {
		t.Fatalf("the job is %s, want completed without the frozen worker", ended.Status)
	}
	before := d.rows(s, job)
	asked := d.asked()

	d.must(zombie.Process.Signal(syscall.SIGCONT))
	zombie.ends(exitCompleted)

	t.Run("it asked nothing more", func(t *testing.T) {
		if now := d.asked(); now != asked {
			t.Errorf("%d calls were asked after it woke up", now-asked)
		}
	})
	t.Run("nothing that it wrote was accepted", func(t *testing.T) {
		after := d.rows(s, job)
		for i, row := range after {
			if was := before[i]; row.Generation != was.Generation || row.Status != was.Status || row.EndedBy != was.EndedBy || len(row.Bodies) != len(was.Bodies) {
				t.Errorf("%s was %s at generation %d and is %s at %d", row.ID, was.Status, was.Generation, row.Status, row.Generation)
			}
			for stage := 1; stage <= row.Accepted; stage++ {
				if row.Body(stage) != before[i].Body(stage) {
					t.Errorf("stage %d of %s is accepted from generation %d, and was from %d", stage, row.ID, row.Body(stage), before[i].Body(stage))
				}
			}
			if frozen, was := held[row.ID]; was && row.Generation <= frozen {
				t.Errorf("%s is at generation %d, want a later one than the frozen %d", row.ID, row.Generation, frozen)
			}
		}
		now, err := s.Backend.Store.Job(t.Context(), job)
		d.must(err)
		if now != ended {
			t.Errorf("the job changed: %+v, and was %+v", now, ended)
		}
	})
	t.Run("why tells of the lost claim, and whose writes came too late", func(t *testing.T) {
		for id := range held {
			d.says(d.does(exitCompleted, "why", string(job), string(id)), "lost -> pending")
		}
		d.says(zombie.err.String(), "the row is")
	})
	d.once(s)
}
