package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// bench is one printing of the figures.
type bench struct {
	quick bool
	only  string

	postgres, redis *server
	built           string // the command line
}

// part is a group of figures that are measured together.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

var parts = []part{
	{"makespan", (*bench).makespan},
	{"speed at zero latency", (*bench).speed},
	{"crash and stop", (*bench).crashes},
	{"cancel", (*bench).cancels},
	{"memory and log", (*bench).memory},
	{"quota, in virtual time: four workers, ten documents at once", (*bench).quota},
}

// runs is n, or fewer for a short look.
func (b *bench) runs(n, quick int) int {
	if b.quick {
		return quick
	}
	return n
}

func (b *bench) run(ctx context.Context) error {
	only, err := regexp.Compile(b.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	defer b.cleanUp()
	b.head()
	var errs []error
	for _, p := range parts {
		if !only.MatchString(p.name) || ctx.Err() != nil {
			continue
		}
		fmt.Printf("\n%s\n", p.name)
		if err := p.run(b, ctx); err != nil {
			fmt.Printf("  not measured: %v\n", err)
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	fmt.Printf("\nload average at the end: %s\n", loadAverage())
	return errors.Join(errs...)
}

func (b *bench) cleanUp() {
	if b.built != "" {
		_ = os.RemoveAll(filepath.Dir(b.built)) // a leftover in the temporary folder
	}
}

// head prints what a reader needs to judge the figures.
func (b *bench) head() {
	fmt.Printf("command  %s\n", strings.Join(append([]string{"bench"}, os.Args[1:]...), " "))
	fmt.Printf("commit   %s\n", commit())
	fmt.Printf("machine  %s, %d CPUs, %s %s/%s, load average %s\n", processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, loadAverage())
	fmt.Printf("at       %s\n", time.Now().UTC().Format(time.RFC3339))
	fmt.Printf("work     %d chunks x 116 calls = %d calls, 64 at once, 50 ms a call, replies of %d bytes\n", full.Chunks, full.calls(), replyBytes)
	fmt.Println("sync     SQLite WAL, synchronous NORMAL (FULL where said); Postgres synchronous_commit off; Redis appendfsync everysec")
	fmt.Println("numbers  median (least .. most, runs)")
}

// full is the work of the design, without failures.
var full = load{Chunks: 22, AtOnce: 64, Latency: 50 * time.Millisecond}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func loadAverage() string {
	body, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(body))[:3], " ")
}

func processor() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
