package stacks

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"holdfast/pkg/sqsqueue"
	"holdfast/pkg/telemetry"
)

// look is how often an alarm looks, and over how long.
const look = 5 * time.Minute

// ours is a metric that the processes write into their logs.
func (w *workers) ours(name telemetry.Metric) awscloudwatch.Metric {
	return metric(telemetry.Namespace, string(name), "Sum", map[string]string{telemetry.Dimension: w.Stack})
}

// ofQueue is a metric of SQS.
func ofQueue(queue, name string) awscloudwatch.Metric {
	return metric("AWS/SQS", name, "Maximum", map[string]string{"QueueName": queue})
}

func metric(namespace, name, statistic string, dimensions map[string]string) awscloudwatch.Metric {
	of := map[string]*string{}
	for key, value := range dimensions {
		of[key] = text(value)
	}
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: text(namespace), MetricName: text(name), Statistic: text(statistic), Period: duration(look), DimensionsMap: &of,
	})
}

// math is an expression over metrics.
func math(expression, label string, of map[string]awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: text(expression), Label: text(label), UsingMetrics: &of, Period: duration(look),
	})
}

// queueNames of the deployment: those that deliver, and their dead-letter queues.
func (w *workers) queueNames() (live, dead []string) {
	for _, queue := range queues {
		name, letters := sqsqueue.Names(w.Stack, queue)
		live, dead = append(live, name), append(dead, letters)
	}
	return live, dead
}
