// Package dynamostore keeps everything but blobs in two DynamoDB tables: the rows that the claim protocol writes, and
// what is written once beside them.
//
// Each method of the ports is one conditional write of one row, made again where others wrote it in between, one page of
// a query, or one batch; Submit, Redrive and the append to a feed are transactions, and only Mark, Unmark and Forget go
// over all items of a job. A column that is missing counts as its zero, in conditions as in reads, so that rows of older versions
// can be claimed and are capped. Every condition is written one clause to a line.
//
// It may not: decide anything that a port's comment does not say, read a clock but the one of its [Keeping], or let a type
// of the AWS SDK out.
package dynamostore
