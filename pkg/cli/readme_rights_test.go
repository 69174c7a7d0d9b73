package cli

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rightOf is the right that a call needs where it has another name than the call.
var rightOf = map[string]string{
	"SendMessageBatch":             "SendMessage",
	"DeleteMessageBatch":           "DeleteMessage",
	"ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
	"TransactWriteItems":           "PutItem", // and UpdateItem, of its parts
	"NewTableExistsWaiter":         "DescribeTable",
	"NewListObjectsV2Paginator":    "ListBucket",
}

func TestTheReadmeNamesTheRightsThatTheAdaptersUse(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`client\.([A-Z]\w+)\(ctx|\.(New\w+(?:Waiter|Paginator))\(client`)
	for service, adapter := range map[string]string{"dynamodb": "dynamostore", "sqs": "sqsqueue", "s3": "s3blob"} {
		used := map[string]bool{}
		files, err := filepath.Glob("../" + adapter + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range calls.FindAllStringSubmatch(string(source), -1) {
				name := found[1] + found[2]
				if right, is := rightOf[name]; is {
					name = right
				}
				used[name] = true
			}
		}
		named := map[string]bool{}
		for _, list := range regexp.MustCompile("`"+service+":`((?:,? [A-Z]\\w+)+)").FindAllStringSubmatch(string(readme), -1) {
			for _, name := range strings.Split(list[1], ",") {
				named[strings.TrimSpace(name)] = true
			}
		}
		if !maps.Equal(used, named) {
			t.Errorf("%s: the README names the rights %v; %s uses %v", service, slices.Sorted(maps.Keys(named)), adapter, slices.Sorted(maps.Keys(used)))
		}
	}
}
