package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func exec(command ...string) Definition {
	d := LinesOf(ExecHandler)
	d.Command = command
	return d
}

func TestHandlerDefinitions(t *testing.T) {
	good := map[string]Definition{
		"a function":                        LinesOf("thumb@1"),
		"a command":                         exec("sha256sum", "{}"),
		"a command that reads":              exec("wc", "-c"),
		"a shell that gets the text safely": exec("sh", "-c", `wc -c "$1"`, "sh", "{}"),
		"what looks like a shell's flag":    exec("gcc", "-c", "{}"),
	}
	for name, d := range good {
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	edit := func(d Definition, edit func(*Definition)) Definition {
		edit(&d)
		return d
	}
	bad := []struct {
		d    Definition
		says string
	}{
		{LinesOf("thumb"), "version"},
		{edit(LinesOf("thumb@1"), func(d *Definition) { d.Handler = "@1" }), "handler"},
		{edit(LinesOf("thumb@1"), func(d *Definition) { d.Stages = append(d.Stages, d.Stages[0]) }), "stages"},
		{edit(LinesOf("thumb@1"), func(d *Definition) { d.Stages[0].Calls = append(d.Stages[0].Calls, Call{ID: "b"}) }), "stages"},
		{edit(LinesOf("thumb@1"), func(d *Definition) { d.TryCost = -1 }), "try_cost"},
		{edit(LinesOf("thumb@1"), func(d *Definition) { d.TryTimeout = -1 }), "try_timeout"},
		{edit(LinesOf("thumb@1"), func(d *Definition) { d.Command = []string{"x"} }), "command"},
		{edit(LinesOf("thumb@1"), func(d *Definition) { d.Chunking.MaxChunks = 0 }), "max_chunks"},
		{edit(LinesOf("thumb@1"), func(d *Definition) { d.Handler = "" }), "prompt"},
		{exec(), "needs a program"},
		{exec(""), "needs a program"},
		{exec("{}"), "chosen by the text"},
		{exec("/bin/{}", "x"), "chosen by the text"},
		{exec("sh", "-c", "wc -c {}"), "a part of the program"},
		{exec("env", "A=b", "python3", "-c", "print('{}')"), "a part of the program"},
		{exec("perl", "-ne", "{}"), "a part of the program"},
		{exec("/bin/bash", "-ec", "echo '{}'"), "a part of the program"},
	}
	for _, c := range bad {
		if err := c.d.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %v: got %v, want it refused for %q", c.d.Handler, c.d.Command, err, c.says)
		}
	}
}

func TestWhatMakesAnotherDefinition(t *testing.T) {
	base := exec("wc", "{}")
	for name, edit := range map[string]func(*Definition){
		"command": func(d *Definition) { d.Command = []string{"wc", "-c", "{}"} },
		"folder":  func(d *Definition) { d.Dir = "/tmp" },
		"price":   func(d *Definition) { d.TryCost = 1 },
		"time":    func(d *Definition) { d.TryTimeout = time.Second },
	} {
		other := base
		edit(&other)
		if other.Key() == base.Key() {
			t.Errorf("another %s is the same definition", name)
		}
		decoded, err := DecodeDefinition(other.Encode())
		if err != nil || decoded.Key() != other.Key() {
			t.Errorf("%s: read back as another: %v", name, err)
		}
	}
}

func TestTryTimeout(t *testing.T) {
	p, d := DefaultPolicy(), exec("true")
	if got := d.TryTime(p); got != p.CallTimeout {
		t.Errorf("got %v, want the policy's %v", got, p.CallTimeout)
	}
	for timeout, ok := range map[time.Duration]bool{0: true, time.Second: true, p.StallTimeout - 1: true, p.StallTimeout: false, time.Hour: false} {
		d.TryTimeout = timeout
		if err := p.CheckTryTimeout(d); (err == nil) != ok {
			t.Errorf("%v: got %v, want it allowed: %v", timeout, err, ok)
		}
	}
	p.StallTimeout = time.Hour
	d.TryTimeout = p.AttemptTimeout - p.RetryWait
	if err := p.CheckTryTimeout(d); err == nil {
		t.Error("a try that cannot end within its attempt was allowed")
	}
}

func TestFunctionFailures(t *testing.T) {
	cause := errors.New("the cause")
	for _, c := range []struct {
		err   error
		kind  Kind
		after time.Duration
	}{
		{GiveUp(cause), Invalid, 0},
		{TryAgain(cause), Unavailable, 0},
		{ComeLater(cause, time.Minute), Throttled, time.Minute},
		{cause, Broken, 0},
		{fmt.Errorf("wrapped: %w", GiveUp(cause)), Invalid, 0},
	} {
		f := FunctionFailure(c.err)
		if f.Kind != c.kind || f.RetryAfter != c.after || !strings.Contains(f.Cause, "the cause") || !errors.Is(f, cause) {
			t.Errorf("%v: got %+v, want %s after %v", c.err, f, c.kind, c.after)
		}
	}
	switch {
	case !Invalid.CellFails(), !Unavailable.Retryable(), !Throttled.Deferred(), EndingOf(Fail(Broken, "x"), 0).Outcome != FailedNow:
		t.Error("the kinds do not do what the functions promise")
	}
}

func TestTriesThatRanAreNotFree(t *testing.T) {
	var r Record
	r.Add(Try{Failure: Fail(Unavailable, "a model that is down")}, Try{Failure: Fail(Unavailable, "a command that ran"), Ran: true}, Try{})
	if r.Charged != 2 || r.Tries != 3 {
		t.Errorf("got %d of %d charged, want 2 of 3", r.Charged, r.Tries)
	}
}
