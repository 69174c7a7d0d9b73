package stacks

// Names of what the processes measure.
const (
	metricNamespace = "Holdfast"
	stackDimension  = "Stack"

	abandonedTasks = "AbandonedTasks"
	unclaimable    = "UnclaimableRows"
	sweeps         = "ReaperSweeps"
	paidCalls      = "PaidCalls"
	finishedCells  = "FinishedCells"
)
