package pipeline

import "testing"

func TestJobRuns(t *testing.T) {
	type runs struct{ split, work, finalize, ended bool }
	for status, want := range map[JobStatus]runs{
		JobPlanned:    {split: true, finalize: true},
		JobRunning:    {split: true, work: true, finalize: true},
		JobPaused:     {finalize: true},
		JobCancelling: {finalize: true},
		JobCompleted:  {ended: true}, JobPartial: {ended: true}, JobFailed: {ended: true}, JobCancelled: {ended: true},
	} {
		j := Job{Status: status}
		if got := (runs{j.Runs(TaskSplit), j.Runs(TaskWork), j.Runs(TaskFinalize), status.Ended()}); got != want {
			t.Errorf("%s: got %+v, want %+v", status, got, want)
		}
	}
}

func TestJobExpired(t *testing.T) {
	for name, test := range map[string]struct {
		j    Job
		want bool
	}{
		"past its deadline":   {Job{Status: JobRunning, Deadline: noon - 1}, true},
		"at its deadline":     {Job{Status: JobRunning, Deadline: noon}, false},
		"without a deadline":  {Job{Status: JobRunning}, false},
		"paused":              {Job{Status: JobPaused, Deadline: noon - 1}, false},
		"cancelling, past it": {Job{Status: JobCancelling, Deadline: noon - 1}, true},
	} {
		if got := test.j.Expired(noon); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestNewJobID(t *testing.T) {
	id := NewJobID("tenant", "source", "definition", "model", 1)
	if again := NewJobID("tenant", "source", "definition", "model", 1); again != id {
		t.Errorf("got %s, want %s", again, id)
	}
	seen := map[JobID]bool{id: true}
	for _, other := range []JobID{
		NewJobID("t", "source", "definition", "model", 1), NewJobID("tenant", "s", "definition", "model", 1),
		NewJobID("tenant", "source", "d", "model", 1), NewJobID("tenant", "source", "definition", "m", 1),
		NewJobID("tenant", "source", "definition", "model", 2), NewJobID("tenants", "ource", "definition", "model", 1),
	} {
		if seen[other] {
			t.Errorf("%s is the id of two submissions", other)
		}
		seen[other] = true
	}
}

func TestMoney(t *testing.T) {
	for m, want := range map[Money]string{0: "$0", Dollar: "$1.00", 1234 * Dollar / 100: "$12.34", Dollar / 1000: "$0.001000", -Dollar: "$-1.00"} {
		if got := m.String(); got != want {
			t.Errorf("%d: got %s, want %s", int64(m), got, want)
		}
	}
	if got := (Price{Input: 3, Output: 15}).Of(10, 2); got != 60 {
		t.Errorf("got %d, want 60", int64(got))
	}
}
