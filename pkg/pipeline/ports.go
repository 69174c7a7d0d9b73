package pipeline

import (
	"context"
	"time"
)

// Limits of one item, page and batch, as DynamoDB has them. Every store enforces them, memory included, so that
// nothing has to be rebuilt for AWS.
const (
	MaxItem  = 400 << 10 // bytes of one item
	MaxPage  = 1 << 20   // bytes of one page of a query
	MaxRead  = 100       // keys of one batch read
	MaxWrite = 25        // rows of one batch write
	MaxBatch = 10        // messages of one batch call of a queue
)

// Store is all of the ports that a backend's store implements. Steps ask for the small interfaces.
//
// Each method is one conditional write of one row, one page of a query, or one batch with partial results; Submit and
// Redrive are transactions. A refused condition is a [ConditionError]; a busy store is [ErrBusy], which says nothing
// about whether the write landed. Times come from the caller.
type Store interface {
	Jobs
	Tasks
	Reaping
	Items
	Replies
	Feed
	Budgets
	Limits
}

// Jobs keeps the jobs' rows.
type Jobs interface {
	// Submit puts job and split, each only if absent, in one transaction, and returns the job that stands.
	// created says that it was this one. Repeating it is harmless.
	Submit(ctx context.Context, job Job, split Task) (stands Job, created bool, err error)
	// Job is a consistent read. ErrNotFound.
	Job(ctx context.Context, id JobID) (Job, error)
	// SetJob replaces the row, on condition that epoch, status, pause and deadline are still those of seen: a job that was
	// paused, resumed and paused again has the same status, and is not as it was seen. Otherwise it returns the row that
	// stands and ErrFenced. Repeating a SetJob that landed is recognised (the row equals next): no error.
	// ErrNotFound if there is no such row: nothing brings one back.
	SetJob(ctx context.Context, seen, next Job) (Job, error)
	// Jobs lists a tenant's jobs, newest first; "" is the first and the last cursor.
	Jobs(ctx context.Context, tenant, cursor string, limit int) (jobs []Job, next string, err error)
	// OpenJobs is one page of the jobs of all tenants that have not ended: the reaper's net under jobs whose last row
	// ended but whose finalize was never opened. It may lag; "" is the first and the last cursor.
	OpenJobs(ctx context.Context, cursor string) (jobs []Job, next string, err error)
}

// Tasks is the claim protocol: one compare-and-swap of one row each.
type Tasks interface {
	// PutTasks puts each row only if absent, at most MaxWrite of them. Rows that could not be tried are returned.
	PutTasks(ctx context.Context, rows []Task) (unprocessed []Task, err error)
	// Task is a consistent read. ErrNotFound.
	Task(ctx context.Context, ref Ref) (Task, error)
	// Tasks is one page of a job's rows in order of their ids, read consistently; "" is the first and last cursor.
	Tasks(ctx context.Context, job JobID, cursor string) (rows []Task, next string, err error)

	// Claim: the row exists, is pending, ready, at the generation seen, under the cap, and may be claimed in company.
	// Sets status, worker, claim id, times; generation = seen + 1; attempts + 1; rings and answers 0.
	Claim(ctx context.Context, w ClaimWrite) (Task, error)
	// Renew: the claim is mine, and the new expiry is later than the one stored; allowed never goes back nor over
	// max_tries. Sets expiry, stage, answers, allowed.
	Renew(ctx context.Context, w RenewWrite) (Task, error)
	// Checkpoint: the claim is mine and stage - 1 is the last accepted. Accepts the stage with this generation's body;
	// attempts 1, losses 0; allowed never goes back nor over max_tries.
	Checkpoint(ctx context.Context, w CheckpointWrite) (Task, error)
	// End: the claim is mine, and the accepted stage is the one that the verdict was worked out from; allowed may fall,
	// never rise. Sets status, attempts, deferrals, losses, allowed, ready_at,
	// due_at, ended_by, reason.
	End(ctx context.Context, w EndWrite) (Task, error)
	// Redrive is a transaction: the task is still as seen and has ended (abandoned, done with failed cells, stopped by
	// the ceiling or the deadline), and the job is as seen, as in SetJob. ErrFenced if not, ErrConflict to try again.
	// Sets pending, generation + 1; attempts, deferrals, losses and rings 0; accepted and its bodies, max_tries; ready
	// and due now; not buried.
	Redrive(ctx context.Context, w RedriveWrite) (Task, Job, error)
}

