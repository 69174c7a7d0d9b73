// Package sqlitestore is the embedded backend: store and queues in one SQLite file that several processes share,
// blobs as files beside it. What was acknowledged survives kill -9; with Config.FullSync also a power cut.
//
// It may decide: how a port's conditional write is said in SQL, how many of them share one transaction, how long to
// wait for another process. It may not: decide what a task becomes, read a clock for anything but its queues, or
// import more than package pipeline and its driver.
//
// Every write of a process goes through one connection (writer.go), many calls to a transaction. Each port method is
// one conditional statement, with one clause of its condition per line. A refused write reads the row in the same
// transaction. Reads have connections of their own and see every write that was answered.
//
// The file can be read with the sqlite3 shell alone: tasks have a column per field, jobs, items, replies and findings
// are JSON text.
package sqlitestore
