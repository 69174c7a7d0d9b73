package spec

import "fmt"

// JobStatus is where a job stands.
type JobStatus int8

// The statuses of a job.
const (
	Running JobStatus = iota
	Paused
	Cancelling
	Completed
	Partial
	JobCancelled
	JobFailed
)

func (s JobStatus) String() string {
	return [...]string{"running", "paused", "cancelling", "completed", "partial", "cancelled", "failed"}[s]
}

// Ended says that nothing changes the status but a redrive.
func (s JobStatus) Ended() bool { return s >= Completed }

// chunks is how many the document has.
const chunks = 2

// JobBounds are how often each fault may happen in the world of one job. A crash is a worker that dies, or one that is
// frozen until its claim has expired and then goes on.
type JobBounds struct {
	Crashes, Pauses, Cancels, Deadlines, Redrives, Vanishes, Doubled int8
	LateCopies                                                       int8 // of a resume
	Unserved                                                         bool // no worker takes the chunks
}

// Job is the model of one job: its split, two chunks, its finalize, and what people do. Claims are taken for granted
// ([Task] is about those), but for the workers that lost theirs and do not know it: they are kept, and go on.
type Job struct {
	JobBounds
	Broken JobBreak
}

func (m *Job) breaks(b JobBreak) bool { return m.Broken == b }

// Manifest is what stands under the manifest's key.
type Manifest int8

// A closed one names no chunks.
const (
	NoManifest Manifest = iota
	Listed
	Closed
)

// JobRow is a task's row.
type JobRow struct {
	Put    bool
	Status Status
}

// status is that of the row, and no status at all if there is none.
func (r JobRow) status() Status {
	if !r.Put {
		return -1
	}
	return r.Status
}

func (r JobRow) over() bool { return r.Put && r.Status.Ended() }

// Splitter is an attempt on the split; it may have lost its claim.
type Splitter struct {
	On   bool
	Part int8 // 0 = the manifest, then the rows, then its end
}

// Finalizer is an attempt on a finalize; it may have lost its claim.
type Finalizer struct {
	Part  int8 // 0 = none, 1 = has claimed, 2 to 4 = reads rows, 5 = reads the manifest, 6 = has stored the cells, 7 = the job is ended
	Epoch int8 // of its row
	Job   JobSeen
	Seen  [chunks + 1]Status
}

// Opener is a call of MaybeFinalize: it acts on what it read.
type Opener struct {
	Part int8 // 0 = none, 1 = has read the job, 2 = closes, 3 = puts the finalize
	JobSeen
	Over bool
}

// JobWorld is a state of the model of one job.
type JobWorld struct {
	Status     JobStatus
	Epoch      int8
	Over, Late bool // the deadline has passed; and so has the time that a finalize has after it
	Manifest   Manifest
	Split      JobRow
	SplitOwner int8 // of its claim: which splitter + 1
	SplitAtt   int8
	Work       [chunks]JobRow
	Splitters  [2]Splitter

	Final      JobRow // the finalize of the epoch
	FinalOwner int8
	FinalAtt   int8
	Finalizers [2]Finalizer
	Opener     Opener
	Copy       Resume

	Result   [chunks + 1]Status // what the job's row points at
	Shared   [chunks + 1]Status // of a broken finalize: one slot for all
	Named    bool               // the job's row names a result
	Lost     bool               // something was deleted
	Arrivals int8               // of a broken job: how many endings it was told of
	Left     JobBounds
}

// Start is submit.Submitter.Submit: job and split.
func (m *Job) Start() JobWorld {
	return JobWorld{Split: JobRow{Put: true}, Left: m.JobBounds}
}

// Fair says that actors are told apart.
func (m *Job) Fair() bool { return true }

// Over is the job ended, and every row of it.
func (m *Job) Over(s *JobWorld) bool {
	if !s.Status.Ended() || (s.Split.Put && !s.Split.over()) {
		return false
	}
	for _, row := range s.Work {
		if row.Put && !row.over() {
			return false
		}
	}
	return true
}

