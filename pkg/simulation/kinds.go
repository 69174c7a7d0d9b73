package simulation

// Kind is one kind of fault.
type Kind string

// The kinds of faults. Each happens at a call of a port: before it, instead of it, after it, or beside it.
const (
	KillBefore   Kind = "killed before the write"
	KillAfter    Kind = "killed after the write"
	LoseReply    Kind = "reply lost though it landed"
	LoseWrite    Kind = "write lost on its way"
	LateWrite    Kind = "write lands late, its caller was told that the store is busy"
	Throttle     Kind = "write throttled"
	Conflict     Kind = "write met a transaction"
	FreezeBefore Kind = "frozen before the write, which lands when it is woken"
	FreezeAfter  Kind = "frozen after the write, woken later"
	Freeze       Kind = "frozen at a read, woken later"

	LoseMessage   Kind = "message lost"
	DoubleMessage Kind = "message doubled"
	DelayMessage  Kind = "message late"
	Undelete      Kind = "message delivered after its delete"
	BuryEarly     Kind = "message dead-lettered early"

	ThrottleRead Kind = "read throttled"
	StoreOutage  Kind = "store down for a while"
	LagIndex     Kind = "index lags"
	PartialBatch Kind = "batch done in part"

	ClockSkew Kind = "clock skewed from the start"
	ClockStep Kind = "clock stepped"

	ThrottleModel  Kind = "call throttled"
	FailModel      Kind = "call failed: unavailable"
	CutAnswer      Kind = "answer cut: perhaps billed"
	HangAnswer     Kind = "answer never came"
	QuotaUsed      Kind = "quota used up"
	MalformAnswer  Kind = "answer malformed"
	TruncateAnswer Kind = "answer truncated"
	RefuseAnswer   Kind = "answer refused"
	ModelStorm     Kind = "throttling storm"
	ModelOutage    Kind = "model down for long"

	DeployAll    Kind = "deploy: all replaced at once, by another policy"
	DeployBeside Kind = "deploy: N and N-1 side by side"

	CancelJob       Kind = "person cancels"
	PauseJob        Kind = "person pauses, and resumes later"
	RedriveJob      Kind = "person redrives"
	SubmitMore      Kind = "person submits again"
	SubmitDraft     Kind = "person submits another draft"
	SubmitElsewhere Kind = "another tenant submits the document"
	HoldJob         Kind = "job held as planned, started later"

	Restore Kind = "older table restored"
)

// trait is what the world needs to know of a kind.
type trait struct {
	kind Kind
	at   func(x *waiter) bool // at which calls it may happen
	most int                  // of one world
	rate []float64            // per call at which it may happen; the seed draws one
	born bool                 // it happens when something begins, not at a call
}

func writes(x *waiter) bool { return x.p != nil && x.write && x.name != "Receive" }
func stores(x *waiter) bool { return writes(x) && x.name != "Complete" }

// rowWrites are those that a transaction may be in the way of.
var rowWrites = only("Claim", "Renew", "Checkpoint", "End", "Redrive", "Expire", "Ring", "Postpone", "Unpark", "Close", "Buried", "SetJob", "Submit")

func reads(x *waiter) bool { return x.p != nil && !x.write && !x.timer }
func anyCall(x *waiter) bool {
	return x.p != nil && !x.timer && x.p.role != person
}

func only(names ...string) func(x *waiter) bool {
	return func(x *waiter) bool {
		if x.timer || x.p == nil {
			return false
		}
		for _, name := range names {
			if x.name == name {
				return true
			}
		}
		return false
	}
}

var (
	often    = []float64{0.01, 0.04, 0.12}
	seldom   = []float64{0.002, 0.008, 0.03}
	rarely   = []float64{0.001, 0.004}
	oftener  = []float64{0.03, 0.1, 0.3}
	complete = only("Complete")
)

