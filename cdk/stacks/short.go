package stacks

import (
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// What the CDK wants as pointers.

func text(s string) *string { return &s }
func yes(b bool) *bool      { return &b }
func number[N ~int | ~int64 | ~float64](n N) *float64 {
	f := float64(n)
	return &f
}
func texts(all ...string) *[]*string { return jsii.Strings(all...) }

// optional is nil for "".
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func seconds(d time.Duration) *float64         { return number(d.Seconds()) }
func duration(d time.Duration) awscdk.Duration { return awscdk.Duration_Seconds(seconds(d)) }
func days(n int) awscdk.Duration               { return awscdk.Duration_Days(number(n)) }

// pin gives a construct's resource a logical id that no change of the tree around it changes: another id would be
// another resource, and the data would stay behind in the old one.
func pin(c constructs.IConstruct, id string) {
	c.Node().DefaultChild().(awscdk.CfnElement).OverrideLogicalId(text(id))
}

func output(stack awscdk.Stack, id string, value *string) {
	awscdk.NewCfnOutput(stack, text("Output"+id), &awscdk.CfnOutputProps{Value: value}).OverrideLogicalId(text(id))
}

// arn is that of a resource of the deployment's account and region which has no kind in its ARN.
func arn(stack awscdk.Stack, service, name string) string {
	return *stack.FormatArn(&awscdk.ArnComponents{Service: text(service), Resource: text(name)})
}

// arnOf is that of a resource with a kind.
func arnOf(stack awscdk.Stack, service, kind, separator, name string) string {
	format := awscdk.ArnFormat_SLASH_RESOURCE_NAME
	if separator == ":" {
		format = awscdk.ArnFormat_COLON_RESOURCE_NAME
	}
	return *stack.FormatArn(&awscdk.ArnComponents{Service: text(service), Resource: text(kind), ResourceName: text(name), ArnFormat: format})
}

// tlsOnly is a resource policy that refuses requests in the clear.
func tlsOnly(actions string, resource *string) map[string]any {
	return map[string]any{
		"Version": "2012-10-17",
		"Statement": []any{map[string]any{
			"Sid": "TlsOnly", "Effect": "Deny", "Principal": map[string]any{"AWS": "*"}, "Action": actions, "Resource": resource,
			"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
		}},
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
