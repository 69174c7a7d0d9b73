// Package pipeline is the words of Holdfast: what a job, a task, a claim and a reply are, when a task is given up, and
// which writes a store must be able to make. Read it first; then the step you change.
//
// It may decide: the rules that are pure functions ([Next], [Policy.Validate], [WhyRefused], [StopFailure], the kinds of
// [Failure]). What several steps do with the ports in the same way is here too ([ReadReplies], [CancelRow], [Queues]).
// It may not: do I/O but through the ports that it is handed, read the time but in [RealClock], start a goroutine
// outside [Group], or import anything but the standard library.
//
// # What Holdfast promises
//
//   - P1 Nothing vanishes: the plan names every cell (chunk x call); a job ends only when every cell has a terminal state.
//   - P2 One accepted result per (job, task, stage); a write of an older generation is refused.
//   - P3 Bounded spend: the worst case is printed before the run and never exceeded.
//   - P4 Every ending has a reason, for every attempt and every try.
//   - P5 Terminal stays terminal.
//   - P6 Healthy work is never given up: throttling, outages, deploys and contention use up no attempts.
//   - P7 No loop without a number that ends it; every way in passes the cap.
//   - P8 An answer that was paid for is kept.
//   - P9 Cancel stops the spending within two seconds.
//   - P10 No stuck rows: each has a live claim, a message on its way, or a time at which the reaper takes it.
//
// The row is the truth; the queue is a doorbell. Any message may be lost, doubled, late or dead-lettered.
//
// # Words
//
// One word per concept. A new word is a change to this table.
//
//	job          one submitted document and its work
//	run          which time it is that the same was submitted; another run is another job
//	epoch        number of a job's beginning, raised by every redrive; each has its own finalize
//	pipeline     the definition a job follows: stages, prompts, schemas; a job pins its version
//	origin       the map back from a document's text: page, paragraph; and notes, of what was not read or read in its own way
//	unread       a part of the document that holds something and was not read: the job never ends completed
//	chunk        a part of the document
//	task         what is claimed, retried and given up: the split of a job, the work on one chunk, the finalize of a job
//	row          a task, or a job, as the store keeps it
//	stage        one step of the analysis of a chunk, with its own checkpoint
//	call         one question to a model
//	handler      what works on a kind of task; of a definition: the function or command that stands in a model's place
//	function     a definition's handler in Go: an item in, an answer out (a command is the same as a program)
//	item         a chunk as a definition's handler gets it, mostly a line of the document; of a store: a key and its body
//	cell         chunk x call: one entry of the plan, with one terminal state
//	gate         the value of an earlier call below which a call is not asked
//	try          one sending of a call (tier one)
//	attempt      one claim's work on a task (tier two); the first is 1
//	claim        a worker's right to a task, until it expires
//	generation   number of the claim; names the attempt, fences late writes; nothing ever lowers or resets it
//	fence        what a write after the claim carries: task, generation, claim id; refused once a later claim exists
//	refusal      why a row cannot be claimed (a model's refusal is a failure, of kind refused)
//	renew/expire keep a claim / let it lapse, take it away
//	deferral     an attempt that ended through no fault of the task; refunded, bounded by its own number
//	loss         an attempt whose worker died
//	end          close a claim with an outcome
//	ending       what is known then: outcome and failure; the verdict ([Next]) is what becomes of the row
//	stop         why an attempt may send nothing more: cancelled, paused, draining, claim lost, time over
//	drain        take nothing new, finish what is in flight, then exit
//	park         set a row aside while its job is paused or not started
//	close        end a row that nobody holds (exhausted, cancelled, past the deadline)
//	delivery     arrival of a message; receives is how often
//	release      make the deliveries of an exited worker visible at once
//	guard        the process that kills what the commands of a dead worker left running
//	door         what a task passes before it is received: breaker closed, a slot free
//	slot         room for one: for a try in flight, for a claim, in the limiter's line
//	block        what one write takes for many: tries of a task's cap, units of the limiter's line
//	purse        what one attempt has reserved for one stage
//	ring         send the message that says "look at this row"
//	share        what a job has of a queue's receivers: its deliveries in flight
//	turn         of jobs with equal shares, whose was longest ago comes first
//	abandoned    the task gave up, with every reason
//	dead letter  a message in a dead-letter queue; bury sends it there
//	reap         find what stalled and move it on
//	mark         say when what an ended job left may go
//	keep         give the replies of a job all of their time again
//	redrive      a person gives a task that ended with cells missing its attempts back
//	finalize     decide that a job is over and write its result
//	answer       what became of a question in an attempt: a reply, or the failure or stop in its place
//	reply        a model's stored answer, addressed by the content of its call
//	failure      a stored reason; its kind decides what happens next
//	checkpoint   durable record of one stage of one task (its body), or of a cancellation
//	gap          cells that are missing for one reason
//	setback      why tasks that have not ended last failed, or were deferred
//	record       what is left of one attempt: outcome, reason, time, cost
//	finding      what a stage reports about the text; provisional, then confirmed or withdrawn
//	feed         the findings of a job as they come, with a cursor
//	journal      the tries of an attempt, each by name
//	overspent    a try cost more than its definition said a try may; the job is asked nothing more and ends so
//	choosy       of a queue: it can leave the messages of some jobs to other workers
//	unserved     waiting, and no worker that is up has what the job needs
//	budget       what a job may still spend; its ceiling is the worst case, or less if a person says so
//	reservation  money or quota taken before use, settled after
//	limiter      shared admission in the provider's units
//	breaker      stops calling a model for a stated reason until a stated time (its row: the cooldown)
//	strike       a failure that counts against a model's breaker
//	plan         cells and cost (once, expected, worst) before a job starts
//	tenant       whose job it is: fairness, access, reply sharing
//	process      a program of a deployment: control, work, reap and api, which are handed events, and workd, which polls
//	event        what a process is handed: messages of a queue, a tick of the schedule, a request
//	canary       small jobs that try what a stack promises, and are removed
//	forget       remove an ended job for good, with all that it left
//	setting      a variable of a process's environment
//	format       the number of a row's or message's layout; one that is not known is refused and left alone
//
// # The tree
//
// Steps, in the order a document meets them: submit, ingest, split, work, call, review, finalize, reap, report, triage.
// Each imports this package and no other step; ingest has a part for each format. Adapters (memory, sqlitestore,
// dynamostore, sqsqueue, s3blob, awsclient, awscost, offline, openai, command, pipelines, config, telemetry) import this
// package and their own dependency. wiring joins the steps over a backend; view reads what people and programs are shown;
// cli talks to people and chooses the model, api to programs; function answers events; carry takes a job from one backend
// to another; smoke tries a stack. functions/ has a main for each process of a deployment. simulation runs all of it in
// virtual time.
//
// # The claim protocol
//
// [Tasks] has one method per write, each a compare-and-swap of one row. The lifecycle of a row:
//
//	Claim   pending -> claimed    generation+1, attempts+1, counted before the work: a SIGKILL runs no finally
//	Renew   claimed -> claimed    fenced by generation and claim id; never shortens
//	Checkpoint                    accepts stage n from n-1 exactly; attempts count from there again
//	End     claimed -> what Next says
//	Expire  claimed -> what Next says, by the reaper, for a claim that lapsed
//	Close   pending or parked -> ended, for rows that nobody may work on any more
//	Ring    pending, due -> a new message
//	Redrive ended -> pending, together with the job's epoch, when a person says so
package pipeline
