package spec

import "fmt"

// Bounds are how large a world of one task is, and how often each fault may happen in it.
type Bounds struct {
	Workers, Stages           int8
	MaxAttempts, MaxDeferrals int8
	MaxReceives               int8 // 0 = the queue never gives a message up
	MaxRings                  int8 // rings are counted no further
	TTL, MaxSkew              int8 // ticks
	Skew                      [MaxWorkers]int8
	TryCap                    int8 // tries the task may be allowed, and what a redrive adds; 0 = tries are not looked at
	Answers                   int8 // answers that may be new; 0 = answers are not looked at
	Outcomes                  uint // what attempts may end with: bits of Outcome; OK is always possible
	Symmetric                 bool // workers are interchangeable: fewer states, but fairness cannot be asked for
	Safety                    bool // fairness is not asked for
	Deep                      int8 // ticks for which a lapsed claim is still told from one that lapsed earlier

	Crashes, ReaperCrashes, LostAnswers, LateCopies int8
	Doubled, LostBells                              int8
	Pauses, Cancels, Deadlines, Redrives, Vanishes  int8
	Deploys                                         int8 // of a policy that allows one attempt less
}

// MaxWorkers is how many workers a world may have.
const MaxWorkers = 3

// bells is how many messages of the row there may be at once; one more would tell nobody anything new.
const bells = 2

// ends is a set of outcomes.
func ends(outcomes ...Outcome) (set uint) {
	for _, o := range outcomes {
		set |= 1 << o
	}
	return set
}

// Task is the model of one task.
type Task struct {
	Bounds
	Broken Break
}

func (m *Task) breaks(b Break) bool { return m.Broken == b }

// World is a state of the model of one task. It consists of bytes, so that it can be hashed as it lies in memory.
type World struct {
	Row    Row
	Bells  [bells]Bell
	Worker [MaxWorkers]Worker
	Reaper Sweep
	Late   Write // a copy of a write that is still in the network
	Paused bool  // the job
	Cancel bool  // the job is cancelling
	Over   bool  // the job's deadline is over
	Fewer  bool  // one attempt less is allowed than before
	Ghost  Ghost
	Left   Faults
}

// Bell is a message.
type Bell struct {
	At   int8 // 0 = none, 1 = visible, 2 = delivered, or put off
	Who  int8 // worker + 1 that has it
	Old  bool // the row has been rung again since
	Recv int8
}

// Ghost is what the world knows and nobody in it: for the checks.
type Ghost struct {
	Counted    int8 // attempts since the last accepted stage that were somebody's fault
	Lost       int8 // losses since
	Sent       int8 // tries
	Answers    int8
	Parks      int8
	Redriven   int8
	ByOwner    bool // the present attempt's record of its own worker stands
	ByExpirer  bool // and that of whoever expires it
	LetterSent bool // a dead letter of the present generation
}

// Faults are those that may still happen.
type Faults struct {
	Crashes, ReaperCrashes, LostAnswers, LateCopies int8
	Doubled, LostBells                              int8
	Pauses, Cancels, Deadlines, Redrives, Vanishes  int8
	Deploys                                         int8
}

// limit is how many attempts are allowed now.
func (m *Task) limit(s *World) int8 {
	if s.Fewer {
		return m.MaxAttempts - 1
	}
	return m.MaxAttempts
}

// Start is a row that was put and rung: split.Splitter.put and ring.
func (m *Task) Start() World {
	w := World{Row: Row{Ready: true, MaxTries: m.TryCap}}
	w.Bells[0] = Bell{At: 1}
	w.Left = Faults{
		m.Crashes, m.ReaperCrashes, m.LostAnswers, m.LateCopies, m.Doubled, m.LostBells,
		m.Pauses, m.Cancels, m.Deadlines, m.Redrives, m.Vanishes, m.Deploys,
	}
	return w
}

// Over is the row ended, its dead letter sent, and nothing in the queue any more.
func (m *Task) Over(s *World) bool {
	return !s.Row.Listed() && (m.Workers == 0 || s.Bells == [bells]Bell{})
}

// Fair says that workers are told apart, and that a fair run has to end.
func (m *Task) Fair() bool { return !m.Symmetric && !m.Safety }

// Show is the row.
func (m *Task) Show(s *World) string {
	r := &s.Row
	if r.Gone {
		return "the row is gone"
	}
	return fmt.Sprintf("the row is %s, generation %d, attempts %d, deferrals %d, losses %d, accepted %d, allowed %d; job paused %v, cancelling %v, late %v",
		r.Status, r.Gen, r.Att, r.Def, r.Los, r.Acc, r.Allowed, s.Paused, s.Cancel, s.Over)
}

// Next is every step of every actor.
func (m *Task) Next(s *World, to []Step[World]) []Step[World] {
	x := &expansion{m: m, s: s, to: to}
	for i := range m.Workers {
		x.worker(i)
	}
	x.reaper()
	x.time()
	x.queue()
	x.late()
	x.people()
	for i := range x.to {
		m.tidy(&x.to[i].To)
	}
	return x.to
}

// expansion gathers the steps from one state.
type expansion struct {
	m  *Task
	s  *World
	to []Step[World]
}

// step adds one.
func (x *expansion) step(w World, who Actor, says Says) *Step[World] {
	x.to = append(x.to, Step[World]{To: w, Who: who, Says: says})
	return &x.to[len(x.to)-1]
}

// write does a write on w's row, with what follows for those who hold readings of it.
func (x *expansion) write(w *World, wr Write) bool {
	if !x.m.Apply(&w.Row, wr) {
		return false
	}
	if wr.setsDue() {
		w.unlikeRead()
	}
	if wr.Op == OpRing {
		for i := range w.Bells {
			w.Bells[i].Old = w.Bells[i].At != 0
		}
		w.Reaper.Seen.Rung = w.Reaper.Does == RingingIt
		for i := range w.Worker {
			at := w.Worker[i].At
			w.Worker[i].Seen.Rung = at == RingSending || at == LossSending
		}
	}
	return true
}

// unlikeRead notes that due_at is another than it was when it was read.
func (s *World) unlikeRead() {
	s.Reaper.Seen.Same, s.Late.Same = false, false
	for i := range s.Worker {
		s.Worker[i].Seen.Same = false
	}
}

// send puts a message into the queue. A third one would tell nobody anything: an old one makes way, or it is dropped.
func (s *World) send(old bool) {
	for i := range s.Bells {
		if s.Bells[i].At == 0 {
			s.Bells[i] = Bell{At: 1, Old: old}
			return
		}
	}
	for i := range s.Bells {
		if s.Bells[i].Old && s.Bells[i].Who == 0 {
			s.Bells[i] = Bell{At: 1, Old: old}
			return
		}
	}
}

// stops says that rows of the job are to be ended: pipeline.Job.Expired, or cancelling. A paused job has no deadline.
func (s *World) stops() bool { return s.Cancel || (s.Over && !s.Paused) }

// freshClaim is a claim id that nothing in the world names.
func (s *World) freshClaim() int8 {
	for id := int8(1); ; id++ {
		used := s.Row.Claim == id || s.Row.EndedBy == id || s.Late.Claim == id
		for i := range s.Worker {
			used = used || s.Worker[i].Claim == id
		}
		if !used {
			return id
		}
	}
}
