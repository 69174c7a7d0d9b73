package spec

// Status is where a row stands.
type Status int8

// The statuses of a task.
const (
	Pending Status = iota
	Claimed
	Parked
	Done
	Abandoned
	Cancelled
)

func (s Status) String() string {
	return [...]string{"pending", "claimed", "parked", "done", "abandoned", "cancelled"}[s]
}

// Ended says that the status is terminal.
func (s Status) Ended() bool { return s >= Done }

// ByExpiry stands in EndedBy when no claim does.
const ByExpiry int8 = -1

// Row is pipeline.Task, as far as the protocol looks at it. Times are whether they have passed.
type Row struct {
	Gone       bool // deleted behind the protocol's back
	Status     Status
	Gen        int8
	Claim      int8 // claim id
	EndedBy    int8
	Att        int8 // attempts
	Def        int8 // deferrals
	Los        int8 // losses
	Acc        int8 // accepted
	Body       [MaxStages]int8
	Left       int8 // ticks of the store's clock until the claim expires
	New        bool // answers since the claim, as renewals told
	Allowed    int8
	MaxTries   int8
	Ready, Due bool // ready_at and due_at have passed
	Rings      int8
	Buried     bool
}

// MaxStages is how many stages a modelled task may have.
const MaxStages = 2

// Listed is pipeline.Task.Listed: the row is in the due index.
func (r *Row) Listed() bool {
	return !r.Gone && (!r.Status.Ended() || (r.Status == Abandoned && !r.Buried))
}

// Op is a method of the store.
type Op int8

// The writes of pipeline.Tasks and pipeline.Reaping.
const (
	NoOp Op = iota
	OpClaim
	OpRenew
	OpCheckpoint
	OpEnd
	OpExpire
	OpRing
	OpPostpone
	OpUnpark
	OpClose
	OpBuried
	OpRedrive
	OpVanish // no method: the row is deleted
)

func (o Op) String() string {
	return [...]string{"nothing", "claim", "renewal", "checkpoint", "end", "expire", "ring", "postpone", "unpark", "close", "buried mark", "redrive", "deletion"}[o]
}

// Write is one conditional write with all that it carries.
type Write struct {
	Op      Op
	Gen     int8   // of the fence, or as seen
	Claim   int8   // of the fence
	Status  Status // as seen
	Rings   int8   // as seen
	Same    bool   // due_at is still the one seen
	Acc     int8   // the stage to accept; as seen (Expire); as the worker knows it (End); what stays (Redrive)
	Left    int8   // the expiry asked for, in ticks from now
	Skew    int8   // of the caller's clock, in ticks
	Age     int8   // ticks since the caller looked at that clock
	Allowed int8
	New     bool
	Alone   bool
	Cap     int8 // of attempts, by the policy of who claims
	Count   int8 // rings from now on
	V       Verdict
}

// setsDue says that a write that lands gives the row another due_at.
func (w Write) setsDue() bool {
	switch w.Op {
	case OpRenew, OpCheckpoint, OpBuried:
		return false
	}
	return true
}

// Reading is a row as somebody read it, to base a write on.
type Reading struct {
	Status             Status
	Gen, Att, Def, Los int8
	Acc, Rings         int8
	New                bool
	Same               bool // nobody has set its due_at since
	Rung               bool // it has been rung since
	Age                int8 // ticks since; of one that an expiry is based on
}

func read(r *Row) Reading {
	return Reading{r.Status, r.Gen, r.Att, r.Def, r.Los, r.Acc, r.Rings, r.New, true, false, 0}
}

// write is the reaper's kind of write: on condition of what was read.
func (r Reading) write(op Op) Write {
	return Write{Op: op, Gen: r.Gen, Status: r.Status, Rings: r.Rings, Same: r.Same, Acc: r.Acc, Age: r.Age}
}

func (r Reading) standing() Standing { return Standing{r.Att, r.Def, r.Los, r.Acc, r.New} }
