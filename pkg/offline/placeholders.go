package offline

import (
	"strings"

	"holdfast/pkg/pipeline"
)

// Placeholders is how many calls of a chunk no rules know: their answers fit the schema and mean nothing.
func Placeholders(d pipeline.Definition) int {
	n := 0
	for _, stage := range d.Stages {
		for _, call := range stage.Calls {
			if !ruled(call.ID) || !strings.HasPrefix(strings.TrimSpace(d.Prompts[call.Prompt]), "Call: ") {
				n++
			}
		}
	}
	return n
}

// ruled says that rules answer a call of that name, as the contract review names its calls.
func ruled(call string) bool {
	kind, about, _ := strings.Cut(call, ".")
	switch kind {
	case "prime":
		return about == ""
	case "score":
		_, known := categorySigns[about]
		return known
	case "check", "consolidate":
		analyst, _, _ := strings.Cut(about, ".")
		return analysts[analyst]
	case "verify":
		return about == "definitions" || about == "obligations" || about == "grounding" || about == "contradictions"
	}
	return false
}

// analysts are those whose checks have rules.
var analysts = func() map[string]bool {
	all := map[string]bool{}
	for check := range ruleIndex {
		analyst, _, _ := strings.Cut(check, ".")
		all[analyst] = true
	}
	return all
}()
