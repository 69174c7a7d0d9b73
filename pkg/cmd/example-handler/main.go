// Command example-handler is the holdfast command line with one handler of a team's own: it fetches the URL on each line
// of a file. Copy it, and put your own work in the place of fetch.
//
//	go run ./pkg/cmd/example-handler run urls.txt --handler fetch
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"holdfast/pkg/cli"
	"holdfast/pkg/pipeline"
)

func main() {
	os.Exit(cli.Program{
		Name:      "example-handler",
		Functions: map[string]pipeline.Function{"fetch@1": fetch},
	}.Main(os.Args[1:], os.Stdout, os.Stderr))
}

// fetch works on one line. Its answer is stored before it counts, and is never fetched again.
func fetch(ctx context.Context, item pipeline.WorkItem) (pipeline.Output, error) {
	address := strings.TrimSpace(item.Text)
	if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
		return pipeline.Output{}, pipeline.GiveUp(errors.New("no http or https address")) // no try can help: this item fails, its neighbours go on
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return pipeline.Output{}, pipeline.GiveUp(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return pipeline.Output{}, pipeline.TryAgain(err) // in this attempt, with growing waits
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	switch {
	case err != nil:
		return pipeline.Output{}, pipeline.TryAgain(err)
	case response.StatusCode == http.StatusTooManyRequests:
		return pipeline.Output{}, pipeline.ComeLater(fmt.Errorf("the server says %s", response.Status), 0) // uses up no attempt
	case response.StatusCode == http.StatusNotFound:
		return pipeline.Output{}, pipeline.GiveUp(fmt.Errorf("the server says %s", response.Status))
	case response.StatusCode != http.StatusOK:
		return pipeline.Output{}, fmt.Errorf("the server says %s", response.Status) // a failed attempt: three, and it is given up
	}
	return pipeline.Output{Text: strings.ToValidUTF8(string(body), "?")}, nil
}
