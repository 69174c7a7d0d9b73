package stacks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/cdk/template"
	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/sqsqueue"
	"holdfast/pkg/telemetry"
)

// functions of a deployment, by their folders.
func functions(d deployment) map[config.Process]template.Resource {
	found := map[config.Process]template.Resource{}
	for _, fn := range d.workers.Of("AWS::Lambda::Function") {
		found[config.Process(strings.TrimPrefix(fn.Text("FunctionName"), d.settings.Stack+"-"))] = fn
	}
	return found
}

func TestWhoWorksIsWhatTheSettingSays(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		s := d.settings
		for process, want := range map[config.Process]bool{config.Reap: true, config.API: true, config.Control: s.Lambda(), config.Work: s.Lambda()} {
			_, is := functions(d)[process]
			same(t, string(process)+" is a function", is, want)
		}
		same(t, "event sources", len(d.workers.Of("AWS::Lambda::EventSourceMapping")), map[bool]int{true: 2}[s.Lambda()])
		same(t, "services", len(d.workers.Of("AWS::ECS::Service")), map[bool]int{true: 1}[s.Fargate()])
	})
}

func TestFunctions(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		for process, fn := range functions(d) {
			same(t, fn.ID+" runtime", fn.Text("Runtime"), "provided.al2023")
			same(t, fn.ID+" architecture", template.Texts(fn.Get("Architectures")), []string{map[string]string{"arm64": "arm64", "amd64": "x86_64"}[d.settings.Arch]})
			same(t, fn.ID+" timeout", fn.Number("Timeout"), config.Timeout(process, d.settings.Policy).Seconds())
			told := func(name string) (string, bool) {
				value := fn.Text("Environment.Variables." + name)
				return value, value != ""
			}
			if _, err := config.ReadEnvironment(process, told); err != nil {
				t.Errorf("%s would not start: %v", fn.ID, err)
			}
			variables, _ := fn.Get("Environment.Variables").(map[string]any)
			for name := range variables {
				if !slices.ContainsFunc(config.Settings(process), func(s config.Setting) bool { return s.Name == name }) {
					t.Errorf("%s is told %s, which it does not read", fn.ID, name)
				}
			}
		}
	})
}

func TestWhatAPolicyFileSaysReachesTheWorkers(t *testing.T) {
	d := deployed(t, "policy=testdata/policy.yaml")
	if p := d.settings.Policy; p.MaxAttempts != 2 || p.MaxReceives != 7 {
		t.Fatalf("got %+v", p)
	}
	same(t, "receives", d.state.Resources["WorkQueue"].Number("RedrivePolicy.maxReceiveCount"), 7)
	for process, fn := range functions(d) {
		policy, err := config.ReadPolicy("env", []byte(fn.Text("Environment.Variables."+config.PolicyVar)))
		if err != nil || policy != d.settings.Policy {
			t.Errorf("%s: got %+v, %v", process, policy, err)
		}
	}
}

func TestEventSourcesTellRecordByRecordAndNeverOverrunTheQuota(t *testing.T) {
	for _, c := range []struct {
		settings []string
		work     int // invocations at once
	}{
		{nil, 200},
		{[]string{"quota=400000"}, 2},                 // one invocation could use 1.5 million a minute
		{[]string{"quota=30000000"}, 20},              // 30 / 1.536
		{[]string{"quota=400000", "in-flight=1"}, 9},  // 0.4 / 0.048
		{[]string{"policy=testdata/policy.yaml"}, 40}, // max_job_claims
	} {
		d := deployed(t, c.settings...)
		for _, source := range d.workers.Of("AWS::Lambda::EventSourceMapping") {
			same(t, source.ID, template.Texts(source.Get("FunctionResponseTypes")), []string{"ReportBatchItemFailures"})
			process, queue := config.Control, pipeline.ControlQueue
			if strings.HasPrefix(source.ID, "Work") {
				process, queue = config.Work, pipeline.WorkQueue
				same(t, fmt.Sprint(c.settings, " at once"), source.Number("ScalingConfig.MaximumConcurrency"), c.work)
			}
			same(t, source.ID+" batch", source.Number("BatchSize"), config.Batch(process))
			name, _ := sqsqueue.Names("holdfast", queue)
			if arn := source.Text("EventSourceArn"); !strings.HasSuffix(arn, ":"+name) {
				t.Errorf("%s reads %s, want %s", source.ID, arn, name)
			}
			if n := source.Number("ScalingConfig.MaximumConcurrency"); n < 2 || n > 1000 {
				t.Errorf("%s: %v at once, AWS takes 2 to 1000", source.ID, n)
			}
		}
		for _, fn := range d.workers.Of("AWS::Lambda::Function") {
			if fn.Get("ReservedConcurrentExecutions") != nil {
				t.Errorf("%s has reserved concurrency: what is over it would be throttled, and each throttle uses up a receive", fn.ID)
			}
		}
	}
}

