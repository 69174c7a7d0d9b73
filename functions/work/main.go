// Command work answers the events of the work queue: it works on chunks.
package main

import (
	"context"

	"holdfast/pkg/config"
	"holdfast/pkg/function"
)

func main() {
	p, err := function.Open(context.Background(), config.Work, nil)
	if err != nil {
		function.Exit(err)
	}
	function.Serve(p.HandleQueue, p)
}