// traits are the kinds in the order in which they are tried at a call: the first that is drawn happens.
var traits = []trait{
	{kind: KillBefore, at: writes, most: 6, rate: seldom},
	{kind: KillAfter, at: writes, most: 6, rate: seldom},
	{kind: LoseReply, at: stores, most: 12, rate: often},
	{kind: LoseWrite, at: stores, most: 12, rate: often},
	{kind: LateWrite, at: stores, most: 6, rate: seldom},
	{kind: Conflict, at: rowWrites, most: 10, rate: seldom},
	{kind: Throttle, at: stores, most: 25, rate: often},
	{kind: FreezeBefore, at: writes, most: 5, rate: []float64{0.005, 0.02, 0.06}},
	{kind: FreezeAfter, at: writes, most: 4, rate: seldom},
	{kind: Freeze, at: reads, most: 4, rate: seldom},
	{kind: LoseMessage, at: only("Send"), most: 5, rate: oftener},
	{kind: DoubleMessage, at: only("Send"), most: 5, rate: oftener},
	{kind: DelayMessage, at: only("Send"), most: 5, rate: oftener},
	{kind: Undelete, at: only("Delete"), most: 5, rate: oftener},
	{kind: BuryEarly, at: only("Receive"), most: 4, rate: often},
	{kind: ThrottleRead, at: reads, most: 25, rate: often},
	{kind: StoreOutage, at: anyCall, most: 2, rate: rarely},
	{kind: LagIndex, at: only("Due", "OpenJobs"), most: 40, rate: oftener},
	{kind: PartialBatch, at: only("PutTasks", "Replies"), most: 10, rate: oftener},
	{kind: ClockSkew, born: true, most: 1000},
	{kind: ClockStep, at: anyCall, most: 6, rate: seldom},
	{kind: ThrottleModel, at: complete, most: 20, rate: oftener},
	{kind: FailModel, at: complete, most: 20, rate: oftener},
	{kind: CutAnswer, at: complete, most: 6, rate: oftener},
	{kind: HangAnswer, at: complete, most: 2, rate: often},
	{kind: QuotaUsed, at: complete, most: 3, rate: often},
	{kind: MalformAnswer, at: complete, most: 8, rate: oftener},
	{kind: TruncateAnswer, at: complete, most: 4, rate: often},
	{kind: RefuseAnswer, at: complete, most: 3, rate: often},
	{kind: ModelStorm, at: complete, most: 2, rate: often},
	{kind: ModelOutage, at: complete, most: 1, rate: often},
	{kind: DeployAll, at: anyCall, most: 10, rate: seldom},
	{kind: DeployBeside, at: anyCall, most: 2, rate: rarely},
	{kind: CancelJob, at: anyCall, most: 1, rate: rarely},
	{kind: PauseJob, at: anyCall, most: 2, rate: rarely},
	{kind: RedriveJob, at: anyCall, most: 2, rate: rarely},
	{kind: SubmitMore, at: anyCall, most: 2, rate: rarely},
	{kind: SubmitDraft, at: anyCall, most: 1, rate: rarely},
	{kind: SubmitElsewhere, at: anyCall, most: 1, rate: rarely},
	{kind: HoldJob, born: true, most: 1},
	{kind: Restore, at: anyCall, most: 1, rate: rarely},
}

// Kinds are all kinds of faults.
func Kinds() (all []Kind) {
	for _, t := range traits {
		all = append(all, t.kind)
	}
	return all
}

// Born are the kinds that happen when something begins, not at a call.
func Born() (kinds []Kind) {
	for _, t := range traits {
		if t.born {
			kinds = append(kinds, t.kind)
		}
	}
	return kinds
}

// AtWrite are the kinds that may happen at a write of this name; some happen only at those of workers and reapers, and not
// at those of a person's command.
func AtWrite(name string, persons bool) (kinds []Kind) {
	by := worker
	if persons {
		by = person
	}
	x := &waiter{p: &process{role: by}, name: name, write: true}
	for _, t := range traits {
		if !t.born && t.at(x) {
			kinds = append(kinds, t.kind)
		}
	}
	return kinds
}
