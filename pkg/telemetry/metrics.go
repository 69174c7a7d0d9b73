// Package telemetry is what a deployment counts about itself: the names of its metrics, and the log lines that carry
// them. An alarm and whoever counts for it read the same names here.
//
// It may decide how a count is written down. It may not decide what happened, send anything anywhere, or read a clock.
package telemetry

// Namespace of all metrics, and their one dimension: the stack's name.
const (
	Namespace = "Holdfast"
	Dimension = "Stack"
)

// Metric is one of the deployment's own counts. All are sums: what a period had of it.
type Metric string

// The metrics. Queues and functions have their own, from AWS.
const (
	TasksAbandoned Metric = "TasksAbandoned" // tasks that were given up
	PaidCalls      Metric = "PaidCalls"      // calls that were sent and may be billed
	CellsFinished  Metric = "CellsFinished"  // cells of stages that were accepted
	Unclaimable    Metric = "Unclaimable"    // rows that were rung past the policy's MaxRings, each time that they are
	Sweeps         Metric = "Sweeps"         // sweeps of the reaper that went through: when it is missing, the reaper is silent
)

// Metrics are all of them.
func Metrics() []Metric {
	return []Metric{TasksAbandoned, PaidCalls, CellsFinished, Unclaimable, Sweeps}
}
