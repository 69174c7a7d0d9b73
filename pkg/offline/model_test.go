package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/pipeline"
)

func TestMain(m *testing.M) {
	if ledger := os.Getenv("HOLDFAST_TEST_DIE"); ledger != "" {
		_, _ = New(Config{Ledger: ledger, Worker: "victim"}).Complete(context.Background(), keyed("k", PoisonKill))
		os.Exit(0) // not reached: the poison kills this process
	}
	goleak.VerifyTestMain(m)
}

func keyed(key, shared string) pipeline.Request {
	return pipeline.Request{Key: pipeline.ReplyKey(key), Shared: shared, Prompt: "What is this?", Schema: []byte(`{"type":"object","properties":{"summary":{"type":"string"}}}`)}
}

func kindOf(err error) pipeline.Kind {
	var failed *pipeline.ModelError
	if errors.As(err, &failed) {
		return failed.Kind
	}
	return ""
}

func TestInfo(t *testing.T) {
	info := New(Config{Price: pipeline.Price{Input: 1, Output: 5}, PricedAs: "some model"}).Info()
	if info.ID() != "offline-rules-1@3" || !info.Free || info.PricedAs != "some model" || info.Price.Output != 5 || info.MaxOutput != 4096 {
		t.Errorf("got %+v", info)
	}
}

func TestLatencyIsHalfToOneAndAHalfOfThePaceByTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Config{Pace: time.Second, Clock: pipeline.NewRealClock()})
		took := map[string]time.Duration{}
		var sum time.Duration
		const n = 400
		for i := range n {
			key := fmt.Sprint("k", i)
			begin := time.Now()
			if _, err := m.Complete(t.Context(), keyed(key, "x")); err != nil {
				t.Fatal(err)
			}
			took[key] = time.Since(begin)
			sum += took[key]
			if took[key] < 500*time.Millisecond || took[key] > 1500*time.Millisecond {
				t.Errorf("%s took %v", key, took[key])
			}
		}
		if mean := sum / n; mean < 950*time.Millisecond || mean > 1050*time.Millisecond {
			t.Errorf("the mean is %v, want 1s", mean)
		}
		begin := time.Now()
		_, _ = m.Complete(t.Context(), keyed("k1", "x")) // it never fails here
		if again := time.Since(begin); again != took["k1"] {
			t.Errorf("the same key took %v, then %v", took["k1"], again)
		}
	})
}

func TestACancelledCallEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		m := New(Config{Pace: time.Hour, Clock: pipeline.NewRealClock(), Ledger: path})
		defer closed(t, m)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(pipeline.ErrCancelled) })
		begin := time.Now()
		_, err := m.Complete(ctx, keyed("k", "x"))
		if !errors.Is(err, pipeline.ErrCancelled) || time.Since(begin) != time.Second {
			t.Errorf("got %v after %v, want ErrCancelled after 1s", err, time.Since(begin))
		}
		if e := entriesOf(t, path); len(e) != 2 || e[1].Outcome != Dropped {
			t.Errorf("got %+v, want begin and a dropped end", e)
		}
	})
}

func closed(t *testing.T, m *Model) {
	t.Helper()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestHangWaitsForTheContext(t *testing.T) {
	for name, m := range map[string]*Model{
		"by a fault":        New(Config{Faults: Faults{Hang: 1}}),
		"by a poison in it": New(Config{}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, pipeline.ErrStalled)
				defer cancel()
				if _, err := m.Complete(ctx, keyed("k", "x "+PoisonHang)); !errors.Is(err, pipeline.ErrStalled) {
					t.Errorf("got %v, want ErrStalled", err)
				}
			})
		})
	}
}

func TestFaultsComeAtTheirRatesAndKinds(t *testing.T) {
	const n = 6000
	faults, err := ParseFaults("throttled=3%, quota=1%,unavailable=2%,ambiguous=1%,truncated=1%,malformed=2%,refused=1%,rejected=1%,invalid=1%,too_long=1%,crash=1%")
	if err != nil {
		t.Fatal(err)
	}
	kills := 0
	m := New(Config{Seed: 3, Faults: faults, Kill: func() { kills++ }, Worker: "w"})
	got := map[string]int{}
	for i := range n {
		r := keyed(fmt.Sprint(i), "It is a text.")
		response, err := m.Complete(t.Context(), r)
		switch kind := kindOf(err); {
		case errors.Is(err, errKilled):
		case err != nil:
			got[string(kind)]++
			var failed *pipeline.ModelError
			if errors.As(err, &failed); failed.Code == "" || failed.Cause == "" || !errors.Is(err, errOnCommand) {
				t.Fatalf("%s has no code or cause: %+v", kind, failed)
			}
		case response.Stop == pipeline.StopMaxTokens:
			got["truncated"]++
		case !json.Valid([]byte(response.Text)):
			got["malformed"]++
		}
	}
	got["crash"] = kills
	for fault, share := range faults {
		if want := share * n; math.Abs(float64(got[string(fault)])-want) > 5*math.Sqrt(want) {
			t.Errorf("%s: got %d, want about %v", fault, got[string(fault)], want)
		}
	}
}

