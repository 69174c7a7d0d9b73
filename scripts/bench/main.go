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
	one := flag.String("one", "", "run this contender once, and print its report")
	latency := flag.Duration("latency", full.Latency, "of a call, with -one")
	atOnce := flag.Int("at-once", full.AtOnce, "calls, with -one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *one != "" {
		full.Latency, full.AtOnce = *latency, *atOnce
		exitOn(runOne(ctx, *one))
		return
	}
	exitOn(b.run(ctx))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runOne is for a look with a profile.
func runOne(ctx context.Context, contender string) error {
	r, err := child{Contender: contender, Load: full}.run(ctx)
	if err != nil {
		return err
	}
	r.FeedLag = nil
	fmt.Printf("%s %+v, %.3f ms CPU a call\n", contender, r, float64(r.CPU)/float64(r.Calls)/1e6)
	return nil
}
