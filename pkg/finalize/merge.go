package finalize

import (
	"cmp"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// Merged is what became of the findings of the accepted bodies. Each is in Stay, is a contributor of one there, or is in
// Withdrawn: none is lost without a word.
type Merged struct {
	Stay      []pipeline.Finding
	Withdrawn []pipeline.Finding // replaced, and by nothing about the same place: with the reason
	into      map[string]string  // id of a contributing finding -> id of the one that stays
}

// standing is a finding that stays and all that were merged into it: what touches any of them is about the same.
type standing struct {
	pipeline.Finding
	members []pipeline.Finding
}

// Merge sorts the findings of the bodies that were accepted: an answered call's stand for those of the calls that it
// replaces; of several about one category in one place the gravest and surest stays and names the others, those that
// were replaced too; what the whole document lacks is said once. Gravest first, those without a place in the text last.
func Merge(d pipeline.Definition, job pipeline.Job, m pipeline.Manifest, bodies []pipeline.StageBody) Merged {
	stand, gone := replaced(d, bodies)
	out := Merged{into: map[string]string{}}
	slices.SortStableFunc(stand, byWeight)
	var kept []standing
	for _, f := range stand {
		if i := slices.IndexFunc(kept, func(k standing) bool { return same(k.Finding, f) }); i >= 0 {
			kept[i].take(f)
			out.into[f.ID] = kept[i].ID
			continue
		}
		f.State = pipeline.Confirmed
		kept = append(kept, standing{f, []pipeline.Finding{f}})
	}
	for _, f := range gone {
		if i := slices.IndexFunc(kept, func(k standing) bool { return k.covers(f) }); i >= 0 {
			kept[i].Finding = contribute(kept[i].Finding, f)
			out.into[f.ID] = kept[i].ID
			continue
		}
		f.State = pipeline.Withdrawn
		out.Withdrawn = append(out.Withdrawn, f)
	}
	for _, k := range kept {
		out.Stay = append(out.Stay, k.Finding)
	}
	out.Stay = append(out.Stay, absences(d, job, m, bodies, out.Stay)...)
	slices.SortStableFunc(out.Stay, byPlace)
	slices.SortStableFunc(out.Withdrawn, byPlace)
	return out
}

func (s *standing) take(f pipeline.Finding) {
	s.Finding = contribute(s.Finding, f)
	s.members = append(s.members, f)
}

func (s *standing) covers(f pipeline.Finding) bool {
	return slices.ContainsFunc(s.members, func(m pipeline.Finding) bool { return same(m, f) })
}

// why is the reason that a finding of the feed does not stay.
func (m Merged) why(id string) string {
	if into := m.into[id]; into != "" {
		return "part of " + into
	}
	for _, f := range m.Withdrawn {
		if f.ID == id {
			return f.Why
		}
	}
	return "no accepted stage reports it"
}

// replaced splits the findings by whether their call stands: a call that was answered stands for those it replaces,
// chunk by chunk; one that failed replaces nothing. Those that are gone say what stands for them.
func replaced(d pipeline.Definition, bodies []pipeline.StageBody) (stand, gone []pipeline.Finding) {
	type asked struct {
		chunk int
		call  string
	}
	by := map[asked]string{}
	for _, body := range bodies {
		for _, cell := range body.Cells {
			if cell.State != pipeline.CellAnswered {
				continue
			}
			call, _, _ := d.Find(cell.Call)
			for _, id := range call.Replaces {
				by[asked{body.Chunk, id}] = cell.Call
			}
		}
	}
	for _, body := range bodies {
		for _, f := range body.Findings {
			call := by[asked{body.Chunk, f.Call}]
			if call == "" {
				stand = append(stand, f)
				continue
			}
			f.Why = call + " stands for " + f.Call + " and reports nothing there"
			gone = append(gone, f)
		}
	}
	return stand, gone
}

// same says that both findings are about one thing: the same category in overlapping places. Those without a place
// are the same only if they say the same.
func same(a, b pipeline.Finding) bool {
	if a.ID == b.ID {
		return true
	}
	if a.Category != b.Category || a.Grounded() != b.Grounded() {
		return false
	}
	if a.Grounded() {
		return a.Start < b.End && b.Start < a.End
	}
	return a.Match == b.Match && a.Title == b.Title && strings.Join(strings.Fields(a.Quote), " ") == strings.Join(strings.Fields(b.Quote), " ")
}

func contribute(kept, f pipeline.Finding) pipeline.Finding {
	contributors := slices.Clone(kept.Contributors)
	for _, call := range append([]string{f.Call}, f.Contributors...) {
		if call != kept.Call && !slices.Contains(contributors, call) {
			contributors = append(contributors, call)
		}
	}
	slices.Sort(contributors)
	kept.Contributors = contributors
	return kept
}

// weight is severity x confidence: what decides which of two findings about one thing stays.
func weight(f pipeline.Finding) float64 {
	return float64(len(pipeline.Severities)-f.Severity.Rank()) * f.Confidence
}

func byWeight(a, b pipeline.Finding) int {
	return cmp.Or(
		cmp.Compare(weight(b), weight(a)),
		cmp.Compare(a.Severity.Rank(), b.Severity.Rank()),
		cmp.Compare(a.Start, b.Start),
		cmp.Compare(a.ID, b.ID),
	)
}

func byPlace(a, b pipeline.Finding) int {
	last := func(f pipeline.Finding) int {
		if f.Match == pipeline.MatchUngrounded {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(last(a), last(b)),
		cmp.Compare(a.Severity.Rank(), b.Severity.Rank()),
		cmp.Compare(b.Confidence, a.Confidence),
		cmp.Compare(a.Start, b.Start),
		cmp.Compare(a.ID, b.ID),
	)
}

// absences is one finding for each category that the document has nothing of. It takes an answer from every chunk, none
// of them as high as the category asks for, no finding that shows the opposite, and no call about it without an answer:
// of what was not judged in full nothing is said to be missing, and a document that was not read in full never is.
func absences(d pipeline.Definition, job pipeline.Job, m pipeline.Manifest, bodies []pipeline.StageBody, kept []pipeline.Finding) []pipeline.Finding {
	if len(m.Unread) > 0 {
		return nil
	}
	var found []pipeline.Finding
	for _, category := range d.Categories {
		if category.Absence == nil || category.Presence == "" || len(m.Chunks) == 0 {
			continue
		}
		if slices.ContainsFunc(kept, func(f pipeline.Finding) bool { return f.Category == category.ID && f.Grounded() }) {
			continue
		}
		chunks, highest := judged(category, bodies)
		if len(chunks) != len(m.Chunks) || highest >= category.PresenceMin {
			continue
		}
		if !whole(d, category.ID, len(m.Chunks), bodies) {
			continue
		}
		found = append(found, absence(category, job, m, chunks, highest))
	}
	return found
}

// whole says that every call that may find something of the category was answered, or was not needed, for every chunk.
func whole(d pipeline.Definition, category string, chunks int, bodies []pipeline.StageBody) bool {
	about, ended := map[string]bool{}, 0
	for _, stage := range d.Stages {
		for _, call := range stage.Calls {
			about[call.ID] = call.About(category)
			if about[call.ID] {
				ended -= chunks
			}
		}
	}
	for _, body := range bodies {
		for _, cell := range body.Cells {
			if about[cell.Call] && (cell.State == pipeline.CellAnswered || cell.State == pipeline.CellGated) {
				ended++
			}
		}
	}
	return ended >= 0
}

// judged is the chunks whose presence call was answered with a value, and the highest of the values.
func judged(category pipeline.Category, bodies []pipeline.StageBody) (chunks []int, highest float64) {
	for _, body := range bodies {
		cell, ok := body.Answered(category.Presence)
		if !ok || cell.Value == nil {
			continue
		}
		chunks = append(chunks, body.Chunk)
		highest = max(highest, *cell.Value)
	}
	slices.Sort(chunks)
	return slices.Compact(chunks), highest
}

func absence(category pipeline.Category, job pipeline.Job, m pipeline.Manifest, chunks []int, highest float64) pipeline.Finding {
	confidence := 1.0
	if category.PresenceMin > 0 {
		confidence = 1 - highest/category.PresenceMin/2 // 1 if nothing came near, one half if something almost did
	}
	f := pipeline.Finding{
		State: pipeline.Confirmed, Category: category.ID, Call: category.Presence,
		Severity: category.Absence.Severity, Title: category.Absence.Title,
		Start: -1, End: -1, Match: pipeline.MatchAbsence,
		Rationale: category.Absence.Rationale, Suggestion: category.Absence.Suggestion,
		Confidence: confidence, Chunk: -1, Model: job.Model, Chunks: chunks,
	}
	f.ID = pipeline.FindingID(m.Document, f)
	return f
}
