package stacks

import (
	"os"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

// policy reads the policy file, if one is named.
func (r *reader) policy() (pipeline.Policy, string) {
	path := r.text("policy")
	if path == "" {
		return pipeline.DefaultPolicy(), ""
	}
	policy, err := config.LoadPolicy(path)
	if err != nil {
		r.wrong("policy", "%v", err)
		return pipeline.DefaultPolicy(), ""
	}
	body, err := os.ReadFile(path)
	if err != nil {
		r.wrong("policy", "%v", err)
	}
	return policy, string(body)
}
