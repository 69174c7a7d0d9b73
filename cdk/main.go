// Program cdk writes the templates of a deployment. `cdk deploy` starts it; `make cdk-app` builds it.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/aws/jsii-runtime-go"

	"holdfast/cdk/stacks"
)

func main() {
	defer jsii.Close()
	app := stacks.NewApp("")
	given, _ := app.Node().GetAllContext(nil).(map[string]any)
	unknown := stacks.CheckKeys(slices.Sorted(maps.Keys(given)))
	settings, err := stacks.Read(func(key string) (string, bool) {
		value := app.Node().TryGetContext(&key)
		return fmt.Sprint(value), value != nil
	})
	if err == nil {
		err = settings.CheckZips()
	}
	if err := errors.Join(unknown, err); err != nil {
		fmt.Fprintln(os.Stderr, err)
		jsii.Close()
		os.Exit(1)
	}
	stacks.New(app, settings)
	app.Synth(nil)
}
