package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/pkg/pipeline"
)

// items is a run of a command on lines.
func (d *desk) items(want int, lines, command string, more ...string) outcome {
	d.Helper()
	args := append([]string{"run", d.doc("items.txt", lines), "--exec", command, "--out", d.out, "--json"}, more...)
	code, out, errOut := d.holdfast(args...)
	if code != want {
		d.Fatalf("run: exit code %d, want %d\n%s%s", code, want, out, errOut)
	}
	var o outcome
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		d.Fatalf("run --json printed %q: %v", out, err)
	}
	return o
}

// script puts a shell script on the desk. It is told the item as "$1", and keeps count in the file "ran".
func (d *desk) script(body string) string {
	return "sh " + d.doc("work.sh", fmt.Sprintf("echo \"$1\" >> '%s'\n%s\n", d.ran(), body)) + " {}"
}

func (d *desk) ran() string { return filepath.Join(d.dir, "ran") }

// times is how often the script was run on an item.
func (d *desk) times(item string) (n int) {
	d.Helper()
	body, err := os.ReadFile(d.ran())
	if err != nil && !os.IsNotExist(err) {
		d.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.TrimSpace(line) == item {
			n++
		}
	}
	return n
}

// given checks that an item was given up after three attempts of that kind.
func (d *desk) given(job pipeline.JobID, n int, kind pipeline.Kind) {
	d.Helper()
	s := d.system()
	row := d.task(s, job, pipeline.WorkTask(n))
	h, err := pipeline.ReadHistory(d.Context(), s.Backend.Store, row.Ref)
	d.must(err)
	counting := row.Counting(h.Records)
	if row.Status != pipeline.TaskAbandoned || len(counting) != 3 {
		d.Errorf("item %d is %s after %d attempts, want abandoned after 3", n, row.Status, len(counting))
	}
	for _, r := range counting {
		if r.Failure.Kind != kind || r.Failure.Cause == "" || !r.Counted {
			d.Errorf("item %d, attempt %d: %s (counted: %v), want %s", n, r.Attempt, r.Failure, r.Counted, kind)
		}
	}
}

func TestExec(t *testing.T) {
	t.Run("what works is answered, what does not has its reasons, and the same again runs nothing", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		command := d.script(`case "$1" in bad) echo "no $1 today" >&2; exit 1;; data) exit 65;; temp) exit 75;; esac; echo "done $1"`)
		lines := "one\n\nbad\ndata\ntemp\nit's \"two\" $HOME; `x`\n"
		o := d.items(exitPartial, lines, command, "--try-cost", "0.01")
		if c := o.Counts; c.Cells != 5 || c.Answered != 2 || c.Failed != 3 || c.NotAsked != 0 || o.Spend.Cost != (1+3+1+12+1)*pipeline.Dollar/100 {
			t.Errorf("got %+v, spend %s", c, o.Spend.Cost)
		}
		d.given(o.Job, 1, pipeline.Broken)
		d.given(o.Job, 3, pipeline.Unavailable)
		ran := map[string]int{"one": 1, "bad": 3, "data": 1, "temp": 12, "it's \"two\" $HOME; `x`": 1}
		check := func(when string) {
			t.Helper()
			for item, n := range ran {
				if d.times(item) != n {
					t.Errorf("%s: %q was run %d times, want %d", when, item, d.times(item), n)
				}
			}
		}
		check("the first run")
		d.says(d.does(exitCompleted, "why", string(o.Job), "1"), "item 1, line 3 of the file: bad", "the command exited with 1: no {} today", "no bad today", "abandoned")
		d.says(d.does(exitCompleted, "status", string(o.Job)), "items items.txt, handler exec@1", "2 abandoned")
		d.says(d.does(exitCompleted, "dead-letters"), "work#00001  bad ", "work#00003  temp ")
		d.says(d.does(exitCompleted, "jobs"), "exec@1: sh ")
		d.says(d.does(exitPartial, "run", d.doc("items.txt", lines), "--exec", command, "--try-cost", "0.01", "--out", d.out), "2 of 5 items answered, 3 missing")
		check("the same again")
		d.quiet(d.system())
		check("all messages seen")
	})
	t.Run("the next list runs only what is new", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		command := d.script("cat")
		d.items(exitCompleted, "one\ntwo\n", command)
		text := d.does(exitCompleted, "run", d.doc("next.txt", "two\nthree\n"), "--exec", command, "--out", d.out)
		d.says(text, "2 items, each the work of exec", "stored answers are used for 1 of them: at most 1 item left to run", "2 of 2 items answered", "1 item answered now, 1 by stored answers")
		if d.times("one") != 1 || d.times("two") != 1 || d.times("three") != 1 {
			t.Errorf("ran %d, %d, %d times, want once each", d.times("one"), d.times("two"), d.times("three"))
		}
	})
	t.Run("an item that kills its worker is given up after three, its neighbours are answered", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		o := d.items(exitPartial, "one\ntwo\npoison\nthree\nfour\n", d.script(`[ "$1" = poison ] && kill -9 $PPID; echo done`), "--workers", "2", "--concurrency", "4")
		if o.Counts.Answered != 4 || o.Killed != 3 || d.times("poison") != 3 {
			t.Errorf("got %+v, %d killed, poison ran %d times", o.Counts, o.Killed, d.times("poison"))
		}
		d.given(o.Job, 2, pipeline.Lost)
	})
	t.Run("what hangs is killed at its time, with all that it started, and given up after three", func(t *testing.T) {
		d := newDesk(t, swiftPolicy)
		pids := filepath.Join(d.dir, "pids")
		o := d.items(exitPartial, "one\nhangs\n", d.script(fmt.Sprintf(`[ "$1" = hangs ] && { trap "" TERM; sleep 1000 & echo $$ $! >> '%s'; wait; }; echo done`, pids)), "--try-timeout", "300ms")
		d.given(o.Job, 1, pipeline.TimedOut)
		body, err := os.ReadFile(pids)
		d.must(err)
		if fields := strings.Fields(string(body)); len(fields) != 6 || d.times("one") != 1 {
			t.Errorf("hung %d times, want 3", len(fields)/2)
		}
		d.gone(string(body))
	})
}

