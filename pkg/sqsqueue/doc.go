// Package sqsqueue is the two queues of a deployment in SQS: standard queues with one dead-letter queue each.
//
// A tenant is a message group, so that one that floods the queue does not keep the others waiting. A receipt counts for
// the visibility timeout and no longer: SQS takes old ones too, and might remove another worker's delivery by them.
//
// It may not: decide anything that [pipeline.Queue] does not say, or let a type of the AWS SDK out.
package sqsqueue
