//go:build deployed

package deployed

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"holdfast/pkg/telemetry/alarmtest"
)

// asked sends a request to a service as its SDK would, but for the signature, which LocalStack does not check.
func (b *bench) asked(service, contentType, target, body string) []byte {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.endpoint+"/", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	r.Header.Set("X-Amz-Date", time.Now().UTC().Format("20060102T150405Z"))
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s %s: %s, %v: %s", service, target, body, resp.Status, err, tail(answer))
	}
	return answer
}

// json asks a service that speaks JSON.
func (b *bench) json(service, target string, in map[string]any, out any) {
	b.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	version := map[bool]string{true: "1.1", false: "1.0"}[service == "logs"]
	if err := json.Unmarshal(b.asked(service, "application/x-amz-json-"+version, target, string(body)), out); err != nil {
		b.t.Fatalf("%s: %v", target, err)
	}
}

// xml asks a service that speaks forms and XML.
func (b *bench) xml(service string, in map[string]string, out any) {
	b.t.Helper()
	form := url.Values{}
	for name, value := range in {
		form.Set(name, value)
	}
	if err := xml.Unmarshal(b.asked(service, "application/x-www-form-urlencoded", "", form.Encode()), out); err != nil {
		b.t.Fatalf("%s: %v", in["Action"], err)
	}
}

// log is what a function's events logged since a time, those that are over.
func (b *bench) log(function string, since time.Time) string {
	b.t.Helper()
	var all bytes.Buffer
	for token := ""; ; {
		in := map[string]any{"logGroupName": "/aws/lambda/" + b.stack + "-" + function, "startTime": since.UnixMilli()}
		if token != "" {
			in["nextToken"] = token
		}
		var page struct {
			Events    []struct{ Message string }
			NextToken string
		}
		b.json("logs", "Logs_20140328.FilterLogEvents", in, &page)
		for _, e := range page.Events {
			fmt.Fprintln(&all, strings.TrimSuffix(e.Message, "\n"))
		}
		if token = page.NextToken; token == "" {
			return all.String()
		}
	}
}

// row is a row of a task or a job, as DynamoDB has it: column to value, whatever its type.
type row map[string]string

// rows are those for which a filter of DynamoDB holds.
func (b *bench) rows(filter string, values map[string]any) (found []row) {
	b.t.Helper()
	in := map[string]any{"TableName": b.stack + "-pipeline", "ConsistentRead": true, "FilterExpression": filter, "ExpressionAttributeValues": values}
	if names := regexp.MustCompile(`#\w+`).FindAllString(filter, -1); len(names) > 0 { // columns whose names are DynamoDB's own words
		meant := map[string]string{}
		for _, name := range names {
			meant[name] = name[1:]
		}
		in["ExpressionAttributeNames"] = meant
	}
	for {
		var page struct {
			Items            []map[string]map[string]any
			LastEvaluatedKey map[string]any
		}
		b.json("dynamodb", "DynamoDB_20120810.Scan", in, &page)
		for _, item := range page.Items {
			read := row{}
			for column, typed := range item {
				for _, value := range typed {
					read[column] = fmt.Sprint(value)
				}
			}
			found = append(found, read)
		}
		if len(page.LastEvaluatedKey) == 0 {
			return found
		}
		in["ExclusiveStartKey"] = page.LastEvaluatedKey
	}
}

func text(s string) map[string]any { return map[string]any{"S": s} }
func number(n int) map[string]any  { return map[string]any{"N": strconv.Itoa(n)} }

// letter is a dead letter as whoever ended the task sent it.
type letter struct {
	Job, Task string
	Reason    struct{ Kind, Cause string }
	Context   []struct {
		Attempt         int
		Worker, Outcome string
		Failure         struct{ Kind, Cause string }
		EndedAt         int64 `json:"ended_at"`
	}
}

// letters are the dead letters of a job in the queue of chunks, as they lie there.
func (b *bench) letters(job string) (of []letter) {
	b.t.Helper()
	var got struct{ Messages []struct{ Body string } }
	b.json("sqs", "AmazonSQS.ReceiveMessage", map[string]any{
		"QueueUrl": b.endpoint + "/" + tenant + "/" + b.stack + "-work-dead", "MaxNumberOfMessages": 10, "VisibilityTimeout": 1,
	}, &got)
	for _, m := range got.Messages {
		var l letter
		if err := json.Unmarshal([]byte(m.Body), &l); err != nil {
			b.t.Fatalf("%v: %s", err, m.Body)
		}
		if l.Job == job {
			of = append(of, l)
		}
	}
	return of
}

// alarms are those of the deployment, of the template that CloudFormation has.
func (b *bench) alarms() map[string]alarmtest.Alarm {
	b.t.Helper()
	var got struct {
		Body string `xml:"GetTemplateResult>TemplateBody"`
	}
	b.xml("cloudformation", map[string]string{"Action": "GetTemplate", "Version": "2010-05-15", "StackName": b.stack + "-workers"}, &got)
	alarms, err := alarmtest.Read([]byte(got.Body), b.stack)
	if err != nil || len(alarms) == 0 {
		b.t.Fatalf("%d alarms, %v in %s", len(alarms), err, tail([]byte(got.Body)))
	}
	return alarms
}

// seen is what was measured since a time: what the functions wrote into their logs, and what SQS measured of the queues,
// that also before: what lay in them then is not new.
func (b *bench) seen(since time.Time) *alarmtest.Seen {
	b.t.Helper()
	var seen alarmtest.Seen
	for _, function := range []string{"control", "work", "reap"} {
		if err := seen.ReadLog(b.log(function, since)); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, alarm := range b.alarms() {
		for _, m := range alarm.Metrics() {
			if m.Namespace == "AWS/SQS" {
				b.measured(&seen, m, since)
			}
		}
	}
	return &seen
}

func (b *bench) measured(seen *alarmtest.Seen, m alarmtest.Metric, since time.Time) {
	b.t.Helper()
	dimension, value, _ := strings.Cut(m.Dimensions, "=")
	var got struct {
		Points []struct {
			Timestamp time.Time
			Maximum   float64
		} `xml:"GetMetricStatisticsResult>Datapoints>member"`
	}
	b.xml("monitoring", map[string]string{
		"Action": "GetMetricStatistics", "Version": "2010-08-01", "Namespace": m.Namespace, "MetricName": m.Name, "Statistics.member.1": "Maximum", "Period": "60",
		"Dimensions.member.1.Name": dimension, "Dimensions.member.1.Value": value,
		"StartTime": since.Add(-30 * time.Minute).Truncate(time.Minute).UTC().Format(time.RFC3339), "EndTime": time.Now().UTC().Add(time.Minute).Format(time.RFC3339),
	}, &got)
	for _, p := range got.Points {
		seen.Put(m, p.Timestamp, p.Maximum)
	}
}
