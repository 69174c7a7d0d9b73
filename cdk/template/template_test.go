package template_test

import (
	"slices"
	"testing"

	"holdfast/cdk/template"
)

const sample = `{"Resources": {
  "Queue": {"Type": "AWS::SQS::Queue", "DeletionPolicy": "Retain", "Properties": {"QueueName": "q", "VisibilityTimeout": 60,
    "RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}}}},
  "Dead": {"Type": "AWS::SQS::Queue", "Properties": {
    "QueueName": {"Fn::Join": ["-", ["q", {"Ref": "AWS::AccountId"}, {"Fn::Sub": "${AWS::Region}"}]]}}}}}`

func TestTemplate(t *testing.T) {
	got, err := template.Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	queues := got.Of("AWS::SQS::Queue")
	if len(queues) != 2 || queues[0].ID != "Dead" || queues[1].DeletionPolicy != "Retain" {
		t.Fatalf("got %+v", queues)
	}
	for path, want := range map[string]string{"QueueName": "q", "VisibilityTimeout": "60", "RedrivePolicy.deadLetterTargetArn": "${Dead.Arn}", "Nothing.here": ""} {
		if got := queues[1].Text(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got, want := queues[0].Text("QueueName"), "q-${AWS::AccountId}-${AWS::Region}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := queues[1].Number("VisibilityTimeout"); got != 60 {
		t.Errorf("got %v", got)
	}
	if got := template.Texts([]any{"a", map[string]any{"Ref": "B"}}); !slices.Equal(got, []string{"a", "${B}"}) {
		t.Errorf("got %v", got)
	}
}
