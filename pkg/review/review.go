// Package review makes questions of a definition and findings of replies: which calls of a stage are asked about a
// chunk and with which words, whether an answer is what was asked for, and where in the text its quotes stand.
//
// It may decide: that a gate leaves a call out, that an answer is malformed, that a quote has a place in the text.
// It may not: ask a model, store anything, guess what an answer or a quote was meant to be, or decide what only the
// whole document can say.
package review

import (
	"sync"

	"holdfast/pkg/pipeline"
)

// Reviewer implements [pipeline.Reviewer]. It keeps parsed templates and compiled schemas, by their text, and may be
// used from any goroutine.
type Reviewer struct {
	templates sync.Map // text -> *template.Template
	schemas   sync.Map // text -> *jsonschema.Schema
}

var _ pipeline.Reviewer = (*Reviewer)(nil)

// New is a reviewer that has parsed nothing yet.
func New() *Reviewer { return &Reviewer{} }
