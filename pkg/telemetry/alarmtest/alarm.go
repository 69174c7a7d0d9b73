// Package alarmtest judges the alarms of a deployment's template as CloudWatch does, on what the processes of a trial
// wrote into their logs and on what the services measured: so that a trial shows which alarm rings, and none of it is
// said twice.
//
// It may not: know what an alarm is about, make up a threshold, or be part of a program.
package alarmtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Alarm is one alarm of a template.
type Alarm struct {
	Name string // without the deployment's

	of      []query // by id; the one that is judged is said by returned
	judged  string  // id of it
	period  time.Duration
	least   float64
	compare string
	windows int    // that are looked at
	breach  int    // of them that must breach
	missing string // what a window without a value counts as
}

// query is a metric, or an expression over others.
type query struct {
	id, expression string
	metric         Metric
	statistic      string
}

// properties are an alarm's, as CloudFormation has them.
type properties struct {
	AlarmName, Namespace, MetricName, Statistic  string
	ComparisonOperator, TreatMissingData         string
	Dimensions                                   []dimension
	Period, EvaluationPeriods, DatapointsToAlarm int
	Threshold                                    float64
	Metrics                                      []struct {
		ID, Expression string
		Period         int
		ReturnData     *bool
		MetricStat     *struct {
			Metric struct {
				Namespace, MetricName string
				Dimensions            []dimension
			}
			Period int
			Stat   string
		}
	}
}

type dimension struct{ Name, Value string }

// Read reads the alarms of a CloudFormation template, by their names without the stack's. An alarm that it cannot
// judge is an error.
func Read(template []byte, stack string) (map[string]Alarm, error) {
	var t struct {
		Resources map[string]struct {
			Type       string
			Properties json.RawMessage
		}
	}
	if err := json.Unmarshal(template, &t); err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	alarms := map[string]Alarm{}
	for id, r := range t.Resources {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		var p properties
		if err := json.Unmarshal(r.Properties, &p); err != nil {
			return nil, fmt.Errorf("read alarm %s: %w", id, err)
		}
		a, err := p.alarm(strings.TrimPrefix(p.AlarmName, stack+"-"))
		if err != nil {
			return nil, fmt.Errorf("read alarm %s: %w", id, err)
		}
		alarms[a.Name] = a
	}
	return alarms, nil
}

func (p properties) alarm(name string) (Alarm, error) {
	a := Alarm{Name: name, least: p.Threshold, compare: p.ComparisonOperator, windows: p.EvaluationPeriods, breach: p.DatapointsToAlarm, missing: p.TreatMissingData}
	if a.breach == 0 {
		a.breach = a.windows
	}
	seconds := p.Period
	if p.MetricName != "" {
		a.judged = "metric"
		a.of = []query{{id: a.judged, metric: metricOf(p.Namespace, p.MetricName, p.Dimensions), statistic: p.Statistic}}
	}
	for _, q := range p.Metrics {
		each := query{id: q.ID, expression: q.Expression}
		if q.MetricStat != nil {
			m := q.MetricStat.Metric
			each.metric, each.statistic = metricOf(m.Namespace, m.MetricName, m.Dimensions), q.MetricStat.Stat
			seconds = max(seconds, q.MetricStat.Period)
		}
		if q.ReturnData == nil || *q.ReturnData {
			if a.judged != "" {
				return a, fmt.Errorf("both %s and %s are to be judged", a.judged, q.ID)
			}
			a.judged = q.ID
		}
		a.of = append(a.of, each)
	}
	a.period = time.Duration(seconds) * time.Second
	if a.judged == "" || a.period <= 0 || a.windows < 1 {
		return a, fmt.Errorf("nothing is to be judged: %+v", p)
	}
	if _, known := comparisons[a.compare]; !known {
		return a, fmt.Errorf("%q is no comparison that is known here", a.compare)
	}
	return a, nil
}

func metricOf(namespace, name string, dimensions []dimension) Metric {
	var all []string
	for _, d := range dimensions {
		all = append(all, d.Name+"="+d.Value)
	}
	slices.Sort(all)
	return Metric{Namespace: namespace, Name: name, Dimensions: strings.Join(all, ",")}
}

var comparisons = map[string]func(value, least float64) bool{
	"GreaterThanOrEqualToThreshold": func(v, least float64) bool { return v >= least },
	"GreaterThanThreshold":          func(v, least float64) bool { return v > least },
	"LessThanThreshold":             func(v, least float64) bool { return v < least },
	"LessThanOrEqualToThreshold":    func(v, least float64) bool { return v <= least },
}

// Metrics are those that the alarm reads.
func (a Alarm) Metrics() (all []Metric) {
	for _, q := range a.of {
		if q.expression == "" {
			all = append(all, q.metric)
		}
	}
	return all
}

// before is how many windows before those that are judged an expression sees.
const before = 2

// Rings says whether the alarm is raised at a time, and by what values of its windows, the last one first. It is
// stricter than CloudWatch in one thing, which looks for older values where some are missing: here a window without a
// value counts as the alarm says, and nothing else.
func (a Alarm) Rings(seen *Seen, at time.Time) (bool, string, error) {
	values := map[string]series{}
	for _, q := range a.of {
		if q.expression == "" {
			values[q.id] = seen.windows(q.metric, q.statistic, at, a.period, a.windows+before)
		}
	}
	judged, is := values[a.judged]
	if !is {
		var err error
		if judged, err = a.compute(values); err != nil {
			return false, "", fmt.Errorf("alarm %s: %w", a.Name, err)
		}
	}
	breached := 0
	var told []string
	for window := range a.windows {
		value, has := judged[window]
		switch {
		case has:
			told = append(told, fmt.Sprint(value))
		default:
			told = append(told, "-")
		}
		if has && comparisons[a.compare](value, a.least) || !has && a.missing == "breaching" {
			breached++
		}
	}
	return breached >= a.breach, fmt.Sprintf("%s at %s: %s, %s %v in %d of %d", a.Name, at.UTC().Format(time.TimeOnly), strings.Join(told, " "), a.compare, a.least, a.breach, a.windows), nil
}

// compute is the value of the expression that is judged.
func (a Alarm) compute(values map[string]series) (series, error) {
	for _, q := range a.of {
		if q.id == a.judged {
			return evaluate(q.expression, values, a.windows+before)
		}
	}
	return nil, fmt.Errorf("it judges %q, which is nothing of it", a.judged)
}

// Rang says when the alarm was raised first between two times, looked at every minute as CloudWatch does; a zero time
// if it was not.
func (a Alarm) Rang(seen *Seen, from, to time.Time) (when time.Time, why string, err error) {
	for at := from; !at.After(to); at = at.Add(time.Minute) {
		rings, told, err := a.Rings(seen, at)
		if err != nil || rings {
			return at, told, err
		}
		why = told
	}
	return time.Time{}, why, nil
}