// Show is the job.
func (m *Job) Show(s *JobWorld) string {
	text := fmt.Sprintf("the job is %s, epoch %d, late %v; split %s", s.Status, s.Epoch, s.Over, s.Split)
	for n, row := range s.Work {
		text += fmt.Sprintf(", chunk %d %s", n, row)
	}
	return text + ", finalize " + s.Final.String()
}

func (r JobRow) String() string {
	if !r.Put {
		return "absent"
	}
	return r.Status.String()
}

// The actors.
const (
	bySplitter = Actors0     // two
	byChunk    = Actors0 + 2 // two
	byFinal    = Actors0 + 4 // two
	byReaper   = Actors0 + 6
	byOpener   = Actors0 + 7
)

// jobSteps gathers the steps from one state.
type jobSteps struct {
	m  *Job
	s  *JobWorld
	to []Step[JobWorld]
}

func (x *jobSteps) step(w JobWorld, who Actor, says Says) *Step[JobWorld] {
	x.to = append(x.to, Step[JobWorld]{To: w, Who: who, Says: says})
	return &x.to[len(x.to)-1]
}

// Next is every step of every actor.
func (m *Job) Next(s *JobWorld, to []Step[JobWorld]) []Step[JobWorld] {
	x := &jobSteps{m: m, s: s, to: to}
	for i := range s.Splitters {
		x.splitter(i)
	}
	x.claimSplit()
	for n := range s.Work {
		x.chunk(n)
	}
	x.reaper()
	x.opener()
	x.claimFinal()
	for i := range s.Finalizers {
		x.finalizer(i)
	}
	x.people()
	for i := range x.to {
		m.tidy(&x.to[i].To)
	}
	return x.to
}

// tidy takes out of a state what can have no effect any more, so that equal states are equal.
func (m *Job) tidy(s *JobWorld) {
	if !m.breaks(ArrivalsCounted) {
		s.Arrivals = 0
	}
	if !m.breaks(SharedResult) {
		s.Shared = [chunks + 1]Status{}
	}
	if !s.Named {
		s.Result = [chunks + 1]Status{}
	}
	if s.Split.over() || !s.Split.Put {
		s.SplitAtt, s.SplitOwner = 0, 0
	}
	for i := range s.Splitters {
		sp := &s.Splitters[i]
		if sp.On && sp.Part > chunks && s.SplitOwner != int8(i)+1 {
			*sp = Splitter{} // it has nothing left that it may do
		}
	}
	if s.Final.over() {
		s.FinalAtt, s.FinalOwner = 0, 0
	}
	if s.Status.Ended() && s.Left.Redrives == 0 {
		for i := range s.Finalizers { // they find the job ended
			f := &s.Finalizers[i]
			if f.Part > 1 && f.Part < 6 {
				f.Part, f.Seen, f.Job = 1, [chunks + 1]Status{}, JobSeen{}
			}
		}
		s.Opener = Opener{}
	}
	if m.Broken == NothingOfJob {
		s.forget()
	}
}

// stops is reap.standing.why for all rows but the finalize.
func (s *JobWorld) stops() bool {
	return s.Status == Cancelling || s.Status.Ended() || (s.Over && s.Status != Paused)
}

// allEnded is finalize.AllEnded.
func (s *JobWorld) allEnded() bool {
	if !s.Split.over() || s.Manifest == NoManifest {
		return false
	}
	for _, row := range s.Work {
		if s.Manifest == Listed && !row.over() {
			return false
		}
	}
	return true
}

// claimSplit is a claim of the split, by whichever splitter is free.
func (x *jobSteps) claimSplit() {
	s := x.s
	if !s.Split.Put || s.Split.Status != Pending {
		return
	}
	for i := range s.Splitters {
		if s.Splitters[i].On {
			continue
		}
		n := *s
		n.Splitters[i] = Splitter{On: true}
		n.Split.Status, n.SplitOwner = Claimed, int8(i)+1
		n.SplitAtt++
		x.step(n, bySplitter+Actor(i), Says{Text: "splitter {who} claims the split, attempt {a}", Who: int8(i), A: n.SplitAtt})
		return
	}
}

// giveUpSplit is pipeline.Next after a failure or a loss: two attempts are allowed.
func giveUpSplit(n *JobWorld) {
	n.SplitOwner = 0
	n.Split.Status = Pending
	if n.SplitAtt >= 2 {
		n.Split.Status = Abandoned
	}
}