// gone waits until the processes that a text names have ended.
func (d *desk) gone(pids string) {
	d.Helper()
	for _, field := range strings.Fields(pids) {
		pid, err := strconv.Atoi(field)
		d.must(err)
		d.until(fmt.Sprintf("process %d has ended", pid), func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				return syscall.Kill(pid, 0) != nil
			}
			_, after, _ := strings.Cut(string(stat), ") ")
			return strings.HasPrefix(after, "Z")
		})
	}
}

// until looks again and again: other processes send no signal when they change.
func (d *desk) until(what string, holds func() bool) {
	d.Helper()
	clock := pipeline.NewRealClock()
	for end := clock.Mono() + time.Minute; !holds(); {
		if clock.Mono() > end {
			d.Fatalf("it never came to be that %s", what)
		}
		d.must(clock.Sleep(d.Context(), 10*time.Millisecond))
	}
}

func TestExecIsStopped(t *testing.T) {
	begin := func(t *testing.T) (d *desk, pids func() string) {
		d = newDesk(t, swiftPolicy)
		file := filepath.Join(d.dir, "pids")
		command := d.script(fmt.Sprintf(`[ "$(wc -l < '%s')" -gt 1 ] && { echo done; exit; }; trap "" TERM; sleep 1000 & echo $$ $! > '%s.tmp'; mv '%s.tmp' '%s'; wait`, d.ran(), file, file, file))
		d.does(exitCompleted, "submit", d.doc("items.txt", "one\n"), "--exec", command, "--start")
		return d, func() string {
			d.Helper()
			d.until("the command runs", func() bool { return exists(file) })
			body, err := os.ReadFile(file)
			d.must(err)
			return string(body)
		}
	}
	t.Run("a cancel kills what runs, and all that it started", func(t *testing.T) {
		d, pids := begin(t)
		d.starts("worker", "--allow-exec")
		running, job := pids(), d.job(d.system())
		d.does(exitCompleted, "cancel", string(job.ID))
		d.gone(running)
		d.does(exitCancelled, "watch", string(job.ID))
		if d.times("one") != 1 {
			t.Errorf("run %d times, want once", d.times("one"))
		}
	})
	t.Run("a worker that is killed with kill -9 leaves nothing running; the next one does the work", func(t *testing.T) {
		d, pids := begin(t)
		worker := d.starts("worker", "--allow-exec")
		running := pids()
		d.must(worker.Process.Kill())
		worker.ends(-1)
		d.gone(running)
		d.starts("worker", "--allow-exec")
		job := d.job(d.system())
		d.does(exitCompleted, "watch", string(job.ID))
		row := d.task(d.system(), job.ID, pipeline.WorkTask(0))
		if row.Generation != 2 || row.Attempts > 2 || d.times("one") != 2 {
			t.Errorf("generation %d, %d attempts, run %d times; want the second attempt to have done it", row.Generation, row.Attempts, d.times("one"))
		}
		d.says(d.does(exitCompleted, "why", string(job.ID), "0"), "lost")
	})
	t.Run("a worker that was not started for commands runs none, and uses up no attempt", func(t *testing.T) {
		d, _ := begin(t)
		s := d.system()
		job := d.job(s)
		d.starts("worker")
		const needs = "no worker that has exec@1 takes them"
		d.until("the status tells what is missing", func() bool {
			return strings.Contains(d.does(exitCompleted, "status", string(job.ID)), needs)
		})
		d.says(d.does(exitCompleted, "why", string(job.ID)), needs, "holdfast worker --allow-exec")
		if row := d.task(s, job.ID, pipeline.WorkTask(0)); row.Generation != 0 || row.Status != pipeline.TaskPending {
			t.Errorf("it is %s at generation %d, want it left for others", row.Status, row.Generation)
		}
		if d.times("one") != 0 {
			t.Error("it ran the command")
		}
	})
}

