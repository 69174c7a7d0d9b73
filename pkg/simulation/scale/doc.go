// Package scale runs large deployments in virtual time: the real steps over the memory backend, behind the limits that
// AWS puts on a table and on queues. README.md has what they showed and what a deployment of that size needs.
//
// It holds tests alone. They count: write and read units of every partition in every second by AWS's rounding and the
// keys of pkg/dynamostore, messages in flight, calls, deferrals. They assert that nothing is lost, that nothing is asked
// twice, that no partition comes to its limit, and that equal documents end together. Nothing is measured in real time.
package scale
