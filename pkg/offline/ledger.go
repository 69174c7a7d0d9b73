package offline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"holdfast/pkg/pipeline"
)

// Event says which line of a try it is.
type Event string

// A try is two lines: Begin before anything is computed, End right before it returns. A killed worker leaves Begin.
const (
	Begin Event = "begin"
	End   Event = "end"
)

// Outcomes of a try, besides failure kinds.
const (
	OK      = "ok"      // it answered
	Dropped = "dropped" // the caller's context ended first
)

// Entry is one line of the ledger.
type Entry struct {
	At      pipeline.Instant  `json:"at"`
	Event   Event             `json:"event"`
	Key     pipeline.ReplyKey `json:"key"`
	Worker  string            `json:"worker,omitempty"`
	Process int               `json:"process"`
	Nonce   string            `json:"nonce"` // of this one try, the same in both lines
	Outcome string            `json:"outcome,omitempty"`
}

// ledger appends to a file that many processes share.
type ledger struct {
	path    string
	worker  string
	process int
	nonce   string
	calls   atomic.Int64

	mu   sync.Mutex
	file *os.File
}

// write puts one line with one write, so that lines of several processes never mix. It begins with a line break too: a
// line that a kill or a full disk cut short spoils no other.
func (l *ledger) write(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode ledger line: %w", err)
	}
	file, err := l.open()
	if err != nil {
		return err
	}
	if _, err := file.Write(append(append([]byte{'\n'}, line...), '\n')); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

func (l *ledger) open() (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		return l.file, nil
	}
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l.file = file
	return file, nil
}

func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// begin writes the first line of a try and gives its nonce.
func (m *Model) begin(key pipeline.ReplyKey) (string, error) {
	if m.ledger == nil {
		return "", nil
	}
	call := fmt.Sprintf("%s-%d", m.ledger.nonce, m.ledger.calls.Add(1))
	return call, m.record(Entry{Event: Begin, Key: key, Nonce: call})
}

func (m *Model) end(call string, key pipeline.ReplyKey, fault Fault, err error) error {
	if m.ledger == nil {
		return nil
	}
	return m.record(Entry{Event: End, Key: key, Nonce: call, Outcome: outcome(fault, err)})
}

// record writes a line. A ledger that cannot be written is a fault of the bench, never an answer.
func (m *Model) record(e Entry) error {
	e.At, e.Worker, e.Process = m.cfg.Clock.Now(), m.ledger.worker, m.ledger.process
	if err := m.ledger.write(e); err != nil {
		return &pipeline.ModelError{Failure: pipeline.Fail(pipeline.Unavailable, "%v", err), Err: err}
	}
	return nil
}

func outcome(fault Fault, err error) string {
	var failed *pipeline.ModelError
	switch {
	case errors.As(err, &failed):
		return string(failed.Kind)
	case err != nil:
		return Dropped
	case fault != "": // malformed or truncated: an answer that nobody can use
		return string(fault)
	}
	return OK
}

// ReadLedger is the ledger's entries in the order in which they were written. Lines that a kill cut short are skipped.
func ReadLedger(path string) ([]Entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	defer func() { _ = file.Close() }() // only read from
	return readEntries(file)
}

func readEntries(from io.Reader) ([]Entry, error) {
	var all []Entry
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		var e Entry
		if json.Unmarshal(line, &e) == nil && (e.Event == Begin || e.Event == End) && e.Nonce != "" {
			all = append(all, e)
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, fmt.Errorf("read ledger: %w", err)
		}
	}
}

// Repeated is why keys were asked for again: each begin of a key after its first is one of these.
type Repeated struct {
	Stored   int // after its reply was stored: never right
	InFlight int // while the try before it had not ended: its worker was killed, or frozen
	Unstored int // the try before it answered, but the answer was not stored
	Failed   int // the try before it failed

	StoredKeys []pipeline.ReplyKey // what Stored counts
}

// Repeats compares the ledger with the times at which replies were stored.
func Repeats(entries []Entry, storedAt map[pipeline.ReplyKey]pipeline.Instant) Repeated {
	var r Repeated
	last := map[pipeline.ReplyKey]string{} // the nonce of each key's last try
	outcomes := map[string]string{}        // by nonce, of the tries that have ended so far
	for _, e := range entries {
		if e.Event == End {
			outcomes[e.Nonce] = e.Outcome
			continue
		}
		before, repeated := last[e.Key]
		last[e.Key] = e.Nonce
		if !repeated {
			continue
		}
		outcome, ended := outcomes[before]
		switch stored := storedAt[e.Key]; {
		case stored != 0 && e.At > stored:
			r.Stored++
			r.StoredKeys = append(r.StoredKeys, e.Key)
		case !ended:
			r.InFlight++
		case outcome == OK:
			r.Unstored++
		default:
			r.Failed++
		}
	}
	return r
}