// Reaping is what moves rows that nobody works on.
type Reaping interface {
	// Due is one page of the listed rows ([Task.Listed]) of a shard whose due_at is not after now, most overdue first.
	// It may lag behind the rows.
	Due(ctx context.Context, shard int, now Instant, cursor string) (rows []Task, next string, err error)
	// Expire: generation and accepted stage are those seen, the row is claimed, and [Task.Expirable] holds of the row
	// itself. Sets what End sets but allowed: a lost block counts as sent. Ended by [ExpiredBy].
	Expire(ctx context.Context, w ExpireWrite) (Task, error)
	// Ring: the row is pending, with the generation, rings and due_at seen. Sets ring + 1, rings + 1, due_at.
	// Count 0 sets rings to 0 instead (the job holds too many claims: no fault of the row).
	Ring(ctx context.Context, w RingWrite) (Task, error)
	// Postpone: status, generation, rings and due_at are those seen. Sets due_at alone.
	Postpone(ctx context.Context, seen Task, due Instant) (Task, error)
	// Unpark: the row is parked, with the generation, rings and due_at seen. Sets pending, ready and due now, rings 0.
	Unpark(ctx context.Context, seen Task, now Instant) (Task, error)
	// Close: the row is pending or parked as seen, with its generation, rings and due_at. Sets status, reason, due_at.
	// ended_by goes on to name the record of the last attempt that counts.
	Close(ctx context.Context, w CloseWrite) (Task, error)
	// Buried: the row is abandoned, at this generation. Marks that its dead letter was sent; it leaves the due index.
	Buried(ctx context.Context, ref Ref, generation int64) error
}

// ClaimWrite asks for a claim.
type ClaimWrite struct {
	Ref
	Seen        int64  // the generation to claim from
	MaxAttempts int    // of the worker's policy as it is now: a lower cap stops old rows by itself
	Worker      string // unique to the process
	ClaimID     string // random
	Alone       bool   // the worker holds no other claim
	Now         Instant
	Expires     Instant
	Due         Instant
}

// RenewWrite keeps a claim.
type RenewWrite struct {
	Fence
	Expires Instant
	Stage   int
	StageAt Instant
	Answers int // new since the claim
	Allowed int // tries allowed so far, an absolute number
}

// CheckpointWrite accepts a stage.
type CheckpointWrite struct {
	Fence
	Stage   int
	Allowed int
}

// EndWrite ends a claim.
type EndWrite struct {
	Fence
	Verdict
	Accepted int // the last accepted stage as the worker knows it
	EndedBy  string
	Reason   Failure
	Allowed  int // tries really sent are known now: what was not used is given back
	ReadyAt  Instant
	DueAt    Instant
}

// ExpireWrite ends somebody else's claim that lapsed.
type ExpireWrite struct {
	Seen    Task // as read; Verdict was worked out from it
	Verdict Verdict
	Reason  Failure
	Now     Instant
	MaxSkew time.Duration
	Exited  string // a worker of this machine whose exit the caller has waited for
	ReadyAt Instant
	DueAt   Instant
}

// ExpiredBy is the ender of a claim that the reaper expired.
const ExpiredBy = "expired"

// ClosedBy is the ender of a row that nobody held, as earlier versions named it.
const ClosedBy = "closed"

// RingWrite says that a message is about to be sent.
type RingWrite struct {
	Seen  Task
	Due   Instant
	Count int // of rings since the last claim, from now on
}

// CloseWrite ends a row that nobody holds.
type CloseWrite struct {
	Seen   Task
	Status TaskStatus
	Reason Failure
	Due    Instant // for an abandoned row: when the reaper sends its dead letter
}

// RedriveWrite gives a task attempts back and reopens its job.
type RedriveWrite struct {
	Task     Task // as seen
	Job      Job  // as seen
	Accepted int  // the last stage that stays accepted
	Reopened Job  // what the job becomes: epoch + 1, a status that runs, a new deadline
	MaxTries int  // the raised cap of the task
	Now      Instant
}

// Items keeps what belongs to a job beside its rows, by key: manifests, stage bodies, records, journals, results.
type Items interface {
	// PutItem stores the item; ErrTooLarge over MaxItem.
	PutItem(ctx context.Context, job JobID, key string, body []byte) error
	// PutItemOnce stores the item only if absent and returns the body that stands.
	PutItemOnce(ctx context.Context, job JobID, key string, body []byte) (stands []byte, err error)
	// Item is a consistent read. ErrNotFound.
	Item(ctx context.Context, job JobID, key string) ([]byte, error)
	// Items is one page of the items whose key begins with prefix, in order, read consistently; "" is the first and last
	// cursor.
	Items(ctx context.Context, job JobID, prefix, cursor string) (items []Item, next string, err error)
}

