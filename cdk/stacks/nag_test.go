package stacks_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"holdfast/cdk/template"
)

func TestAwsSolutionsFindsNothing(t *testing.T) {
	for _, settings := range variants {
		d := built(t, settings...)
		awscdk.Aspects_Of(d.app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: jsii.Bool(true)}), nil)
		for _, stack := range d.stacks {
			found := *assertions.Annotations_FromStack(stack).FindError(jsii.String("*"), assertions.Match_AnyValue())
			found = append(found, *assertions.Annotations_FromStack(stack).FindWarning(jsii.String("*"), assertions.Match_AnyValue())...)
			for _, finding := range found {
				//lint:ignore SA1019 the findings have no other type in Go
				t.Errorf("%v: %s: %v", settings, *finding.Id, finding.Entry.Data)
			}
		}
	}
}

// mostReasons is how many rules may have a reason not to hold, in one deployment. A new one is a decision.
const mostReasons = 8

func TestEveryRuleThatDoesNotHoldHasAReason(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		reasons := map[string]bool{}
		for _, of := range []template.Template{d.state, d.workers} {
			for _, id := range slices.Sorted(maps.Keys(of.Resources)) {
				nag, _ := of.Resources[id].Metadata["cdk_nag"].(map[string]any)
				rules, _ := nag["rules_to_suppress"].([]any)
				for _, rule := range rules {
					m := rule.(map[string]any)
					reason := template.Text(m["reason"])
					if len(reason) < 40 {
						t.Errorf("%s: %v has no reason", id, m)
					}
					reasons[fmt.Sprintf("%v of %s: %s", m["id"], id, reason)] = true
				}
			}
		}
		for _, line := range slices.Sorted(maps.Keys(reasons)) {
			t.Log(line)
		}
		t.Logf("%d reasons in all", len(reasons))
		if len(reasons) > mostReasons {
			t.Errorf("%d rules do not hold, want at most %d", len(reasons), mostReasons)
		}
	})
}

func TestNoWildcardWithoutAReason(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		for _, policy := range d.workers.Of("AWS::IAM::Policy") {
			list, _ := policy.Get("PolicyDocument.Statement").([]any)
			for _, each := range list {
				statement := each.(map[string]any)
				for _, action := range template.Texts(statement["Action"]) {
					if strings.Contains(action, "*") {
						t.Errorf("%s allows %s", policy.ID, action)
					}
				}
				for _, resource := range template.Texts(statement["Resource"]) {
					if strings.Contains(resource, "*") && !reasoned(policy, resource) {
						t.Errorf("%s reaches %s, and nobody says why", policy.ID, resource)
					}
				}
			}
		}
		for _, role := range d.workers.Of("AWS::IAM::Role") {
			if managed := role.Get("ManagedPolicyArns"); managed != nil {
				t.Errorf("%s has %v: more than it uses", role.ID, managed)
			}
		}
	})
}

// reasoned says that a policy has a reason for this very resource.
func reasoned(policy template.Resource, resource string) bool {
	nag, _ := policy.Metadata["cdk_nag"].(map[string]any)
	rules, _ := nag["rules_to_suppress"].([]any)
	for _, rule := range rules {
		of := template.Resource{Properties: rule.(map[string]any)}
		where, _ := of.Get("applies_to").([]any)
		for _, each := range where {
			pattern := strings.Trim(template.Text(each.(map[string]any)["regex"]), "/")
			if of.Text("id") == "AwsSolutions-IAM5" && regexp.MustCompile(pattern).MatchString("Resource::"+resource) {
				return true
			}
		}
	}
	return false
}
