//go:build deployed

package deployed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// previous is the version before: the first commit of which a deployment was tried. When the format of rows changes, it
// is the last one with the format before.
const previous = "4545da17a3d83f2af38e1a6bd1e15d13266962cb"

// errNoHistory says that there is no history to build an earlier version from.
var errNoHistory = fmt.Errorf("commit %s is not here: in a clone without it, git fetch --unshallow", previous)

// workdBefore is workd of the version before, built from what git has of it.
var workdBefore = sync.OnceValues(func() (path string, err error) {
	if exec.Command("git", "-C", root, "cat-file", "-e", previous+"^{commit}").Run() != nil {
		return "", errNoHistory
	}
	folder := filepath.Join(built, "before")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	source, err := exec.Command("git", "-C", root, "archive", previous, "go.mod", "go.sum", "pkg", "functions").Output()
	if err != nil {
		return "", fmt.Errorf("git archive: %w", err)
	}
	unpack := exec.Command("tar", "-x", "-C", folder)
	unpack.Stdin = bytes.NewReader(source)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar: %w: %s", err, out)
	}
	path = filepath.Join(built, "workd-before")
	return path, compile(folder, path, "./functions/workd")
})

// next are the programs of a version whose rows have the next format: this one, with another number.
var next = sync.OnceValues(func() (of struct{ workd, holdfast string }, err error) {
	file, err := filepath.Abs(filepath.Join(root, "pkg/pipeline/job.go"))
	if err != nil {
		return of, err
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return of, err
	}
	changed := regexp.MustCompile(`(?m)^const FormatVersion = 1$`).ReplaceAll(source, []byte("const FormatVersion = 2"))
	if bytes.Equal(source, changed) {
		return of, fmt.Errorf("%s has no format number that is understood here", file)
	}
	if err := os.WriteFile(filepath.Join(built, "job.go"), changed, 0o600); err != nil {
		return of, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: filepath.Join(built, "job.go")}})
	if err != nil {
		return of, err
	}
	overlaid := filepath.Join(built, "overlay.json")
	if err := os.WriteFile(overlaid, overlay, 0o600); err != nil {
		return of, err
	}
	of.workd, of.holdfast = filepath.Join(built, "workd-next"), filepath.Join(built, "holdfast-next")
	if err := compile(root, of.workd, "-overlay", overlaid, "./functions/workd"); err != nil {
		return of, err
	}
	return of, compile(root, of.holdfast, "-overlay", overlaid, "./pkg/cmd/holdfast")
})

func compile(folder, to string, args ...string) error {
	// As the functions are built: what both need was compiled for them, and the next time all of it.
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-o", to}, args...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(args, " "), err, tail(out))
	}
	return nil
}

// fewReceives lets a message be dead-lettered by SQS soon.
const fewReceives = "max_attempts: 1\nmax_receives: 2\n"

// What a newer version wrote is refused loudly and left alone by everything that is deployed, until its message is a dead
// letter; and whoever knows it goes on with it beside them.
func TestRowsOfANewerVersionAreLeftAloneByWhatIsDeployed(t *testing.T) {
	b := newBench(t)
	newer, err := next()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	policy := policyFile(t, fewReceives)
	b.deploy("policy="+policy, "offline-pace=2s")
	b.hurry()
	job := strings.TrimSpace(b.saysBy(newer.holdfast, completed, "submit", b.document(10_000), "--profile", "compact", "--fresh", "--start", "--policy", policy))
	of := func() []row {
		return b.rows("pk = :job AND #format > :known", map[string]any{":job": text("job#" + job), ":known": number(1)})
	}
	written := of()
	if len(written) < 2 {
		t.Fatalf("got %v, want a job and its split of the next format", written)
	}
	const left = "it is left alone, update what runs this"
	b.until("control says why it does not work on the row", func() bool { return strings.Contains(b.log("control", began), left) })
	b.until("reap says why it does not ring the row", func() bool { return strings.Contains(b.log("reap", began), left) })
	for _, args := range [][]string{{"status", job}, {"cancel", job}, {"pause", job}} {
		if said := b.says(failed, args...); !strings.Contains(said, "update what runs this") {
			t.Errorf("holdfast %v: got %s", args, said)
		}
	}
	var refused struct{ Error string }
	if status := b.asks(tenant, "GET /jobs/{job}", "/jobs/"+job, nil, &refused); status != 409 || !strings.Contains(refused.Error, "update what runs this") {
		t.Errorf("the api: got %d, %s", status, refused.Error)
	}
	b.until("its message is a dead letter, after all its receives, and hides no other", func() bool {
		said := b.says(completed, "dead-letters")
		return strings.Contains(said, job) && strings.Contains(said, "a newer version of Holdfast wrote it")
	})
	if now := of(); fmt.Sprint(now) != fmt.Sprint(written) {
		t.Errorf("the rows changed:\n%v\n%v", written, now)
	}
	workd := b.workd(newer.workd, "HOLDFAST_POLICY="+swift)
	b.saysBy(newer.holdfast, completed, "watch", job)
	workd.stop()
	b.worked("workd of the next version", workd.said())
}

// Functions and workd of this version and workd of the version before, on one job: each does a part of it.
func TestAReviewByBothAtOnceAndByTheVersionBefore(t *testing.T) {
	b := newBench(t)
	began := time.Now()
	b.deploy("workers=both", "image=local", "offline-pace=500ms")
	env := []string{"HOLDFAST_IN_FLIGHT=8", "HOLDFAST_CLAIMS=1", "HOLDFAST_OFFLINE_PACE=1s"} // each leaves some to the others
	now := b.workd("", env...)
	before, err := workdBefore()
	if err != nil && err != errNoHistory {
		t.Fatal(err)
	}
	var then *process
	if err == nil {
		then = b.workd(before, env...)
	}
	b.whole(b.reviews(completed, b.document(45_000)))
	now.stop()
	b.worked("workd of this version", now.said())
	b.worked("the functions of this version", b.log("work", began))
	if then == nil {
		t.Skipf("this version alone was tried: %v", err)
	}
	then.stop()
	b.worked("workd of the version before", then.said())
}