// splitter is split.Splitter.Handle, step by step, and how its attempt may end.
func (x *jobSteps) splitter(i int) {
	s, who := x.s, bySplitter+Actor(i)
	sp := s.Splitters[i]
	if !sp.On {
		return
	}
	own := s.Split.Put && s.Split.Status == Claimed && s.SplitOwner == int8(i)+1
	n := *s
	says := Says{Who: int8(i), B: yes(own)}
	bad := ""
	switch {
	case sp.Part == 0 && s.Manifest == Closed:
		n.Splitters[i] = Splitter{}
		if own {
			n.Split.Status, n.SplitOwner = Cancelled, 0
		}
		says.Text = "splitter {who} finds that the split was closed"
	case sp.Part == 0:
		n.Manifest, n.Splitters[i].Part = Listed, 1
		says.Text = "splitter {who} follows the manifest, its own or the first (its claim stands: {b})"
	case sp.Part <= chunks:
		row := &n.Work[sp.Part-1]
		n.Splitters[i].Part++
		says.Text, says.A = "splitter {who} puts chunk {a} (its claim stands: {b})", sp.Part-1
		if !row.Put {
			*row = JobRow{Put: true}
			if s.Status.Ended() && !s.Lost && s.Status != JobFailed {
				bad = "P1 a row is born into a job that has ended"
			}
		}
	default:
		n.Splitters[i] = Splitter{}
		if own {
			n.Split.Status, n.SplitOwner = Done, 0
			n.Arrivals++
		}
		says.Text = "splitter {who} ends (its claim stands: {b})"
	}
	x.step(n, who, says).Bad = bad
	if own {
		x.splitterLoses(i)
	}
	if s.Left.Crashes > 0 {
		n := *s
		n.Left.Crashes--
		n.Splitters[i] = Splitter{}
		if own {
			giveUpSplit(&n)
		}
		x.step(n, Fault, Says{Text: "splitter {who} is killed, and its claim expires", Who: int8(i)})
	}
}

// splitterLoses is what may happen to a claim on the split.
func (x *jobSteps) splitterLoses(i int) {
	s, who := x.s, bySplitter+Actor(i)
	n := *s
	giveUpSplit(&n)
	if s.Left.Crashes > 0 {
		frozen := n
		frozen.Left.Crashes--
		x.step(frozen, Fault, Says{Text: "the claim of splitter {who} expires, and it goes on: the split is {row}", Who: int8(i), Row: n.Split.Status})
	}
	n.Splitters[i] = Splitter{}
	x.step(n, who, Says{Text: "splitter {who} fails: the split is {row}", Who: int8(i), Row: n.Split.Status})
	if s.stops() {
		n := *s
		n.Splitters[i] = Splitter{}
		n.SplitOwner, n.Split.Status = 0, Cancelled
		x.step(n, who, Says{Text: "splitter {who} sees the cancel or the deadline: cancelled", Who: int8(i)})
	}
}

// chunk is a worker on a chunk.
func (x *jobSteps) chunk(c int) {
	row := x.s.Work[c]
	if !row.Put || x.m.Unserved {
		return
	}
	set := func(to Status, text string) {
		n := *x.s
		n.Work[c].Status = to
		if to.Ended() {
			n.Arrivals++
		}
		x.step(n, byChunk+Actor(c), Says{Text: text, A: int8(c)})
		if to.Ended() && x.s.Left.Doubled > 0 {
			n.Left.Doubled--
			n.Arrivals++
			x.step(n, Fault, Says{Text: text + ", and is told of twice", A: int8(c)})
		}
	}
	switch row.Status {
	case Pending:
		set(Claimed, "a worker claims chunk {a}")
	case Claimed:
		set(Done, "chunk {a} is done")
		set(Abandoned, "chunk {a} is abandoned")
		if x.s.Status == Paused {
			set(Parked, "the worker of chunk {a} sees the pause: parked")
		}
		if x.s.stops() {
			set(Cancelled, "the worker of chunk {a} sees the cancel or the deadline: cancelled")
		}
	}
}
