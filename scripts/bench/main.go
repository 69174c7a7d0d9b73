// Command bench prints the embedded figures beside anchors that do the same work in the same minute. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		exitOn(childMain())
		return
	}
	var b bench
	flag.BoolVar(&b.quick, "quick", false, "a short look: fewer runs of everything")
	flag.StringVar(&b.only, "only", "", "print only the figures whose names match this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exitOn(b.run(ctx))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
