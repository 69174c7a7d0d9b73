// Package unread is the reasons why a source is not read. It stands apart so that each format of ingest can say them:
// every error of theirs wraps one and says what to do.
package unread

import "errors"

// The reasons. All are permanent: the same bytes never read better.
var (
	ErrTooLarge  = errors.New("too large")
	ErrFormat    = errors.New("not a document that is read")
	ErrDamaged   = errors.New("damaged")
	ErrEncrypted = errors.New("needs a password")
	ErrEncoding  = errors.New("encoding not recognised")
	ErrNoText    = errors.New("no text")
)
