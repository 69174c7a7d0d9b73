package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast/pkg/pipeline"
)

// Letter is the newest dead letter of a task, held against the row that it is about.
type Letter struct {
	pipeline.DeadLetter
	Queue   string           `json:"queue"`
	Letters int              `json:"letters"` // how many there are of the task: one for each time that it was given up, and the queue's own
	Row     *pipeline.Task   `json:"row,omitempty"`
	Item    string           `json:"item,omitempty"` // the line that the task is about, where chunks are lines
	Stale   bool             `json:"stale"`          // it says nothing about the row as it stands
	Meaning string           `json:"meaning"`        // for a person
	Expires pipeline.Instant `json:"expires"`
}

// DeadLetters is every task that has a dead letter in either queue, the one whose newest expires next first. What is
// no message of ours stands for itself. Reading them changes nothing.
func (t *Triage) DeadLetters(ctx context.Context) ([]Letter, error) {
	var all []Letter
	index := map[string]int{}
	for _, q := range []struct {
		name  string
		queue pipeline.Queue
	}{{pipeline.ControlQueue, t.cfg.Queues.Control}, {pipeline.WorkQueue, t.cfg.Queues.Work}} {
		for cursor := ""; ; {
			page, next, err := q.queue.DeadLetters(ctx, cursor)
			if err != nil {
				return nil, fmt.Errorf("read the dead letters of the %s queue: %w", q.name, err)
			}
			for _, letter := range page {
				l, err := t.letter(ctx, q.name, letter)
				if err != nil {
					return nil, err
				}
				all = oncePerTask(all, index, l)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	t.nameItems(ctx, all)
	slices.SortStableFunc(all, func(a, b Letter) int { return int(a.Expires.Sub(b.Expires)) })
	return all, nil
}

// oncePerTask adds a letter, or puts it in the place of an older one of the same task.
func oncePerTask(all []Letter, index map[string]int, l Letter) []Letter {
	key := fmt.Sprintf("%s/%s/%s", l.Queue, l.Job, l.Task)
	if i, known := index[key]; known && l.Task != "" {
		l.Letters += all[i].Letters
		if l.SentAt < all[i].SentAt {
			letters := l.Letters
			l = all[i]
			l.Letters = letters
		}
		all[i] = l
		return all
	}
	index[key] = len(all)
	return append(all, l)
}

// ofNewer is what a letter means to a program that does not know its row.
const ofNewer = "a newer version of Holdfast wrote it: update what reads this"

func (t *Triage) letter(ctx context.Context, queue string, letter pipeline.DeadLetter) (Letter, error) {
	l := Letter{DeadLetter: letter, Queue: queue, Letters: 1, Expires: letter.SentAt.Add(t.cfg.Policy.DeadLetterRetention)}
	ref := pipeline.Ref{Job: letter.Job, ID: letter.Task}
	if ref.Job == "" {
		m, err := pipeline.DecodeMessage(letter.Body)
		switch {
		case errors.Is(err, pipeline.ErrNewer):
			l.Meaning = ofNewer
			return l, nil
		case err != nil:
			l.Meaning = "not a message of ours: " + letter.Reason.Cause
			return l, nil
		}
		ref = m.Ref()
		l.Job, l.Task = m.Job, m.Task
	}
	row, err := t.cfg.Store.Task(ctx, ref)
	switch {
	case errors.Is(err, pipeline.ErrNotFound):
		l.Stale, l.Meaning = true, "there is no such row"
		return l, nil
	case errors.Is(err, pipeline.ErrNewer): // it hides no other letter
		l.Meaning = ofNewer
		return l, nil
	case err != nil:
		return l, fmt.Errorf("read the row of a dead letter: %w", err)
	}
	l.Row = &row
	switch {
	case !row.Status.Ended():
		l.Stale, l.Meaning = true, fmt.Sprintf("the row is still %s", row.Status)
	case row.Status != pipeline.TaskAbandoned:
		l.Stale, l.Meaning = true, fmt.Sprintf("the row is %s", row.Status)
	default:
		l.Meaning = "abandoned: " + row.Reason.String()
	}
	return l, nil
}
