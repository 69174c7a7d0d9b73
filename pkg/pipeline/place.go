package pipeline

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// placeDepth is how many frames of ours a Place names.
const placeDepth = 4

// Place is where the panic that is being recovered happened: function, file and line of the innermost frames. To be
// called from the deferred function that recovers.
func Place() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var place []string
	panicked := false
	for {
		frame, more := frames.Next()
		switch {
		case strings.HasPrefix(frame.Function, "runtime."):
			panicked = true
		case panicked:
			place = append(place, fmt.Sprintf("%s (%s:%d)", filepath.Base(frame.Function), filepath.Base(frame.File), frame.Line))
		}
		if !more || len(place) == placeDepth {
			return Cut(strings.Join(place, " < "), MaxDetail)
		}
	}
}
