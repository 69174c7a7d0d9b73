// Program record stands between the processes of a deployment and LocalStack, an address for each process, and writes
// down what each asks of AWS: the file that the tests compare the roles with.
//
//	record -to http://127.0.0.1:4566 -stack holdfast -out FILE work=127.0.0.1:4601 reap=127.0.0.1:4602 ...
//
// The file is written anew with every new request, so it is whole whenever the program ends.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"holdfast/cdk/access"
)

func main() {
	to := flag.String("to", "http://127.0.0.1:4566", "address of the services")
	stack := flag.String("stack", "holdfast", "the deployment's name")
	out := flag.String("out", "", "file of what was seen; what it has is kept")
	flag.Parse()
	if err := run(*to, *stack, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(to, stack, out string, listen []string) error {
	target, err := url.Parse(to)
	if err != nil || target.Host == "" || out == "" || len(listen) == 0 {
		return errors.New("usage: record -to URL -stack NAME -out FILE PROCESS=ADDRESS ...")
	}
	r := &recorder{stack: stack, out: out}
	if err := r.record.Load(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := make(chan error, len(listen))
	for _, each := range listen {
		process, address, is := strings.Cut(each, "=")
		if !is {
			return fmt.Errorf("%q is no PROCESS=ADDRESS", each)
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		server := &http.Server{Addr: address, Handler: r.before(process, proxy)}
		go func() { ended <- server.ListenAndServe() }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

type recorder struct {
	mu         sync.Mutex
	stack, out string
	record     access.Record
}

// before notes each request of a process, then passes it on.
func (r *recorder) before(process string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
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
