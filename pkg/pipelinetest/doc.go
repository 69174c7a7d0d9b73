// Package pipelinetest is what every backend is held to, and what the tests of steps are built from.
//
// [TestStore] and [TestQueue] are the conformance suites. They take a factory, skip nothing, know no backend by name
// and use no in-process trick, so the same suite runs against a map, a file and a cloud table. [Differential] plays
// one seeded history on two stores and compares every answer.
//
// [Wrap], [Lossy], [Late] and [Counter] stand between a step and its store: they lose answers, hold writes back and
// count them. [Clock] moves when it is told to. The builders make small rows, jobs and definitions.
//
// It may not: import an adapter or a step, or be imported by anything but tests; those of scripts/incident also
// run as commands, to be read.
package pipelinetest
