package pipeline

import (
	"context"
	"time"
)

// Handler works on one kind of task. Whatever it is (LLM calls, Go code, a command), the engine claims the task for
// it, counts, renews, records, ends and fences. A panic is caught and is a failed attempt.
//
// ctx is cancelled when the work must be dropped: a cancel, the attempt's time, a second signal. A stop that lets
// work in flight finish (shutdown, pause, lost claim) is told by Attempt.MaySend.
type Handler interface {
	Handle(ctx context.Context, a Attempt) Ending
}

// Attempt is one claim's work on a task, as its handler sees it. Its methods may be called from any goroutine.
type Attempt interface {
	// Claim is the claim as it stands: Accepted and Bodies follow the checkpoints.
	Claim() Claim
	// Job is the job's row as last read.
	Job() Job
	// Worker is who works on it.
	Worker() string
	// MaySend must return nil right before each try, after every wait. It takes one of the tries that were allowed,
	// allows another block when they are used up, and refuses when the job was last read too long ago or does not run,
	// or the claim may have expired. Its error is one of ErrCancelled, ErrPaused, ErrDraining, ErrClaimLost,
	// ErrTimedOut, ErrStalled, ErrTriesUsed, or a store's.
	MaySend(ctx context.Context) error
	// Stopped is closed once MaySend would refuse for good; Stop says why.
	Stopped() <-chan struct{}
	Stop() error
	// Unsent gives back a try that MaySend took and that was not sent, or was free.
	Unsent()
	// Record puts a try into the journal.
	Record(t Try)
	// Answered says that a new answer was stored: progress.
	Answered()
	// Progress says that the work goes on, for handlers without answers.
	Progress()
	// Checkpoint stores the body of a stage under this generation and accepts it. ErrFenced once another claim exists.
	Checkpoint(ctx context.Context, stage int, body []byte) error
	// Fence must return nil right before an outside effect: the claim is still ours, by a consistent read.
	Fence(ctx context.Context) error
	// Last says that a failure now uses up the last attempt: cells without an answer fail, and later stages go on.
	Last() bool
}

// Asker asks the questions of a stage: stored replies first, then the model (tier one).
type Asker interface {
	// Ask returns one answer per question, in their order. It returns when nothing is in flight.
	Ask(ctx context.Context, a Attempt, questions []Question) []Answer
	// Done settles what the attempt still has reserved. It is called once, when the attempt's work is over.
	Done(ctx context.Context, a Attempt)
}

// Question is one call about one chunk.
type Question struct {
	Chunk   int
	Call    Call
	Request Request
	// Check says what is wrong with an answer's text, or returns the JSON to keep; see Reviewer.Check.
	Check func(text string) (clean string, repaired bool, err error)
}

// Answer is what became of a question in this attempt.
type Answer struct {
	Reply   Reply   // if Failure is none
	Reused  bool    // the reply was stored before
	Failure Failure // why there is no reply
	Defers  bool    // the failure is everybody's (throttled, outage), not this task's: the attempt ends as a deferral
	Stop    error   // set if the attempt has to end: what MaySend said
	Tries   int
	Cost    Money
	Wait    time.Duration // what the provider asked for
}

// Reviewer makes questions of a definition and findings of replies.
type Reviewer interface {
	// Questions renders the calls of a stage (from 1) for a chunk. gated are the calls that need not be asked.
	Questions(r StageRequest) (questions []Question, gated []Call, err error)
	// Read takes an answered cell's reply: its value and its findings, placed in the text.
	Read(r StageRequest, call Call, reply Reply) (value *float64, findings []Finding, err error)
	// Check says what is wrong with an answer's text, for the re-ask: not JSON, schema mismatch, empty. The text it
	// returns is the JSON to keep, repaired where that is safe.
	Check(d Definition, call Call, text string) (clean string, repaired bool, err error)
}

// StageRequest is what a stage of a chunk is about.
type StageRequest struct {
	Definition Definition
	Job        Job
	Text       string // the whole document
	Chunk      Chunk
	Stage      int
	Bodies     []StageBody       // of the stages before
	Replies    map[string]string // text by call id, of the stages before
}
