// Package audit watches a world of package simulation and says which promise it broke: an independent model of what
// should have happened, beside what did.
//
// It sees every write of a row with the row before and after it, every try of a call, every message and every reservation.
// It may decide that a promise was broken. It may not use the rules that the program decides by: not pipeline.Next and
// what belongs to it, not the conditions of a store. What it expects is written down here once more, from the design.
package audit

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"holdfast/pkg/pipeline"
)

// Store is what the auditor reads, past everybody's ports: the raw rows.
type Store interface {
	pipeline.Store
	pipeline.Blobs
}

// Config is what an auditor needs.
type Config struct {
	Store      Store
	Definition pipeline.Definition
	Now        func() pipeline.Instant // true time
	Shared     bool                    // the model has a quota, and calls wait for their turn
	Punctual   bool                    // calls take no time but that of their faults: then nobody may be late
}

// Violation is a broken promise.
type Violation struct {
	Promise string // "P2"
	Ref     string // the row, job or call that it is about
	Says    string
	Rule    string // the same for whatever breaks the promise in the same way
}

func (v *Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Promise, v.Ref, v.Says) }

// Auditor is the model of one world. Its methods are called by one goroutine at a time, but for those that lock: the tries
// that one cancel aborts end together, and persons' commands beside them.
type Auditor struct {
	mu       sync.Mutex
	cfg      Config
	ctx      context.Context
	broken   *Violation
	checked  map[string]int
	restored bool // a table was put back: what the auditor remembers of before proves nothing any more

	rows     map[pipeline.Ref]*row
	order    []pipeline.Ref
	jobs     map[pipeline.JobID]*job
	workers  map[string]*worker
	replies  map[pipeline.ReplyKey]*reply
	claimIDs map[string]pipeline.Ref
	letters  map[pipeline.Ref]int
	sent     map[message]int
	bells    map[bell]int
	unsaved  map[saving]string
	failed   pipeline.Instant // when the model last failed a call, or its answer was lost
	step     int              // counts what was seen, so that before and after can be told within a moment
}

// New is an auditor of an empty world.
func New(cfg Config) *Auditor {
	return &Auditor{
		cfg: cfg, ctx: context.Background(), checked: map[string]int{}, rows: map[pipeline.Ref]*row{}, jobs: map[pipeline.JobID]*job{},
		workers: map[string]*worker{}, replies: map[pipeline.ReplyKey]*reply{}, claimIDs: map[string]pipeline.Ref{},
		letters: map[pipeline.Ref]int{}, sent: map[message]int{}, bells: map[bell]int{}, unsaved: map[saving]string{},
	}
}

// row is what the auditor remembers of a task's row.
type row struct {
	pipeline.Task
	claims    []claim
	rings     []pipeline.Instant  // since the row last became pending
	accepted  map[acceptance]bool // every stage that was ever accepted, by generation
	charged   int                 // tries that were sent and not free, of the task's life
	pending   int                 // tries that were asked for and did not come back
	pendingAt pipeline.Instant    // when it became pending
}

type acceptance struct {
	stage      int
	generation int64
}

// claim is one claim of a row.
type claim struct {
	id         string
	by         string
	generation int64
	at         pipeline.Instant // true time
	kept       pipeline.Instant // true time of the last claim or renewal that landed
	step       int
	ended      string         // the op that ended it
	tries      map[string]int // that were sent, by call
	rung       bool           // by its own worker, when that was asked to stop
	allowed    int            // tries of the task's life when it began
	free       int            // tries that came back and cost nothing
	unsettled  map[string]pipeline.Kind
	refused    pipeline.Instant // when an end under it was refused, though the row was its own
	quota      pipeline.Instant // until then the model has no quota
	others     bool             // money ran short while others held some
	back       int              // tries that came back
	charged    int              // of those, and not free
	cost       pipeline.Money
}

// worker is what the auditor remembers of a process.
type worker struct {
	dead    bool
	drained pipeline.Instant // when it was asked to stop
	frozen  pipeline.Instant // until then it was
	trouble []pipeline.Instant
	late    bool                      // a write of its landed late, some time
	looked  map[pipeline.ReplyKey]int // step at which it last read that a reply is stored
}

func (a *Auditor) worker(name string) *worker {
	w := a.workers[name]
	if w == nil {
		w = &worker{looked: map[pipeline.ReplyKey]int{}}
		a.workers[name] = w
	}
	return w
}