func TestTheReaperComesEveryMinuteWhoeverWorks(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		rules := d.workers.Of("AWS::Events::Rule")
		if len(rules) != 1 {
			t.Fatalf("got %d rules", len(rules))
		}
		same(t, "schedule", rules[0].Text("ScheduleExpression"), "rate(1 minute)")
		same(t, "enabled", rules[0].Text("State"), "ENABLED")
		target := template.Text(rules[0].Get("Targets"))
		if !strings.Contains(target, functions(d)[config.Reap].ID) {
			t.Errorf("the rule starts %s", target)
		}
		same(t, "a failed sweep is not repeated", d.workers.Of("AWS::Lambda::EventInvokeConfig")[0].Number("MaximumRetryAttempts"), 0)
	})
}

func TestEveryRouteAsksWhoItIs(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		var got, want []string
		for _, route := range d.workers.Of("AWS::ApiGatewayV2::Route") {
			got = append(got, route.Text("RouteKey"))
			kind := map[bool]string{true: "AWS_IAM", false: "JWT"}[d.settings.Issuer == ""]
			same(t, route.ID, route.Text("AuthorizationType"), kind)
			if kind == "JWT" && route.Text("AuthorizerId") == "" {
				t.Errorf("%s has no authorizer", route.ID)
			}
		}
		for _, route := range config.Routes() {
			want = append(want, route.Key())
		}
		slices.Sort(got)
		slices.Sort(want)
		same(t, "routes", got, want)
		for _, authorizer := range d.workers.Of("AWS::ApiGatewayV2::Authorizer") {
			same(t, "issuer", authorizer.Text("JwtConfiguration.Issuer"), d.settings.Issuer)
			same(t, "audience", template.Texts(authorizer.Get("JwtConfiguration.Audience")), d.settings.Audience)
		}
		stage := d.workers.Of("AWS::ApiGatewayV2::Stage")[0]
		if stage.Text("AccessLogSettings.DestinationArn") == "" || stage.Number("DefaultRouteSettings.ThrottlingRateLimit") == 0 {
			t.Errorf("the stage has no log of its accesses, or no limit: %+v", stage.Properties)
		}
		if urls := d.workers.Of("AWS::Lambda::Url"); len(urls) > 0 {
			t.Errorf("a function has an address of its own, beside the API: %+v", urls)
		}
	})
}

// Only the API's routes and the reaper's rule start a function; queues are asked by its own role.
func TestNobodyElseStartsAFunction(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		started := map[string]int{}
		for _, permission := range d.workers.Of("AWS::Lambda::Permission") {
			who, from := permission.Text("Principal"), permission.Text("SourceArn")
			rule := who == "events.amazonaws.com" && strings.HasPrefix(from, "${ReapEvery")
			route := who == "apigateway.amazonaws.com" && strings.Contains(from, ":${Http") && slices.ContainsFunc(config.Routes(), func(r config.Route) bool {
				return strings.HasSuffix(from, "/*/*"+r.Path)
			})
			if permission.Text("Action") != "lambda:InvokeFunction" || !rule && !route {
				t.Errorf("%s lets %s from %s do %s", permission.ID, who, from, permission.Text("Action"))
			}
			started[who]++
		}
		same(t, "permissions", started, map[string]int{"events.amazonaws.com": 1, "apigateway.amazonaws.com": len(config.Routes())})
	})
}

func TestWorkersAreDeployedAfterTheState(t *testing.T) {
	d := deployed(t)
	same(t, "stacks that come first", len(*d.stacks[1].Dependencies()), 1)
	same(t, "the first of them", *(*d.stacks[1].Dependencies())[0].StackName(), *d.stacks[0].StackName())
}

func TestTheModelsKeyIsReadByThoseWhoCallItAndIsInNoEnvironment(t *testing.T) {
	secret := "arn:aws:secretsmanager:us-east-1:111122223333:secret:model-abc123"
	d := deployed(t, "workers=both", "image=v1", "public=true", "model=openai/large", "model-key-secret="+secret)
	for _, process := range config.Processes() {
		var reads []string
		for _, statement := range policyOf(t, d, process) {
			if strings.Contains(strings.Join(statement.Actions, " "), "secretsmanager:") {
				reads = append(reads, statement.Actions[0]+" of "+strings.Join(statement.Resources, ","))
			}
		}
		var want []string
		if process == config.Work || process == config.Workd {
			want = []string{"secretsmanager:GetSecretValue of " + secret}
		}
		same(t, string(process)+" reads", reads, want)
	}
	for id, r := range d.workers.Resources {
		if body := fmt.Sprint(r.Properties); strings.Contains(body, config.ModelKeyVar+":") || strings.Contains(body, config.ModelKeyVar+" ") {
			t.Errorf("%s has a key in its environment", id)
		}
	}
}

// The metrics have one list: who counts, who looks and who is told read it.
func TestEveryMetricIsOnTheDashboard(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		body := template.Text(d.workers.Of("AWS::CloudWatch::Dashboard")[0].Get("DashboardBody"))
		for _, metric := range telemetry.Metrics() {
			if !strings.Contains(body, fmt.Sprintf("%q,%q", telemetry.Namespace, metric)) {
				t.Errorf("%s is on no graph", metric)
			}
		}
	})
}