func TestExecIsRefused(t *testing.T) {
	d := newDesk(t, "")
	list := d.doc("items.txt", "one\ntwo\n")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"no shell reads", []string{"--exec", "cat {} | wc"}},
		{"left open", []string{"--exec", "echo 'x"}},
		{"a part of the program", []string{"--exec", "sh -c 'echo {}'"}},
		{"chosen by the text", []string{"--exec", "{} x"}},
		{"no-such-program", []string{"--exec", "no-such-program {}"}},
		{"needs a program", []string{"--exec", " "}},
		{"choose one", []string{"--exec", "cat", "--handler", "x"}},
		{"registers no handler", []string{"--handler", "x"}},
		{"about a model's calls", []string{"--exec", "cat", "--fail", "throttled=1%"}},
		{"about a model's calls", []string{"--exec", "cat", "--profile", "compact"}},
		{"--try-cost", []string{"--exec", "cat", "--try-cost", "x"}},
		{"priced by their tokens", []string{"--try-cost", "0.1"}},
		{"stall_timeout", []string{"--exec", "cat", "--try-timeout", "1h"}},
	} {
		for _, command := range []string{"run", "submit"} {
			code, out, errOut := d.holdfast(append([]string{command, list}, c.args...)...)
			if code == exitCompleted || !strings.Contains(oneLine(out+errOut), c.says) {
				t.Errorf("%s %q: exit code %d, want it refused for %q\n%s%s", command, c.args, code, c.says, out, errOut)
			}
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"sha256sum {}":                  {"sha256sum", "{}"},
		"  a\t b \n":                    {"a", "b"},
		`a 'b c' "d e"`:                 {"a", "b c", "d e"},
		`a'b'"c" '' ""`:                 {"abc", "", ""},
		`a\ b \' \"`:                    {"a b", "'", `"`},
		`sh -c 'a | b > "$1"; c' sh {}`: {"sh", "-c", `a | b > "$1"; c`, "sh", "{}"},
		`"a \" b \n \\ \$x"`:            {`a " b \n \ $x`},
		`'a \n'`:                        {`a \n`},
		"":                              nil,
		"größe --x={}":                  {"größe", "--x={}"},
	} {
		got, err := words(text)
		if err != nil || strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
		again, err := words(shown(got))
		if err != nil || strings.Join(again, "|") != strings.Join(want, "|") {
			t.Errorf("%s: shown as %s, that reads as %q, %v", text, shown(got), again, err)
		}
	}
	for _, text := range []string{"a | b", "a > b", "a; b", "a && b", "'a", `"a`, `a\`} {
		if got, err := words(text); err == nil {
			t.Errorf("%s: got %q, want it refused", text, got)
		}
	}
}

func TestHandlerNames(t *testing.T) {
	p := Program{Functions: map[string]pipeline.Function{"a@1": nil, "a@2": nil, "b@1": nil}}
	for name, want := range map[string]string{"a@1": "a@1", "b": "b@1", "b@1": "b@1", "a": "", "c": "", "b@2": ""} {
		if got, err := p.handler(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}