// Item is a key and its body.
type Item struct {
	Key  string
	Body []byte
}

// Replies keeps answers that were paid for.
type Replies interface {
	// PutReply stores the reply only if absent and returns the one that stands.
	PutReply(ctx context.Context, r Reply) (stands Reply, err error)
	// Replies reads at most MaxRead keys. Keys that could not be read now are returned as unprocessed.
	Replies(ctx context.Context, keys []ReplyKey) (found map[ReplyKey]Reply, unprocessed []ReplyKey, err error)
}

// Feed is the stream of a job's findings.
type Feed interface {
	// PutFindings appends a group, once per (task, stage, generation): repeating it changes nothing.
	PutFindings(ctx context.Context, g FindingGroup) error
	// Findings is the groups after a cursor, oldest first. A group never appears behind a cursor that was returned.
	Findings(ctx context.Context, job JobID, after int64, limit int) (groups []FindingGroup, err error)
}

// Budgets is a bounded counter of money per job, with what is reserved.
type Budgets interface {
	// OpenBudget sets the ceiling only if the job has none.
	OpenBudget(ctx context.Context, job JobID, ceiling Money) error
	// RaiseBudget adds to the ceiling for a redrive of a task at a generation: once, and nothing for a lower one.
	RaiseBudget(ctx context.Context, ref Ref, generation int64, amount Money) error
	// Reserve takes amount under key: if the key is absent and that much remains. It settles others in the same write.
	// ErrCeiling if too little remains, others settled (Budget then says whether others' reservations are open); then
	// nothing is settled either. A key that is open with the same amount was our own write: no error.
	Reserve(ctx context.Context, job JobID, r Reservation, settle ...Reservation) (Budget, error)
	// Settle closes reservations: if present, the rest (reserved less Amount, the money really spent) is added back.
	// Settling twice changes nothing.
	Settle(ctx context.Context, job JobID, settle ...Reservation) (Budget, error)
	// Budget is a consistent read. ErrNotFound.
	Budget(ctx context.Context, job JobID) (Budget, error)
}

// Reservation is money taken before use, by task, generation and stage.
type Reservation struct {
	Task       TaskID `json:"task"`
	Generation int64  `json:"generation"`
	Stage      int    `json:"stage"`
	Part       int    `json:"part,omitempty"` // 0, or more for what retries of the same stage took later
	Amount     Money  `json:"amount"`
}

// Budget is what remains of a job's money.
type Budget struct {
	Ceiling   Money         `json:"ceiling"`
	Remaining Money         `json:"remaining"` // neither spent nor reserved
	Spent     Money         `json:"spent"`
	Open      []Reservation `json:"open"`
}

// Limits is what all workers share about one model: a limiter in the provider's units (GCRA: one theoretical arrival
// time), and a breaker.
type Limits interface {
	// TakeSlot reserves cost on the model's line: it moves the theoretical arrival time by cost and returns when the
	// reserved work may start. Nothing is taken if that lies more than Horizon from now: ErrBusy. In milliseconds, cost
	// rounded up: line = the latest of the stored line, now - burst and the penalty; start = the later of line and now;
	// stored line = line + cost.
	TakeSlot(ctx context.Context, w SlotWrite) (start Instant, err error)
	// Refund gives back what was not used, never below now - burst.
	Refund(ctx context.Context, model string, unused, burst time.Duration, now Instant) error
	// Penalise lets nothing start before until; it never shortens, and refunds do not move it.
	Penalise(ctx context.Context, model string, until Instant) error
	// Strike counts a failure of the model against its breaker. It opens until the time given once two distinct tasks
	// have struck within the window, or at once if the strike says so; it never shortens. The reason is that of the
	// strike that opened it last. The window begins with the first strike; one later than the window begins another.
	// At most [MaxStrikes] tasks are named.
	Strike(ctx context.Context, s Strike) (Cooldown, error)
	// Cooldown is the breaker as it stands; the zero value if it was never struck.
	Cooldown(ctx context.Context, model string) (Cooldown, error)
	// CloseBreaker forgets the strikes, after a call succeeded.
	CloseBreaker(ctx context.Context, model string) error
}

// MaxStrikes is how many tasks a breaker's row names.
const MaxStrikes = 10