func TestEveryLogHasAnEnd(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		groups := map[string]bool{}
		for _, group := range d.workers.Of("AWS::Logs::LogGroup") {
			same(t, group.ID, group.Number("RetentionInDays"), d.settings.LogDays)
			groups["${"+group.ID+"}"] = true
		}
		for _, fn := range d.workers.Of("AWS::Lambda::Function") {
			if group := fn.Text("LoggingConfig.LogGroup"); !groups[group] {
				t.Errorf("%s logs into %q, which is not of the stack", fn.ID, group)
			}
		}
	})
}

func TestAlarms(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		p := d.settings.Policy
		alarms := map[string]template.Resource{}
		for _, alarm := range d.workers.Of("AWS::CloudWatch::Alarm") {
			alarms[strings.TrimPrefix(alarm.Text("AlarmName"), d.settings.Stack+"-")] = alarm
			for _, actions := range []string{"AlarmActions", "OKActions"} {
				if to := template.Texts(alarm.Get(actions)); len(to) != 1 || !strings.HasSuffix(to[0], ":holdfast-alarms") {
					t.Errorf("%s: %s go to %v", alarm.ID, actions, to)
				}
			}
			if len(alarm.Text("AlarmDescription")) < 40 {
				t.Errorf("%s does not say what to do", alarm.ID)
			}
		}
		for name, want := range map[string]struct {
			threshold, windows float64
			comparison         string
			missing            string
		}{
			"Abandoned":    {3, 1, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"DeadLetters":  {1, 1, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"ControlWaits": {p.RingLimit.Seconds(), 2, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"WorkWaits":    {p.RingLimit.Seconds(), 2, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"Waste":        {1, 3, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"Unclaimable":  {1, 4, "GreaterThanOrEqualToThreshold", "notBreaching"},
			"SilentReaper": {1, 1, "LessThanThreshold", "breaching"},
		} {
			alarm, is := alarms[name]
			if !is {
				t.Errorf("there is no alarm %s", name)
				continue
			}
			delete(alarms, name)
			same(t, name, []any{alarm.Number("Threshold"), alarm.Number("EvaluationPeriods"), alarm.Text("ComparisonOperator"), alarm.Text("TreatMissingData")},
				[]any{want.threshold, want.windows, want.comparison, want.missing})
		}
		if len(alarms) > 0 {
			t.Errorf("alarms that nobody promised: %v", alarms)
		}
		same(t, "mails", len(d.workers.Of("AWS::SNS::Subscription")), map[bool]int{true: 1}[d.settings.AlarmAddress != ""])
		same(t, "dashboards", len(d.workers.Of("AWS::CloudWatch::Dashboard")), 1)
	})
}

// A resource in Workers that held data would be lost with it.
func TestNothingInWorkersHoldsData(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		for id, r := range d.workers.Resources {
			switch r.Type {
			case "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::ECR::Repository", "AWS::EFS::FileSystem":
				t.Errorf("%s (%s) is in the stack that is thrown away", id, r.Type)
			}
		}
	})
}

// Imports lock two stacks together: neither could be changed, or rolled back, alone.
func TestWorkersFindTheStateByItsNames(t *testing.T) {
	each(t, func(t *testing.T, d deployment) {
		for id, r := range d.workers.Resources {
			if body := fmt.Sprint(r.Properties); strings.Contains(body, "Fn::ImportValue") {
				t.Errorf("%s imports a value", id)
			}
		}
		names := map[string]bool{}
		for _, r := range d.state.Resources {
			for _, name := range []string{"TableName", "QueueName", "BucketName", "TopicName", "RepositoryName"} {
				if r.Text(name) != "" {
					names[r.Text(name)] = true
				}
			}
		}
		for _, policy := range d.workers.Of("AWS::IAM::Policy") {
			list, _ := policy.Get("PolicyDocument.Statement").([]any)
			for _, statement := range list {
				for _, arn := range template.Texts(statement.(map[string]any)["Resource"]) {
					name, ours := stateName(arn)
					if ours && !names[name] {
						t.Errorf("%s speaks of %s, and the state has %v", policy.ID, arn, names)
					}
				}
			}
		}
	})
}

// stateName is the name of a table, queue or bucket in its ARN.
func stateName(arn string) (name string, ours bool) {
	switch {
	case strings.Contains(arn, ":dynamodb:"):
		_, name, _ = strings.Cut(arn, ":table/")
		name, _, _ = strings.Cut(name, "/")
	case strings.Contains(arn, ":sqs:"):
		name = arn[strings.LastIndex(arn, ":")+1:]
	case strings.Contains(arn, ":s3:::"):
		_, name, _ = strings.Cut(arn, ":s3:::")
		name, _, _ = strings.Cut(name, "/")
	}
	return name, name != ""
}
