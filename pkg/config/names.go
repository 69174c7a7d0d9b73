// Package config is what is set from outside: the names of queues and tables, a policy file, and model prices.
//
// It may decide: what a file may say, and where the mistake in it is. It may not: read the environment, open a store,
// or hold a number about retrying that is not in pipeline.Policy.
package config

// Names of what a deployment has. The embedded backend uses the same ones, so that a message means the same anywhere.
const (
	ControlQueue     = "holdfast-control"     // splits and finalizes
	WorkQueue        = "holdfast-work"        // chunks
	PipelineTable    = "holdfast-pipeline"    // jobs, tasks, budgets, findings, limits
	CheckpointsTable = "holdfast-checkpoints" // bodies, records, journals, replies
	Bucket           = "holdfast"             // documents, definitions, results
)

// DeadLetters is the name of a queue's dead-letter queue.
func DeadLetters(queue string) string { return queue + "-dead" }
