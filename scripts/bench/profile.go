package main

import (
	"os"
	"runtime/pprof"
)

// profileTo is the variable that names a file for the CPU profile of a child's run; see the README.
const profileTo = "BENCH_PROFILE"

func profile() (stop func(), err error) {
	path := os.Getenv(profileTo)
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // a profile that was cut tells so itself
	}, nil
}
