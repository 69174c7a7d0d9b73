// Package access tells what a process asks of AWS in the terms in which IAM decides: action, resource, leading keys of
// rows, attributes. It reads requests as they go by, keeps what was seen of each process in a file, and says of a policy
// whether it allows a request.
//
// It may not: know what a process is for, or send a request.
package access
