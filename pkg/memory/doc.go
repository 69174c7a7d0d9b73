// Package memory is the reference backend: a store, its blobs and a queue in maps. The other backends are compared
// with it, and the tests of the steps and of the whole pipeline (pkg/wiring) run on it.
//
// It enforces what DynamoDB and SQS enforce: items of at most 400 KB, pages of at most 1 MB, batches of 25, 100 and 10
// with partial results. Every condition is written one clause to a line, so that each can be broken alone and a test
// must notice.
//
// It may not: decide anything that a port's comment does not say, start a goroutine, or read a clock but the one that
// a queue is given.
package memory