func TestFaultsAreSeeded(t *testing.T) {
	run := func(seed uint64) string {
		m := New(Config{Seed: seed, Faults: Faults{Throttled: 0.3}, Kill: func() {}})
		var b strings.Builder
		for i := range 200 {
			_, err := m.Complete(t.Context(), keyed(fmt.Sprint(i%50), "x"))
			b.WriteString(string(kindOf(err)) + ",")
		}
		return b.String()
	}
	first := run(1)
	if again := run(1); again != first {
		t.Error("one seed gave two histories")
	}
	if run(2) == first {
		t.Error("two seeds gave one history")
	}
}

func TestACrashDoesNotComeBackInTheNextWorker(t *testing.T) {
	survived := false
	for i := range 20 {
		died := false
		m := New(Config{Faults: Faults{Crash: 0.5}, Worker: fmt.Sprint("w", i), Kill: func() { died = true }})
		_, _ = m.Complete(t.Context(), keyed("k", "x")) // only whether it died is asked
		survived = survived || !died
	}
	if !survived {
		t.Error("20 workers died of the same call at 50 %")
	}
}

func TestPoisonKillsTheWorkerAndLeavesBeginAlone(t *testing.T) {
	t.Run("by the injected kill", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		kills := 0
		m := New(Config{Ledger: path, Kill: func() { kills++ }})
		defer closed(t, m)
		_, err := m.Complete(t.Context(), keyed("k", "a "+PoisonKill+" b"))
		if e := entriesOf(t, path); kills != 1 || err == nil || len(e) != 1 || e[0].Event != Begin {
			t.Errorf("got %d kills, %v, %+v", kills, err, e)
		}
	})
	t.Run("by SIGKILL to the process itself", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		victim := exec.CommandContext(t.Context(), os.Args[0])
		victim.Env = append(os.Environ(), "HOLDFAST_TEST_DIE="+path)
		err := victim.Run()
		if e := entriesOf(t, path); err == nil || !strings.Contains(err.Error(), "killed") || len(e) != 1 || e[0].Worker != "victim" || e[0].Process == os.Getpid() {
			t.Errorf("got %v, %+v, want a killed process and one begin", err, e)
		}
	})
}

func TestParseFaults(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"throttled=3%":              "throttled=3%",
		" crash = 0.2% ,hang=1 % ":  "crash=0.2%,hang=1%",
		"throttled=3":               `faults: "throttled=3": the share must be 0% to 100%, for example throttled=3%`,
		"throttled":                 `faults: "throttled" must be a fault and its share, for example throttled=3%`,
		"throtled=3%":               `faults: "throtled=3%": there is no fault "throtled"; the faults are throttled, quota, unavailable, ambiguous, truncated, malformed, refused, rejected, invalid, too_long, crash, hang`,
		"quota=101%":                `faults: "quota=101%": the share must be 0% to 100%, for example quota=3%`,
		"quota=NaN%":                `faults: "quota=NaN%": the share must be 0% to 100%, for example quota=3%`,
		"quota=1%,quota=2%":         `faults: "quota" stands twice; keep one`,
		"quota=1%,":                 `faults: "" must be a fault and its share, for example throttled=3%`,
		"quota=60%,unavailable=50%": `faults: "quota=60%,unavailable=50%" is more than 100 % in all`,
	} {
		faults, err := ParseFaults(in)
		got := faults.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add("throttled=3%,crash=0.2%")
	f.Add("hang=1e1%")
	f.Fuzz(func(t *testing.T, in string) {
		faults, err := ParseFaults(in)
		if err != nil {
			return
		}
		again, err := ParseFaults(faults.String())
		if err != nil || again.String() != faults.String() {
			t.Errorf("%q is written as %q, which reads as %q, %v", in, faults, again, err)
		}
	})
}
