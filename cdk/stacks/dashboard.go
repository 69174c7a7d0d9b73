package stacks

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"holdfast/pkg/telemetry"
)

// addDashboard shows on one page whether the work goes on, and what it costs.
func (w *workers) addDashboard() {
	live, dead := w.queueNames()
	var waiting, ages, letters []awscloudwatch.IMetric
	for _, name := range live {
		waiting = append(waiting, ofQueue(name, "ApproximateNumberOfMessagesVisible"), ofQueue(name, "ApproximateNumberOfMessagesNotVisible"))
		ages = append(ages, ofQueue(name, "ApproximateAgeOfOldestMessage"))
	}
	for _, name := range dead {
		letters = append(letters, ofQueue(name, "ApproximateNumberOfMessagesVisible"))
	}
	awscloudwatch.NewDashboard(w.stack, text("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: text(w.Stack),
		Widgets: &[]*[]awscloudwatch.IWidget{
			{
				graph("Cells finished and calls paid", w.ours(telemetry.CellsFinished), w.ours(telemetry.PaidCalls)),
				graph("Tasks abandoned, rows that nobody claims", w.ours(telemetry.TasksAbandoned), w.ours(telemetry.Unclaimable)),
			},
			{graph("Messages waiting and at work", waiting...), graph("Age of the oldest message, seconds", ages...)},
			{graph("Dead letters", letters...), graph("Sweeps", w.ours(telemetry.Sweeps))},
		},
	})
}

func graph(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: text(title), Left: &metrics, Width: number(12), Height: number(6)})
}
