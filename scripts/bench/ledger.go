package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
	"holdfast/pkg/wiring/embedded"
)

// root is the repository, as seen from this folder, in which the bench runs.
var root = filepath.Join("..", "..")

// program is the real command line, built once for the figures of real processes.
func (b *bench) program(ctx context.Context) (string, error) {
	if b.built != "" {
		return b.built, nil
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-bin-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "holdfast")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./pkg/cmd/holdfast")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build holdfast: %w: %s", err, out), os.RemoveAll(dir))
	}
	b.built = path
	return path, nil
}

// supervised is one `holdfast run` of the work with the offline model: a supervisor and its worker processes.
type supervised struct {
	dir    string
	store  string
	path   string // of the ledger
	cmd    *exec.Cmd
	out    bytes.Buffer
	errOut bytes.Buffer
	done   chan error

	file    *os.File
	lines   *bufio.Reader
	part    []byte // of a line that is not whole yet
	entries []offline.Entry
	begins  int
}

// supervise starts a run with one worker.
func (b *bench) supervise(ctx context.Context, atOnce int, more ...string) (*supervised, error) {
	program, err := b.program(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-run-")
	if err != nil {
		return nil, err
	}
	text, err := document(full.Chunks, "A")
	if err != nil {
		return nil, err
	}
	s := &supervised{dir: dir, store: filepath.Join(dir, "store"), path: filepath.Join(dir, "ledger"), done: make(chan error, 1)}
	name := filepath.Join(dir, "contract.txt")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if s.file, err = os.OpenFile(s.path, os.O_CREATE|os.O_RDONLY, 0o600); err != nil {
		return nil, err
	}
	s.lines = bufio.NewReader(s.file)
	args := append([]string{
		"--store", s.store, "run", name, "--json", "--out", filepath.Join(dir, "out"),
		"--workers", "1", "--concurrency", fmt.Sprint(atOnce), "--pace", full.Latency.String(), "--ledger", s.path,
	}, more...)
	s.cmd = exec.CommandContext(ctx, program, args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.errOut
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.done <- s.cmd.Wait() }()
	return s, nil
}

// look takes what the ledger has new. A line that is not whole yet waits for the next look.
func (s *supervised) look() {
	for {
		line, err := s.lines.ReadBytes('\n')
		s.part = append(s.part, line...)
		if err != nil {
			return
		}
		var e offline.Entry
		if json.Unmarshal(s.part, &e) == nil && e.Nonce != "" {
			s.entries = append(s.entries, e)
			if e.Event == offline.Begin {
				s.begins++
			}
		}
		s.part = s.part[:0]
	}
}

// errOver says that the run ended before what was waited for.
var errOver = errors.New("the run ended too early")

// until looks until something holds of the ledger.
func (s *supervised) until(ctx context.Context, holds func() bool) error {
	for {
		s.look()
		if holds() {
			return nil
		}
		select {
		case err := <-s.done:
			s.done <- err
			if s.look(); holds() {
				return nil
			}
			return fmt.Errorf("%w: %w: %s", errOver, err, bytes.TrimSpace(s.errOut.Bytes()))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// worker is the process that asked last.
func (s *supervised) worker() int { return s.entries[len(s.entries)-1].Process }

// firstOfOther is when another process than that first asked.
func (s *supervised) firstOfOther(process, from int) (pipeline.Instant, bool) {
	for _, e := range s.entries[from:] {
		if e.Event == offline.Begin && e.Process != process {
			return e.At, true
		}
	}
	return 0, false
}

// ends waits for the end of the run.
func (s *supervised) ends(ctx context.Context) error {
	select {
	case err := <-s.done:
		s.done <- err
		s.look()
		if err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(s.errOut.Bytes()))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// system opens the run's store beside its processes.
func (s *supervised) system(ctx context.Context) (*wiring.System, func() error, error) {
	policy := pipeline.DefaultPolicy()
	back, err := embedded.Open(ctx, embedded.Config{Dir: s.store}, policy)
	if err != nil {
		return nil, nil, err
	}
	return wiring.New(back, wiring.Config{Tenant: "local", Worker: "bench", Policy: policy}), back.Close, nil
}

// close ends what is left of the run and removes its folder.
func (s *supervised) close() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	err := <-s.done
	s.done <- err
	_ = s.file.Close()
	_ = os.RemoveAll(s.dir)
}

// logBytes is how much the workers have logged.
func (s *supervised) logBytes() (n int64, err error) {
	logs, err := filepath.Glob(filepath.Join(s.store, "logs", "*.log"))
	for _, name := range logs {
		file, err := os.Open(name)
		if err != nil {
			return n, err
		}
		size, err := io.Copy(io.Discard, file)
		_ = file.Close()
		if err != nil {
			return n, err
		}
		n += size
	}
	return n, err
}
