package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/work"
)

const (
	eventsRoom  = 1024        // events that wait for a supervisor to read
	eventsGrace = time.Second // how long the last of them may take when the worker ends
)

// eventWriter prints events as JSON lines for a supervisor. The work never waits for it: a supervisor that does not read,
// e.g. one that was stopped by Ctrl-Z, misses events. They are its display; what happened is in the store.
type eventWriter struct {
	mu      sync.Mutex // write against close
	closed  bool
	lines   chan []byte
	over    chan struct{}
	dropped atomic.Int64
}

// newEventWriter prints nothing for a worker without a supervisor.
func newEventWriter(out io.Writer, supervised bool) *eventWriter {
	w := &eventWriter{lines: make(chan []byte, eventsRoom), over: make(chan struct{}), closed: !supervised}
	if !supervised {
		close(w.over)
		return w
	}
	go w.print(bufio.NewWriter(out)) // it may hang in the pipe until the process ends: nobody waits for it but close
	return w
}

// print ends when the writer is closed and all is printed.
func (w *eventWriter) print(out *bufio.Writer) {
	defer close(w.over)
	for line := range w.lines {
		_, _ = out.Write(line) // a supervisor that has gone loses nothing
		if len(w.lines) == 0 {
			_ = out.Flush()
		}
	}
	_ = out.Flush()
}

func (w *eventWriter) write(e work.Event) {
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	select {
	case w.lines <- append(line, '\n'):
	default:
		w.dropped.Add(1)
	}
}

// close waits a moment for what is not printed yet, and returns how many events were dropped.
func (w *eventWriter) close(clock pipeline.Clock) (dropped int64) {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.lines)
	}
	w.mu.Unlock()
	wait, stop := context.WithCancel(context.Background())
	defer stop()
	var group pipeline.Group
	group.Go(func() {
		select {
		case <-w.over:
			stop()
		case <-wait.Done():
		}
	})
	_ = clock.Sleep(wait, eventsGrace)
	stop()
	group.Wait()
	return w.dropped.Load()
}
