// Program record stands between the processes of a deployment and LocalStack, and writes down what each asks of AWS: the
// file that the tests compare the roles with. A process is the first part of the path of its requests:
//
//	record -to http://127.0.0.1:4566 -listen 127.0.0.1:4570 -stack holdfast -out FILE
//
// and the processes' endpoint is http://127.0.0.1:4570/PROCESS. The file is written anew with every new request, so it is
// whole whenever the program ends.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"holdfast/cdk/access"
)

func main() {
	to := flag.String("to", "http://127.0.0.1:4566", "address of the services")
	listen := flag.String("listen", "127.0.0.1:4570", "where the processes ask")
	stack := flag.String("stack", "holdfast", "the deployment's name")
	out := flag.String("out", "", "file of what was seen; what it has is kept")
	flag.Parse()
	if err := run(*to, *listen, *stack, *out); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(to, address, stack, out string) error {
	target, err := url.Parse(to)
	if err != nil || target.Host == "" || out == "" {
		return errors.New("usage: record -to URL -listen ADDRESS -stack NAME -out FILE")
	}
	r := &recorder{stack: stack, out: out}
	if err := r.record.Load(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Handler: r.before(httputil.NewSingleHostReverseProxy(target)), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-ended:
		return err
	}
}

type recorder struct {
	mu         sync.Mutex
	stack, out string
	record     access.Record
}

// before notes each request, then passes it on without the process in its path.
func (r *recorder) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		process, path, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
		q.URL.Path, q.URL.RawPath = "/"+path, ""
		if err := r.note(process, q, body); err != nil {
			fmt.Fprintf(os.Stderr, "record: %s: %v\n", process, err)
		}
		next.ServeHTTP(w, q)
	})
}

func (r *recorder) note(process string, q *http.Request, body []byte) error {
	asked, err := access.Read(q, body)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, each := range asked {
		r.record.Add(process, r.stack, each)
	}
	return r.record.Save(r.out)
}
