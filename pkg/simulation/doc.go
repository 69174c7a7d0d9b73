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
package simulation