// SlotWrite asks the limiter for capacity.
type SlotWrite struct {
	Model   string
	Cost    time.Duration // units / rate: how much time of the line it takes
	Burst   time.Duration // how far the line may lie in the past
	Horizon time.Duration // how far in the future a start may lie
	Now     Instant
}

// Strike is one failure of a model that may be everybody's.
type Strike struct {
	Model  string
	Task   Ref
	Reason Failure
	Now    Instant
	Window time.Duration // strikes of other tasks count for so long
	Until  Instant       // how long the breaker stays open
	Open   bool          // one is enough (a stated quota, a configuration error that two tasks need not repeat)
}

// Cooldown is a model's breaker.
type Cooldown struct {
	Until   Instant  `json:"until"` // open until
	Reason  Failure  `json:"reason,omitzero"`
	Strikes []string `json:"strikes,omitempty"` // the tasks that struck, within the window
	Since   Instant  `json:"since,omitempty"`   // the first of them
}

// IsOpen says that no call may start. After Until one task probes.
func (c Cooldown) IsOpen(now Instant) bool { return now < c.Until }

// Refusal is why no call to the model starts.
func (c Cooldown) Refusal(model string) Failure {
	return Fail(Busy, "no calls to %s until %s: %s", model, c.Until, c.Reason)
}

// Blobs keeps bodies too large for an item: documents, definitions, results.
type Blobs interface {
	// PutBlob stores the body; the same key again replaces it whole or not at all.
	PutBlob(ctx context.Context, key string, body []byte) error
	// Blob reads it. ErrNotFound.
	Blob(ctx context.Context, key string) ([]byte, error)
}

// Queue is one queue with its dead-letter queue.
type Queue interface {
	// Send sends at most MaxBatch messages and returns those that were not taken.
	Send(ctx context.Context, messages []Message) (failed []Message, err error)
	// Receive waits until there is something or the wait is over, and returns at most limit deliveries, each
	// invisible for the queue's visibility timeout.
	//
	// The order is the backend's, and nothing may depend on it but how long jobs wait for each other. Embedded and
	// in memory the job with the fewest deliveries in flight comes first (those put off are not counted), among equal
	// ones the one that was served longest ago, and of its messages the oldest; bodies that are no message are one job
	// together. On SQS it is roughly the oldest, and fair queues share by tenant, not by job.
	Receive(ctx context.Context, limit int, wait time.Duration) ([]Delivery, error)
	// Delete removes deliveries; those not removed are returned. An old receipt removes nothing.
	Delete(ctx context.Context, deliveries []Delivery) (failed []Delivery, err error)
	// Delay makes a delivery visible again after d, at most 12 hours from its receipt.
	Delay(ctx context.Context, d Delivery, after time.Duration) error
	// Bury sends a dead letter.
	Bury(ctx context.Context, letter DeadLetter) error
	// DeadLetters is one page of the dead-letter queue, oldest first; reading it changes nothing.
	DeadLetters(ctx context.Context, cursor string) (letters []DeadLetter, next string, err error)
	// Depth is how many messages are visible and how many in flight; approximate on AWS.
	Depth(ctx context.Context) (visible, inFlight int, err error)
}

// Message says "look at this row".
type Message struct {
	Job        JobID  `json:"job"`
	Task       TaskID `json:"task"`
	Tenant     string `json:"tenant,omitempty"`
	Generation int64  `json:"generation"`
	Ring       int64  `json:"ring"`
	Format     int    `json:"format,omitempty"` // 0 is 1
}

// Ref is the row that the message is about.
func (m Message) Ref() Ref { return Ref{Job: m.Job, ID: m.Task} }

// Delivery is an arrival of a message.
type Delivery struct {
	Body     []byte // what arrived, to be decoded with DecodeMessage
	Receipt  string
	Receives int
	SentAt   Instant
}

// DeadLetter is a message that is not delivered any more, and why. Native ones (moved by the queue itself) have no
// reason; the row says whether they mean anything.
type DeadLetter struct {
	Body     []byte   `json:"body"`
	Job      JobID    `json:"job,omitempty"`
	Task     TaskID   `json:"task,omitempty"`
	Reason   Failure  `json:"reason,omitzero"`
	Context  []Record `json:"context,omitempty"` // the attempts' records, newest last, as many as fit
	Receives int      `json:"receives,omitempty"`
	SentAt   Instant  `json:"sent_at"` // of the first sending: retention counts from it
	BuriedAt Instant  `json:"buried_at"`
	Native   bool     `json:"native,omitempty"` // moved by the queue after too many receives
}
