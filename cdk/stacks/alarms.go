package stacks

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"

	"holdfast/pkg/config"
	"holdfast/pkg/telemetry"
)

// abandonedAlarm is at how many newly abandoned tasks in five minutes somebody is told: one may be one bad document.
const abandonedAlarm = 3

// wasteWindows is for how many five minutes calls may be paid without one cell finished.
const wasteWindows = 3

// alarm is one thing that somebody must hear of.
type alarm struct {
	id        string
	says      string // what happened and what to do
	metric    awscloudwatch.IMetric
	threshold float64
	windows   int  // of five minutes each, over the threshold
	within    int  // the last so many windows; 0 = all of them must be
	below     bool // it rings below the threshold, not at and above
	silence   bool // that nothing is measured is what it is about
}

// addAlarms makes the alarms, all to the deployment's topic.
func (w *workers) addAlarms() {
	topic := awssns.Topic_FromTopicArn(w.stack, text("AlarmTopic"), text(arn(w.stack, "sns", topicName(w.Settings))))
	if w.AlarmAddress != "" {
		awssns.NewCfnSubscription(w.stack, text("AlarmMail"), &awssns.CfnSubscriptionProps{
			TopicArn: topic.TopicArn(), Protocol: text("email"), Endpoint: text(w.AlarmAddress),
		})
	}
	for _, a := range append(w.ownAlarms(), w.queueAlarms()...) {
		made := a.add(w)
		made.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
		made.AddOkAction(awscloudwatchactions.NewSnsAction(topic))
	}
}

// ownAlarms are about what only Holdfast knows.
func (w *workers) ownAlarms() []alarm {
	return []alarm{
		{
			id: "Abandoned", metric: w.ours(telemetry.TasksAbandoned), threshold: abandonedAlarm, windows: 1,
			says: fmt.Sprintf("%d or more tasks were abandoned in five minutes, each with its reasons: holdfast why JOB; holdfast dead-letters. Once the cause is gone: holdfast redrive JOB.", abandonedAlarm),
		},
		{
			id: "Waste", windows: wasteWindows, threshold: 1,
			metric: math("IF(FILL(calls, 0) > 0 AND FILL(cells, 0) < 1, 1, 0)", "calls are paid and no cell is finished", map[string]awscloudwatch.IMetric{
				"calls": w.ours(telemetry.PaidCalls), "cells": w.ours(telemetry.CellsFinished),
			}),
			says: "Calls are paid for and no cell gets finished by them. See what the tries fail of: holdfast why JOB. holdfast pause JOB stops the spending; the ceiling stops it in any case.",
		},
		{
			id: "Unclaimable", metric: w.ours(telemetry.Unclaimable), threshold: 1, windows: 1,
			within: 1 + int((w.Policy.RingLimit+look-1)/look), // such a row is told of at each ring
			says:   fmt.Sprintf("A row was rung %d times and nobody claimed it. Do the consumers of its queue run? It is rung on until its job's deadline.", w.Policy.MaxRings),
		},
		{
			id: "SilentReaper", metric: w.ours(telemetry.Sweeps), threshold: 1, windows: 1, below: true, silence: true,
			says: "Nothing has swept for five minutes: what stalls stays where it is. Look at the log of " + config.FunctionName(w.Stack, config.Reap) + "; meanwhile: holdfast reap.",
		},
	}
}

// queueAlarms are about the queues.
func (w *workers) queueAlarms() (all []alarm) {
	live, dead := w.queueNames()
	letters := map[string]awscloudwatch.IMetric{}
	sum := ""
	for i, name := range dead {
		id := fmt.Sprintf("m%d", i)
		letters[id] = ofQueue(name, "ApproximateNumberOfMessagesVisible")
		if sum += id; i+1 < len(dead) {
			sum += " + "
		}
	}
	all = append(all, alarm{
		id: "DeadLetters", metric: math("DIFF("+sum+")", "new dead letters", letters), threshold: 1, windows: 1,
		says: "A dead-letter queue grows: holdfast dead-letters shows each letter with its reasons, and whether its task goes on in spite of it.",
	})
	for i, name := range live {
		all = append(all, alarm{
			id: construct(config.Process(queues[i])) + "Waits", metric: ofQueue(name, "ApproximateAgeOfOldestMessage"),
			threshold: w.Policy.RingLimit.Seconds(), windows: 2,
			says: fmt.Sprintf("A message of %s waits for more than %v. Too few workers, a full quota, or a model that is not called any more: holdfast why JOB says what it waits for.", name, w.Policy.RingLimit),
		})
	}
	return all
}

func (a alarm) add(w *workers) awscloudwatch.Alarm {
	comparison, missing := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD, awscloudwatch.TreatMissingData_NOT_BREACHING
	if a.below {
		comparison = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
	}
	if a.silence {
		missing = awscloudwatch.TreatMissingData_BREACHING
	}
	return awscloudwatch.NewAlarm(w.stack, text(a.id+"Alarm"), &awscloudwatch.AlarmProps{
		AlarmName: text(alarmName(w.Settings, a.id)), AlarmDescription: text(a.says), Metric: a.metric,
		Threshold: &a.threshold, EvaluationPeriods: number(max(a.windows, a.within)), DatapointsToAlarm: number(a.windows),
		ComparisonOperator: comparison, TreatMissingData: missing,
	})
}
