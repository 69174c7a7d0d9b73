package spec

import "fmt"

// JobSeen is the job's row as somebody read it, as far as writes of it are conditional on it.
type JobSeen struct {
	Epoch  int8
	Status JobStatus
	Pause  int8 // pauses still to come: another pause has another paused_at, and after it the deadline is another
}

// Resume is a copy of a resume that is still in the network.
type Resume struct {
	On   bool
	Seen JobSeen
}

// seen is a reading of the job.
func (s *JobWorld) seen() JobSeen { return JobSeen{s.Epoch, s.Status, s.Left.Pauses} }

// same is memory.sameJob: the job is as it was read.
func (m *Job) same(s *JobWorld, seen JobSeen) bool {
	if m.breaks(PauseByStatus) {
		seen.Pause = s.Left.Pauses
	}
	return s.seen() == seen
}

// forget takes out what will be refused: a job that is not as it was read is never again so.
func (s *JobWorld) forget() {
	now := s.seen()
	for i := range s.Finalizers {
		if f := &s.Finalizers[i]; f.Part > 6 || (f.Part > 1 && f.Job != now) {
			f.Job = JobSeen{Epoch: -1}
		}
	}
	if s.Opener.Part > 0 && s.Opener.JobSeen != now {
		s.Opener.Pause = -1
	}
	if s.Copy.On && s.Copy.Seen != now {
		s.Copy = Resume{}
	}
}

// people is submit.Submitter.Pause, Resume and Cancel, the deadline, triage.Triage.Redrive, and rows deleted.
func (x *jobSteps) people() {
	s, left := x.s, x.s.Left
	if left.Pauses > 0 && s.Status == Running {
		n := *s
		n.Left.Pauses--
		n.Status = Paused
		x.step(n, Fault, Says{Text: "the job is paused"})
	}
	if s.Status == Paused {
		n := *s
		n.Status = Running
		x.step(n, Person, Says{Text: "the job is resumed"})
		if left.LateCopies > 0 && !s.Copy.On {
			n.Left.LateCopies--
			n.Copy = Resume{On: true, Seen: s.seen()}
			x.step(n, Fault, Says{Text: "the job is resumed, and a copy of the write is still in the network"})
			n.Status = Paused
			x.step(n, Fault, Says{Text: "a resume of the job is delayed in the network"})
		}
	}
	x.resumedLate()
	if left.Cancels > 0 && (s.Status == Running || s.Status == Paused) {
		n := *s
		n.Left.Cancels--
		n.Status = Cancelling
		x.step(n, Fault, Says{Text: "the job is cancelled"})
	}
	if left.Deadlines > 0 && !s.Over && s.Status == Running {
		n := *s
		n.Left.Deadlines--
		n.Over = true
		who := Fault
		if x.m.Unserved {
			who = Time
		}
		x.step(n, who, Says{Text: "the job's deadline passes"})
	}
	if s.Over && !s.Late && !s.Status.Ended() && s.Status != Paused {
		n := *s
		n.Late = true
		x.step(n, Time, Says{Text: "it is long after the deadline"})
	}
	if left.Redrives > 0 {
		x.redrives()
	}
	if left.Vanishes > 0 {
		x.vanishes()
	}
}

// resumedLate is the copy of a resume that arrives at last: refused unless it is the pause that it was to end.
func (x *jobSteps) resumedLate() {
	s := x.s
	if !s.Copy.On {
		return
	}
	n := *s
	n.Copy = Resume{}
	if !x.m.same(s, s.Copy.Seen) {
		x.step(n, Fault, Says{Text: "a late copy of the resume arrives, and is refused"})
		return
	}
	n.Status = Running
	step := x.step(n, Fault, Says{Text: "a late copy of the resume lands"})
	if s.Copy.Seen != s.seen() {
		step.Bad = "P9 a pause that was accepted is ended by a copy of an earlier resume"
	}
}

