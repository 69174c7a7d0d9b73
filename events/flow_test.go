package events_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/pkg/api"
	"holdfast/pkg/config"
	"holdfast/pkg/function"
	"holdfast/pkg/ingest"
	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/wiring"
)

// The events, each handed to its function as Lambda does, take a job from its submission to its report.
func TestTheEventsTakeAJobFromItsSubmissionToItsReport(t *testing.T) {
	clock := pipeline.NewRealClock()
	back := wiring.InMemory(pipeline.DefaultPolicy(), clock)
	model := offline.New(offline.Config{})
	log := slog.New(slog.DiscardHandler)
	process := func(name config.Process) *function.Process {
		env, err := config.ReadEnvironment(name, func(variable string) (string, bool) {
			value, is := map[string]string{config.StackVar: "holdfast", config.ModelVar: "offline"}[variable]
			return value, is
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := function.New(env, function.Parts{Backend: back, Model: model, Read: ingest.New(ingest.Config{Clock: clock}).Read, Clock: clock, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	desk := api.New(api.Config{
		Backend: back, Model: model.Info(), Policy: pipeline.DefaultPolicy(), Clock: clock, Log: log,
		TenantFrom: config.TenantFrom{Kind: config.TenantAccount}, NewID: function.RandomID,
	})
	control, work, reap := process(config.Control), process(config.Work), process(config.Reap)
	for _, step := range []struct {
		file    string
		handler any
		says    string
	}{
		{"api-submit.json", desk.Handle, `"statusCode":202`},
		{"control.json", control.HandleQueue, `{"batchItemFailures":[]}`},
		{"api-watch.json", desk.Handle, `"statusCode":200`},
		{"work.json", work.HandleQueue, `{"batchItemFailures":[]}`},
		{"reap.json", reap.HandleSchedule, `null`},
		{"api-pause.json", desk.Handle, `"statusCode":200`},
		{"api-resume.json", desk.Handle, `"statusCode":200`},
		{"control.json", control.HandleQueue, `{"batchItemFailures":[]}`},
		{"api-status.json", desk.Handle, `\"status\":\"completed\"`},
		{"api-status-jwt.json", desk.Handle, `"statusCode":403`}, // of another kind of deployment
		{"api-report.json", desk.Handle, `Complete: 28 of 28 questions answered`},
		{"api-why-task.json", desk.Handle, `\"attempts\":[{`},
		{"api-redrive.json", desk.Handle, `"statusCode":409`},
		{"api-cancel.json", desk.Handle, `"statusCode":409`},
		{"api-list.json", desk.Handle, `services-agreement.txt`},
		{"api-dead-letters.json", desk.Handle, `\"dead_letters\":[]`},
		{"api-upload.json", desk.Handle, `"statusCode":501`}, // in memory there are no addresses
	} {
		body, err := os.ReadFile(step.file)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := lambda.NewHandler(step.handler).Invoke(t.Context(), body)
		if err != nil || !strings.Contains(string(answer), step.says) {
			t.Errorf("%s: got %.600s (%v), want %s in it", step.file, answer, err, step.says)
		}
		if !json.Valid(answer) {
			t.Errorf("%s: the answer is no JSON: %s", step.file, answer)
		}
	}
	letters, _, err := back.Queues.Work.DeadLetters(t.Context(), "")
	if err != nil || len(letters) != 1 {
		t.Errorf("got %v (%v), want the message that is not ours", letters, err)
	}
}