// check counts that a promise was looked at, and remembers the first that was broken.
func (a *Auditor) check(promise, ref string, kept bool, format string, args ...any) bool {
	a.checked[promise]++
	if !kept && a.broken == nil {
		a.broken = &Violation{Promise: promise, Ref: ref, Rule: promise + ": " + format, Says: fmt.Sprintf(format, args...)}
	}
	return kept
}

// Broken is the first promise that was broken; nil if none was.
func (a *Auditor) Broken() *Violation { return a.broken }

// Checked is how often each promise was looked at.
func (a *Auditor) Checked() map[string]int { return maps.Clone(a.checked) }

// Died tells that a process was killed.
func (a *Auditor) Died(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.worker(name).dead = true
}

// Drained tells that a worker was asked to stop.
func (a *Auditor) Drained(name string, at pipeline.Instant) { a.worker(name).drained = at }

// Frozen tells that a process sees and does nothing until then.
func (a *Auditor) Frozen(name string, until pipeline.Instant) { a.worker(name).frozen = until }

// Trouble tells that a call of a process went wrong; late, that its write lands later.
func (a *Auditor) Trouble(name string, at pipeline.Instant, late bool) {
	w := a.worker(name)
	w.trouble = append(w.trouble, at)
	w.late = w.late || late
}

// Stuck says that the world did not come to an end.
func (a *Auditor) Stuck(why string) {
	for _, ref := range a.order {
		r := a.rows[ref]
		a.check("P4", ref.String(), r.Status != pipeline.TaskAbandoned || r.Buried, "abandoned %s, and no dead letter was sent: %s", why, r.Reason)
		if !r.Status.Ended() {
			a.check("P10", ref.String(), false, "stuck %s: it is %s, generation %d, attempts %d, deferrals %d, due %s, ready %s: %s",
				why, r.Status, r.Generation, r.Attempts, r.Deferrals, r.DueAt, r.ReadyAt, r.Reason)
		}
	}
	for id, j := range a.jobs {
		if !j.Status.Ended() {
			a.check("P10", string(id), false, "stuck %s: the job is %s", why, j.Status)
		}
	}
	a.check("P7", "the world", false, "it goes on for ever %s: messages or letters are left, or somebody never stops", why)
}

// Restored tells that an older table was put back. Rows and jobs are taken as they stand: they began anew. From here on
// these promises can still hold, and are checked: every job and row ends, within its time (P1, P7, P10); nothing is
// missing without a reason (P1, P4); writes are fenced, ends are final and attempts counted among what happens from now
// on (P2, P5, P6). What cannot hold: that no answer is asked again (P8) and no more is spent than was told (P3), since
// what was answered, allowed and spent after the copy was made is forgotten; that generations never go back; and that a
// worker which held a claim before holds the one that the table shows.
func (a *Auditor) Restored() {
	a.restored = true
	for _, ref := range a.order {
		delete(a.rows, ref)
	}
	a.order = a.order[:0]
	clear(a.claimIDs)
	clear(a.bells)
	for id := range a.jobs {
		now, err := a.cfg.Store.Job(a.ctx, id)
		if err != nil {
			delete(a.jobs, id) // it was submitted later: its person submits again
			continue
		}
		*a.jobs[id] = job{Job: now, ends: map[int64]int{}, feed: map[string]said{}, groups: map[group]bool{}, left: map[pipeline.JobStatus]pipeline.Instant{}, raises: map[raise]bool{}}
		rows, err := pipeline.AllTasks(a.ctx, a.cfg.Store, id)
		if err != nil {
			continue
		}
		for _, r := range rows {
			a.adopt(r)
		}
	}
}

// adopt takes a row as it stands.
func (a *Auditor) adopt(t pipeline.Task) *row {
	r := &row{Task: t, accepted: map[acceptance]bool{}, pendingAt: a.cfg.Now()}
	for stage, generation := range t.Bodies {
		r.accepted[acceptance{stage + 1, generation}] = true
	}
	if t.Status == pipeline.TaskClaimed {
		r.claims = append(r.claims, claim{id: t.ClaimID, by: t.ClaimedBy, generation: t.Generation, at: a.cfg.Now(), kept: a.cfg.Now()})
		a.claimIDs[t.ClaimID] = t.Ref
	}
	a.rows[t.Ref] = r
	a.order = append(a.order, t.Ref)
	return r
}