func (x *jobSteps) redrives() {
	s, m := x.s, x.m
	if (s.Status == Cancelling || s.Status == JobCancelled) && !m.breaks(RedriveAfterCancel) {
		return
	}
	if s.Status == Completed || (s.Split.over() && s.Split.Status != Done) {
		return
	}
	for c, row := range s.Work {
		if !row.over() || row.Status == Done {
			continue
		}
		n := *s
		n.Left.Redrives--
		n.Work[c].Status = Pending
		if s.Status != Paused {
			n.Status = Running
		}
		n.Epoch++
		n.Named = false
		if !m.breaks(OneFinalize) {
			n.Final, n.FinalOwner, n.FinalAtt = JobRow{}, 0, 0
		}
		if !m.breaks(RedriveKeepsDeadline) {
			n.Over, n.Late = false, false
		}
		x.step(n, Fault, Says{Text: "a person redrives chunk {a}: epoch {b}", A: int8(c), B: n.Epoch})
	}
}

func (x *jobSteps) vanishes() {
	s := x.s
	for c, row := range s.Work {
		if row.Put && !s.Status.Ended() {
			n := *s
			n.Left.Vanishes--
			n.Work[c], n.Lost = JobRow{}, true
			x.step(n, Fault, Says{Text: "the row of chunk {a} is deleted", A: int8(c)})
		}
	}
	if s.Split.Put && !s.Status.Ended() {
		n := *s
		n.Left.Vanishes--
		n.Split, n.Lost = JobRow{}, true
		x.step(n, Fault, Says{Text: "the row of the split is deleted"})
	}
	if s.Manifest != NoManifest && !s.Status.Ended() {
		n := *s
		n.Left.Vanishes--
		n.Manifest, n.Lost = NoManifest, true
		x.step(n, Fault, Says{Text: "the manifest is deleted"})
	}
}

// Check says which promise a step from before to s breaks.
func (m *Job) Check(before, s *JobWorld) string {
	if before.Status.Ended() && s.Status != before.Status && s.Epoch == before.Epoch {
		return fmt.Sprintf("P5 a job that was %s is %s", before.Status, s.Status)
	}
	cancelled := before.Status == Cancelling || before.Status == JobCancelled
	if cancelled && (s.Status == Running || s.Status == Completed || s.Status == Partial) {
		return fmt.Sprintf("P9 a cancel that was accepted is taken back: the job is %s", s.Status)
	}
	given := s.Late || before.Late || s.Final.Status == Abandoned // a job that is failed whatever is still open
	if !s.Status.Ended() || (s.Status == JobFailed && given) || s.Lost {
		return ""
	}
	result := s.Result
	if m.breaks(SharedResult) {
		result = s.Shared
	}
	for c, row := range append([]JobRow{s.Split}, s.Work[:]...) {
		switch {
		case row.Put && !row.over():
			return fmt.Sprintf("P1 the job is %s, and row %d is %s", s.Status, c-1, row)
		case s.Status == Completed && row.Status != Done:
			return fmt.Sprintf("P1 the job is completed, and row %d is %s", c-1, row)
		case s.Named && row.Put && result[c] != row.Status:
			return fmt.Sprintf("P1 row %d is %s, and the result says %s", c-1, row, result[c])
		}
	}
	return ""
}

// JobBreak is a rule of a job taken away.
type JobBreak int8

// The rules, each by what is the case without it.
const (
	NothingOfJob JobBreak = iota
	FinalizeCancelled
	SplitNotClosed
	FailedAtOnce
	EndedJobsLeft
	OneFinalize
	RedriveAfterCancel
	SharedResult
	RedriveKeepsDeadline
	EndUnconditional
	MissingRowsLeft
	ManifestReplaced
	ArrivalsCounted
	PauseByStatus
)

// JobVariant is a model of a job with one rule taken away. It must fail.
type JobVariant struct {
	Name  string
	Says  string
	Break JobBreak
	JobBounds
	Promise string
}

