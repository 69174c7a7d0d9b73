// Package simulation runs whole worlds of Holdfast in virtual time: the real steps, as wiring joins them, over the
// memory backend, with seeded faults. One seed is one world, and one history.
//
// Every call of a port by a worker, a reaper or a person is a parking point, and so is every wait. Whoever arrives there
// parks; the scheduler waits until everybody has parked or is blocked, and releases exactly one, chosen by the seed, or
// lets virtual time go on. Whom it may choose from is sorted by who calls what about what, never by arrival alone.
//
// It may decide: who goes next, when time goes on, which fault happens where. It may not decide whether what came of it
// is right: that is package audit, which looks at rows and events and knows none of the rules that the program uses.
//
// It is for tests: [Run] needs a testing.T, for its bubble. A process that runs worlds runs them one at a time on one
// processor ([Single]); several processes use several.
//
// # What there is to run
//
//	make sim               worlds from a fixed seed on, then every kind of fault forced at every call: three minutes
//	make sim N=1000000     so many worlds; stopped, it goes on where it was (bin/simulation-N.json: delete it to begin anew)
//	make sim-planted       bugs planted in the real code, one at a time (testdata/planted.txt): each must be found
//	go test ./pkg/simulation -run 'TestWorld$' -v -seed N     one world, told to its end
//
// Faults are forced in worlds in which nothing else goes wrong, one a world; and at the writes that are made only when
// something did (an expiry, a dead letter, a redrive), in worlds with just that. A run fails if a kind of fault never
// happened, or was not forced at a write where it may happen.
//
// A world that breaks a promise is shrunk ([Shrink]): faults that it does not need are left out, everybody goes on in the
// order of arrival from as early on as it still breaks, chunks, workers, stages and calls are fewer. What is printed is
// the promise, the history that is left, without what changed nothing, and the command that replays it.
//
// # What a world has
//
// A document of 3 lines, each a chunk with 2 stages of 2 calls, 3 workers, a reaper and a person, unless its [Spec] says
// otherwise. The seed draws the rest: how often who sweeps, how long calls take, the policy and the next ones that are
// deployed, a ceiling, a quota, clocks, whether a call is behind a gate, how many tries are in flight, how much a page of
// the store holds, whether somebody waits for the exit of workers, whether the document can be read at all, and which few
// kinds of faults are on, each with its rate. Faults end after 45 minutes, and what is left must end well: every job and
// row ended, every message and dead letter where it belongs. A job that waits for a person (paused, planned, gone with
// its table) is seen to by one in the end.
//
// An older table that is put back is another table, as on AWS: everybody begins anew on it, and what was on its way to
// the one before is lost. What can still be promised then is said at the auditor's Restored.
package simulation
