package alarmtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Metric names what is measured.
type Metric struct {
	Namespace, Name string
	Dimensions      string // NAME=VALUE, sorted, with commas between them
}

// Seen is what was measured in a trial.
type Seen struct{ points map[Metric][]point }

type point struct {
	at    time.Time
	value float64
}

// Put adds a value.
func (s *Seen) Put(m Metric, at time.Time, value float64) {
	if s.points == nil {
		s.points = map[Metric][]point{}
	}
	s.points[m] = append(s.points[m], point{at, value})
}

// Of is a metric's values added up.
func (s *Seen) Of(m Metric) (sum float64) {
	for _, p := range s.points[m] {
		sum += p.value
	}
	return sum
}

// Names are the metrics of which there are values.
func (s *Seen) Names() (all []Metric) {
	for m := range s.points {
		all = append(all, m)
	}
	return all
}

// ReadLog adds what the lines in CloudWatch's embedded metric format say; a log's other lines are none of it.
func (s *Seen) ReadLog(log string) error {
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"CloudWatchMetrics"`) {
			continue
		}
		if err := s.readLine([]byte(line)); err != nil {
			return fmt.Errorf("read %q: %w", strings.TrimSpace(line), err)
		}
	}
	return nil
}

func (s *Seen) readLine(line []byte) error {
	var values map[string]any
	var about struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		} `json:"_aws"`
	}
	if err := json.Unmarshal(line, &values); err != nil {
		return err
	}
	if err := json.Unmarshal(line, &about); err != nil {
		return err
	}
	for _, directive := range about.AWS.CloudWatchMetrics {
		for _, names := range directive.Dimensions {
			var dimensions []dimension
			for _, name := range names {
				value, is := values[name].(string)
				if !is {
					return fmt.Errorf("its dimension %s has no value", name)
				}
				dimensions = append(dimensions, dimension{name, value})
			}
			for _, m := range directive.Metrics {
				value, is := values[m.Name].(float64)
				if !is {
					return fmt.Errorf("its metric %s has no value", m.Name)
				}
				s.Put(metricOf(directive.Namespace, m.Name, dimensions), time.UnixMilli(about.AWS.Timestamp), value)
			}
		}
	}
	return nil
}

// windows are the values of a metric in so many windows, the last of which, 0, ends at that time.
func (s *Seen) windows(m Metric, statistic string, at time.Time, period time.Duration, n int) series {
	found := series{}
	for _, p := range s.points[m] {
		if p.at.After(at) {
			continue
		}
		window := int(at.Sub(p.at) / period)
		if window >= n {
			continue
		}
		before, is := found[window]
		switch {
		case statistic == "Sum":
			found[window] = before + p.value
		case statistic == "Maximum" && is:
			found[window] = max(before, p.value)
		default:
			found[window] = p.value
		}
	}
	return found
}
