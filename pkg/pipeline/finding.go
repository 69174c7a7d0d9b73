package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Severity of a finding.
type Severity string

// The severities, gravest first.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
	Info     Severity = "info"
)

// Severities are all of them, gravest first.
var Severities = []Severity{Critical, High, Medium, Low, Info}

// Rank is 0 for the gravest; unknown ones come last.
func (s Severity) Rank() int {
	for i, other := range Severities {
		if s == other {
			return i
		}
	}
	return len(Severities)
}

// Valid says that s is one of Severities.
func (s Severity) Valid() bool { return s.Rank() < len(Severities) }

func severityNames() string {
	names := make([]string, len(Severities))
	for i, s := range Severities {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// Match says how a quote was found in the text.
type Match string

// The matches. Only what was found exactly, or but for spaces and punctuation, has a place in the text.
const (
	MatchExact      Match = "exact"
	MatchNormalised Match = "normalised"
	MatchUngrounded Match = "ungrounded" // not in the text: shown last, never marked in it
	MatchAbsence    Match = "absence"    // about the document: there is nothing to quote
)

// FindingState says how far a finding has come.
type FindingState string

// A finding is provisional when its stage ends, then confirmed or withdrawn by the finalize.
const (
	Provisional FindingState = "provisional"
	Confirmed   FindingState = "confirmed"
	Withdrawn   FindingState = "withdrawn"
)

// Finding is what a stage reports about the text. Offsets are bytes into the stored text (UTF-8), document-wide.
type Finding struct {
	ID           string       `json:"id"`
	State        FindingState `json:"state"`
	Category     string       `json:"category"`
	Analyst      string       `json:"analyst,omitempty"`
	Call         string       `json:"call"`
	Severity     Severity     `json:"severity"`
	Title        string       `json:"title"`
	Quote        string       `json:"quote"` // verbatim from the text if grounded, else as the model gave it
	Start        int          `json:"start"` // -1 if it has no place
	End          int          `json:"end"`
	Match        Match        `json:"match"`
	Clause       string       `json:"clause,omitempty"` // number or heading of the clause it stands in
	Rationale    string       `json:"rationale"`
	Suggestion   string       `json:"suggestion,omitempty"`
	Confidence   float64      `json:"confidence"`
	Chunk        int          `json:"chunk"` // -1 for the document
	Model        string       `json:"model"`
	Contributors []string     `json:"contributors,omitempty"` // calls whose findings were merged into this one
	Chunks       []int        `json:"chunks,omitempty"`       // for an absence: the chunks that were judged
	Why          string       `json:"why,omitempty"`          // for a withdrawn one: the reason
}

// Grounded says that the finding has a place in the text.
func (f Finding) Grounded() bool { return f.Match == MatchExact || f.Match == MatchNormalised }

// About says that the call may find something of the category: it is about it, or finds things and names none.
func (c Call) About(category string) bool {
	return c.Category == category || (c.Category == "" && c.Findings != "")
}

// FindingID is the same for the same finding of the same text, whichever attempt made it.
func FindingID(document string, f Finding) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d\x00%d\x00%s", document, f.Category, f.Call, f.Title, f.Start, f.End, f.Quote))
	return "f" + hex.EncodeToString(sum[:6])
}

// FindingGroup is what one stage of one task put on the feed.
type FindingGroup struct {
	Seq        int64     `json:"seq"` // set by the store; the cursor
	Job        JobID     `json:"job"`
	Task       TaskID    `json:"task"`
	Stage      int       `json:"stage"`
	Generation int64     `json:"generation"`
	Findings   []Finding `json:"findings"`
	At         Instant   `json:"at"`
}