// BrokenJobs are the variants of the model of one job.
func BrokenJobs() []JobVariant {
	return []JobVariant{
		{"finalize-cancelled", "a finalize is not ended with its job's rows", FinalizeCancelled, JobBounds{Cancels: 1}, "P9"},
		{"split-not-closed", "a split that ended otherwise than done is closed", SplitNotClosed, JobBounds{}, "P7"},
		{"failed-at-once", "a job is over only when its rows are", FailedAtOnce, JobBounds{}, "P1"},
		{"ended-jobs-left", "open rows of an ended job are closed", EndedJobsLeft, JobBounds{Deadlines: 1, Unserved: true}, "P10"},
		{"one-finalize", "each epoch has a finalize of its own", OneFinalize, JobBounds{Redrives: 1}, "P7"},
		{"redrive-after-cancel", "a cancelled job is not redriven", RedriveAfterCancel, JobBounds{Redrives: 1, Cancels: 1}, "P9"},
		{"shared-result", "a result has a key of its own, and the job's row names it", SharedResult, JobBounds{Redrives: 1, Crashes: 1}, "P1"},
		{"redrive-keeps-deadline", "a redrive sets a new deadline", RedriveKeepsDeadline, JobBounds{Redrives: 1, Deadlines: 1}, "P5"},
		{"end-unconditional", "a job is ended only as its finalizer read it", EndUnconditional, JobBounds{Cancels: 1}, "P9"},
		{"missing-rows-left", "rows of a split that are gone are put as cancelled", MissingRowsLeft, JobBounds{Vanishes: 1}, "P7"},
		{"manifest-replaced", "the first manifest stored stands", ManifestReplaced, JobBounds{}, "P1"},
		{"arrivals-counted", "that all have ended is read from the rows, never counted", ArrivalsCounted, JobBounds{Doubled: 1}, "P1"},
		{"pause-by-status", "a job that was paused, resumed and paused again is not as it was seen", PauseByStatus, JobBounds{Pauses: 2, LateCopies: 1}, "P9"},
	}
}

// NamedJob is a world of one job with a name.
type NamedJob struct {
	Name string
	JobBounds
}

// SmallJobs are the worlds of a job that every test run searches whole.
func SmallJobs() []NamedJob {
	return []NamedJob{
		{"crash, cancel, redrive", JobBounds{Crashes: 1, Cancels: 1, Redrives: 1}},
		{"deadline, redrive", JobBounds{Deadlines: 1, Redrives: 1}},
		{"pause, deadline", JobBounds{Pauses: 1, Deadlines: 1}},
		{"pause, cancel, crash", JobBounds{Pauses: 1, Cancels: 1, Crashes: 1}},
		{"two pauses, a late copy of a resume", JobBounds{Pauses: 2, LateCopies: 1}},
		{"two redrives", JobBounds{Redrives: 2}},
		{"rows or manifest that vanish, crash", JobBounds{Vanishes: 1, Crashes: 1}},
		{"rows or manifest that vanish, cancel", JobBounds{Vanishes: 1, Cancels: 1}},
		{"chunks that nobody serves", JobBounds{Unserved: true, Deadlines: 2, Redrives: 1}},
	}
}

// LargeJobs are those of make spec.
func LargeJobs() []NamedJob {
	return []NamedJob{
		{"crash, deadline", JobBounds{Crashes: 1, Deadlines: 1}},
		{"two crashes, cancel, redrive", JobBounds{Crashes: 2, Cancels: 1, Redrives: 1}},
		{"pause, cancel, deadline, redrive", JobBounds{Pauses: 1, Cancels: 1, Deadlines: 1, Redrives: 1}},
		{"two crashes, two redrives, a pause", JobBounds{Crashes: 2, Redrives: 2, Pauses: 1}},
		{"rows or manifest that vanish, crash, cancel, redrive", JobBounds{Vanishes: 1, Crashes: 1, Cancels: 1, Redrives: 1}},
	}
}
