// Package stacks describes a deployment of Holdfast on AWS: the stack State, which keeps what a job is made of and
// outlives everything, and the stack Workers, which can be thrown away and made again.
//
// It may decide: how many, how large, who may do what, what is watched and what that costs. It may not hold a number
// about retrying or time that is not in pipeline.Policy, nor a name or a shape of a table, queue or bucket: those are
// read from the packages that use them. Nothing in it looks anything up on an account.
package stacks
