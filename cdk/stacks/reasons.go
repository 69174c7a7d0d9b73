package stacks

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
)

// excuse says why a rule of cdk-nag's AwsSolutions does not hold of the resources of a type at or under a construct. The
// reason stands in the template; where is which finding of the rule, as a regular expression, "" all of it.
func excuse(c constructs.IConstruct, kind, rule, where, reason string) {
	entry := map[string]any{"id": rule, "reason": reason}
	if where != "" {
		entry["applies_to"] = []any{map[string]any{"regex": "/" + where + "/"}}
	}
	for _, child := range *c.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		resource, is := child.(awscdk.CfnResource)
		if !is || *resource.CfnResourceType() != kind {
			continue
		}
		var entries []any
		if before, is := resource.GetMetadata(text("cdk_nag")).(map[string]any); is {
			entries, _ = before["rules_to_suppress"].([]any)
		}
		resource.AddMetadata(text("cdk_nag"), map[string]any{"rules_to_suppress": append(entries, entry)})
	}
}

// Why a policy has a wildcard.
const (
	whyObjects = "Which objects there will be is not known beforehand, and the bucket holds nothing but this deployment's."
	whyTasks   = "The ids of tasks are not known beforehand; the ARN names the cluster, in which nothing else runs."
	whyToken   = "ecr:GetAuthorizationToken has no resources that could be named."
	whyPlain   = "What is in the environment are names and numbers. The model's key is not among them: the process reads it from Secrets Manager."
)

// excuseWildcard says why a wildcard of a role is there.
func excuseWildcard(role constructs.IConstruct, where, reason string) {
	excuse(role, "AWS::IAM::Policy", "AwsSolutions-IAM5", `^Resource::`+where+`$`, reason)
}
