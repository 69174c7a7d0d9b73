package function

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"holdfast/pkg/pipeline"
)

// sickAfter is how long a process may be silent: its sweeps are the beat, and one takes at most sweepTime.
const sickAfter = 3 * sweepTime

// heart is when the process last did what it does all the time.
type heart struct {
	mu   sync.Mutex
	last time.Duration // by the monotonic clock
}

func (p *Process) beat() {
	p.heart.mu.Lock()
	defer p.heart.mu.Unlock()
	p.heart.last = p.Clock.Mono()
}

// Silent is how long ago the process last beat.
func (p *Process) Silent() time.Duration {
	p.heart.mu.Lock()
	defer p.heart.mu.Unlock()
	return p.Clock.Mono() - p.heart.last
}

// ServeHTTP says whether the process is well: 200 while it beats or drains, 503 when it is silent.
func (p *Process) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if silent := p.Silent(); silent > sickAfter && p.drain.Err() == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "silent for %v\n", silent.Round(time.Second))
		return
	}
	fmt.Fprintln(w, "well")
}

// Health serves ServeHTTP at the address until stop is called.
func (p *Process) Health(address string) (stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for health checks: %w", err)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: localTimeout}
	var group pipeline.Group
	group.Go(func() { _ = server.Serve(listener) }) // ends with Close
	return func() {
		_ = server.Close()
		group.Wait()
	}, nil
}

// CheckHealth asks a process at an address whether it is well: what the container's health check runs.
func CheckHealth(ctx context.Context, address string) error {
	ctx, stop := context.WithTimeout(ctx, localTimeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	return nil
}
