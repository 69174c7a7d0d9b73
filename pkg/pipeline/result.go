package pipeline

// Result is what finalize decided: the end of a job under one epoch.
type Result struct {
	Job        Job       `json:"job"`
	Epoch      int64     `json:"epoch"`
	Generation int64     `json:"generation"`
	Status     JobStatus `json:"status"`
	Reason     Failure   `json:"reason,omitzero"`
	Manifest   Manifest  `json:"manifest"`
	Counts     Counts    `json:"counts"`
	Missing    []Cell    `json:"missing,omitempty"`   // every cell that was neither answered nor gated, with its reason
	Findings   []Finding `json:"findings"`            // confirmed, gravest first, ungrounded last
	Withdrawn  []Finding `json:"withdrawn,omitempty"` // replaced by calls that report nothing there, each with its reason
	Tasks      []TaskEnd `json:"tasks"`               // how each task ended
	Attempts   []Record  `json:"attempts"`            // all that count, for the timeline and the reasons
	Spend      Spend     `json:"spend"`
	At         Instant   `json:"at"`
}

// Counts is how the cells ended.
type Counts struct {
	Cells    int `json:"cells"`
	Answered int `json:"answered"`
	Reused   int `json:"reused"` // of Answered: by replies that other jobs had paid for
	Asked    int `json:"asked"`  // replies that this job got itself; several cells may share one
	Failed   int `json:"failed"`
	Gated    int `json:"gated"`
	NotAsked int `json:"not_asked"`
}

// Add counts how cells ended; Cells and Asked are the caller's.
func (c *Counts) Add(cells ...Cell) {
	for _, cell := range cells {
		switch cell.State {
		case CellAnswered:
			c.Answered++
			if cell.Reused {
				c.Reused++
			}
		case CellFailed:
			c.Failed++
		case CellGated:
			c.Gated++
		default:
			c.NotAsked++
		}
	}
}

// TaskEnd is how a task ended.
type TaskEnd struct {
	Task     TaskID     `json:"task"`
	Status   TaskStatus `json:"status"`
	Accepted int        `json:"accepted"`
	Stages   int        `json:"stages"`
	Reason   Failure    `json:"reason,omitzero"`
	Label    string     `json:"label,omitempty"` // "cancelled-at-stage-3"
}

// Spend is what a job used, from the records of its attempts.
type Spend struct {
	Tries    int          `json:"tries"`
	Unnamed  int          `json:"unnamed"`  // known by number only, counted as spent
	Unsure   int          `json:"unsure"`   // perhaps billed twice
	Failures map[Kind]int `json:"failures"` // tries that failed, by kind
	Usage    Usage        `json:"usage"`
	Cost     Money        `json:"cost"` // at the model's price; what it would be for a free one
}

// Plan is what a job may cost, before it starts.
type Plan struct {
	Chunks    int       `json:"chunks"`
	Calls     int       `json:"calls"` // per chunk
	Cells     int       `json:"cells"`
	PerTry    int       `json:"tries_per_cell"` // at most
	Input     int       `json:"input_tokens"`   // of one try of each cell
	MaxOutput int       `json:"max_output_tokens"`
	Largest   Money     `json:"largest_try"`   // the dearest single try of any cell
	Dearest   Money     `json:"dearest_tries"` // one try of every cell, each re-asked, escalated, and with all that it may show
	Stored    int       `json:"stored"`        // cells whose reply is stored already
	Once      Money     `json:"once"`          // one try of each that is not stored, with the longest answer: most are shorter
	Expected  Money     `json:"expected"`
	Worst     Money     `json:"worst"` // the ceiling that is enforced, unless MaxCost is lower
	Ceiling   Money     `json:"ceiling"`
	FailShare float64   `json:"fail_share"` // measured or assumed share of tries that fail
	Model     ModelInfo `json:"model"`
}

// PerCell is what a cell's dearest try costs on average, rounded up.
func (p Plan) PerCell() Money {
	cells := Money(max(1, p.Cells))
	return (p.Dearest + cells - 1) / cells
}
