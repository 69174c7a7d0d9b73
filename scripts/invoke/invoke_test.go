package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/pkg/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhichFunctionAndEvent(t *testing.T) {
	for line, want := range map[string]string{
		"work": "events/work.json", "control": "events/control.json", "reap": "events/reap.json", "api": "events/api-status.json",
		"api events/api-list.json": "events/api-list.json", "": "", "workd": "", "nothing": "", "work a b": "",
	} {
		process, path, err := parse(strings.Fields(line))
		if path != want || (err == nil) != (want != "") || err == nil && string(process) != strings.Fields(line)[0] {
			t.Errorf("%q: got %s, %s, %v", line, process, path, err)
		}
	}
}

func TestWhatIsSetIsPassedOn(t *testing.T) {
	got := environment(config.Work, []string{"PATH=/bin", "HOLDFAST_BACKEND=aws"})
	if !slices.Contains(got, "PATH=/bin") || !slices.Contains(got, "HOLDFAST_BACKEND=aws") || slices.Contains(got, "HOLDFAST_BACKEND=embedded") || !slices.Contains(got, "HOLDFAST_MODEL=offline") {
		t.Errorf("got %v", got)
	}
}

func TestAnswersAreReadable(t *testing.T) {
	for answer, want := range map[string]string{
		`{"batchItemFailures":[{"itemIdentifier":"m-1"}]}`:                                                        "\"itemIdentifier\": \"m-1\"",
		`{"statusCode":404,"headers":{"content-type":"application/json"},"body":"{\"error\":\"there is none\"}"}`: "404 application/json\n{\n  \"error\": \"there is none\"\n}",
		`{"statusCode":200,"headers":{"content-type":"text/markdown"},"body":"# Report\n"}`:                       "200 text/markdown\n# Report",
		`null`: "null",
	} {
		var out strings.Builder
		if err := show(&out, []byte(answer), 25*time.Millisecond); err != nil || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "25 ms") {
			t.Errorf("%s: got %q, %v", answer, out.String(), err)
		}
	}
	if err := show(new(strings.Builder), []byte(`{"errorMessage":"HOLDFAST_MODEL is not set","errorType":"errorString"}`), 0); err == nil || !strings.Contains(err.Error(), "HOLDFAST_MODEL is not set") {
		t.Errorf("got %v, want the function's error", err)
	}
}
