package access

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Record is what was seen of each process: of requests that are the same to IAM one, with the attributes of all.
type Record struct {
	mu   sync.Mutex
	seen map[string]map[string]Request
}

// Add notes a request of a process. The deployment's name in it becomes STACK.
func (r *Record) Add(process, stack string, q Request) {
	q.Resource = strings.Replace(q.Resource, stack+"-", "STACK-", 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]map[string]Request{}
	}
	if r.seen[process] == nil {
		r.seen[process] = map[string]Request{}
	}
	same := fmt.Sprint(q.Action, q.Resource, q.Keys)
	before := r.seen[process][same]
	q.Attributes = append(slices.Clone(q.Attributes), before.Attributes...)
	slices.Sort(q.Attributes)
	q.Attributes = slices.Compact(q.Attributes)
	r.seen[process][same] = q
}

// Of are a process's requests, in an order that does not change.
func (r *Record) Of(process string) (all []Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.seen[process] {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b Request) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

// Processes are those that something was seen of.
func (r *Record) Processes() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for process := range r.seen {
		all = append(all, process)
	}
	slices.Sort(all)
	return all
}

// Save writes the record: a line for each request, so that a change of it can be read.
func (r *Record) Save(path string) error {
	var b strings.Builder
	for _, process := range r.Processes() {
		for _, q := range r.Of(process) {
			body, err := json.Marshal(struct {
				Process string `json:"process"`
				Request
			}{process, q})
			if err != nil {
				return err
			}
			b.Write(append(body, '\n'))
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// Load reads a record into this one, beside what it has.
func (r *Record) Load(path string) error {
	body, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for n, line := range strings.Split(strings.TrimSpace(string(body)), "\n") {
		var q struct {
			Process string `json:"process"`
			Request
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n+1, err)
		}
		r.Add(q.Process, "STACK", q.Request)
	}
	return nil
}
