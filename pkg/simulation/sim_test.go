package simulation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/pkg/simulation"
)

const (
	round = 1000   // worlds are run between two looks at the state file
	long  = 20_000 // of the end states of a run of more only hashes are kept
)

// progress is what the state file of a long run holds.
type progress struct {
	Next   uint64             `json:"next"` // the first seed that was not run
	Done   int                `json:"done"`
	Report *simulation.Report `json:"report"`
}

// TestSim is `make sim`: worlds by the seed in several processes, then every fault forced at every point.
func TestSim(t *testing.T) {
	if os.Getenv("SIM") == "" {
		t.Skip("make sim")
	}
	begin := time.Now()
	p := resumed(t)
	for p.Done < *worlds && (*budget == 0 || time.Since(begin) < *budget*6/10) {
		n := min(round, *worlds-p.Done)
		report := spread(t, "worlds", p.Next, n, left(begin, *budget*6/10))
		report.Ends = counted(report.Ends, *worlds > long)
		p.Report.Add(report)
		if report.Stopped { // the state stays at the last whole round: what is left out of this one is run next time
			break
		}
		p.Next, p.Done = p.Next+uint64(n), p.Done+n
		keep(t, p)
		if len(p.Report.Broken) > 0 {
			break
		}
		if *worlds > long {
			fmt.Printf("%d of %d worlds, next seed %d\n", p.Done, *worlds, p.Next)
		}
	}
	p.Report.Stopped = p.Report.Stopped || p.Done < *worlds && len(p.Report.Broken) == 0
	fmt.Printf("worlds from seed %d on:\n", *first)
	p.Report.Print(os.Stdout)
	judge(t, p.Report)
	if t.Failed() {
		return
	}
	forced := spread(t, "forced", *first, 0, left(begin, *budget))
	fmt.Println("every fault forced once at every call of a world where it may happen:")
	forced.Print(os.Stdout)
	never := forced.PrintWrites(os.Stdout, p.Report.AtWrites())
	switch {
	case len(forced.Broken) > 0:
		t.Errorf("%d worlds with a forced fault broke a promise", len(forced.Broken))
	case len(never) > 0 && forced.Stopped:
		t.Errorf("the time given was too short: %d faults were not forced at a write that worlds make", len(never))
	case len(never) > 0:
		t.Errorf("these faults were not forced at a write that worlds make: %v", never)
	case len(forced.Never()) > 0:
		t.Errorf("these faults were never forced: %v", forced.Never())
	case forced.Worlds < forced.Points && !forced.Stopped:
		t.Errorf("%d of %d points were tried", forced.Worlds, forced.Points)
	}
	if !t.Failed() {
		fmt.Println("no world broke a promise (P1 to P10: pkg/simulation/audit); those that were disturbed count, only their seeds may not replay")
	}
	fmt.Printf("all of it took %v\n", time.Since(begin).Round(time.Second))
}

// left is how much of the time given is left; 0 if none was given.
func left(begin time.Time, given time.Duration) time.Duration {
	if given == 0 {
		return 0
	}
	return max(time.Second, given-time.Since(begin))
}

// judge fails the run for broken promises, and for what it did not try.
func judge(t *testing.T, r *simulation.Report) {
	t.Helper()
	if len(r.Broken) > 0 {
		t.Fatalf("%d worlds broke a promise", len(r.Broken))
	}
	if never := r.Never(); len(never) > 0 {
		t.Errorf("these faults never happened: %v", never)
	}
	if left := r.Unchecked(); len(left) > 0 {
		t.Errorf("these promises were never checked: %v", left)
	}
}

// counted keeps of the end states of a long run their hashes alone: its state file would hold little else.
func counted(ends simulation.Tally, long bool) simulation.Tally {
	if !long {
		return ends
	}
	short := simulation.Tally{}
	for end, n := range ends {
		short[strconv.FormatUint(hash(end), 36)] += n
	}
	return short
}

func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func resumed(t *testing.T) progress {
	p := progress{Next: *first, Report: simulation.NewReport()}
	if *state == "" {
		return p
	}
	body, err := os.ReadFile(*state)
	if errors.Is(err, fs.ErrNotExist) {
		return p
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%s: %v; delete it to begin anew", *state, err)
	}
	fmt.Printf("going on from seed %d (%s; delete it to begin anew)\n", p.Next, *state)
	return p
}

func keep(t *testing.T, p progress) {
	if *state == "" {
		return
	}
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(*state), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*state, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

// spread runs worlds in as many processes as there are processors, each of which uses one.
func spread(t *testing.T, what string, first uint64, n int, within time.Duration) *simulation.Report {
	t.Helper()
	processes := max(1, runtime.NumCPU())
	sum := simulation.NewReport()
	var mu sync.Mutex
	var group sync.WaitGroup
	dir := t.TempDir()
	for i := range processes {
		group.Go(func() {
			file := filepath.Join(dir, fmt.Sprintf("%s-%d", what, i))
			cmd := exec.Command(os.Args[0], "-test.run", "^TestShard$", "-shard", what, "-state", file, "-first", fmt.Sprint(first+uint64(i)),
				"-worlds", fmt.Sprint(n), "-stride", fmt.Sprint(processes), "-budget", within.String(), "-test.timeout", "0")
			out, err := cmd.CombinedOutput()
			body, read := os.ReadFile(file)
			report := simulation.NewReport()
			mu.Lock()
			defer mu.Unlock()
			if err != nil || read != nil || json.Unmarshal(body, report) != nil {
				t.Errorf("%s: %v\n%s", strings.Join(cmd.Args[1:], " "), err, out)
				return
			}
			sum.Add(report)
		})
	}
	group.Wait()
	return sum
}

// maxStories is how many broken worlds a process tells of before it stops.
const maxStories = 2

// TestShard is one process's part of TestSim.
func TestShard(t *testing.T) {
	if *shard == "" {
		t.Skip("a part of TestSim")
	}
	begin := time.Now()
	report := simulation.NewReport()
	run := func(spec simulation.Spec) bool {
		if !until(begin) {
			report.Stopped = true
			return false
		}
		out := simulation.Run(t, spec)
		report.Count(out)
		if out.Broken != nil {
			report.Broken = append(report.Broken, told(t, out))
		}
		return len(report.Broken) < maxStories
	}
	switch *shard {
	case "worlds":
		begins := *first
		for n := 0; n < *worlds; n += *stride {
			if n+int((begins-*first)%uint64(*stride)) >= *worlds || !run(simulation.NewSpec(begins+uint64(n))) {
				break
			}
		}
	case "forced":
		report.Points = forced(t, int(*first-firstSeed), *stride, run)
	default:
		t.Fatalf("there is no shard %q", *shard)
	}
	report.Took = simulation.Used()
	body, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*state, body, 0o600); err != nil {
		t.Fatal(err)
	}
}
