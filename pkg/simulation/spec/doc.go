// Package spec is the claim protocol written down so that a machine can try every history of it: a model of one task
// ([Task]: claim, renew, checkpoint, end, expire, ring, postpone, park, close, dead letter, redrive) and a model of one
// job ([Job]: split, two chunks, finalize, cancel, pause, deadline, redrive), each searched breadth first to its last
// state.
//
// Every transition names the code that it models, in its comment, as package.Function; a test looks whether that is
// there. What a store does is in [Task.Apply] alone, a method of pipeline.Tasks or pipeline.Reaping to a case; a test
// replays random walks of the model against pkg/memory, write by write, so that the two cannot drift apart.
//
// Checked of every state and step: the promises of pkg/pipeline, as far as they are about one task or one job
// ([Task.Check], [Job.Check]; [Promises] has them in words). Checked of the whole graph: that no fair run goes on for
// ever before the row, or the job, has ended ([Fair]). [Broken] and [BrokenJobs] are the models with one rule taken
// away; each must fail.
//
// The tests search the worlds of [Small] and [SmallJobs], of up to two workers; make spec searches the larger ones
// too, of three, and prints states, depth and promises. go run ./scripts/spec -broken prints the shortest history that
// breaks a promise without each of the rules.
//
// Not in the model: how long anything takes (what happens "later" may happen at any time), money, the limiter, the
// bound on a job's claims, fair queues (no order of messages is assumed, which includes every order), and what the
// stages of a chunk do.
//
// It may not import anything but the standard library: what it says must come from nowhere but itself.
package spec
