// Command reap answers the schedule: it moves on what stalled.
package main

import (
	"context"

	"holdfast/pkg/config"
	"holdfast/pkg/function"
)

func main() {
	p, err := function.Open(context.Background(), config.Reap, nil)
	if err != nil {
		function.Exit(err)
	}
	function.Serve(p.HandleSchedule, p)
}
