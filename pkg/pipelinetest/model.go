package pipelinetest

import (
	"context"
	"fmt"
	"sync"

	"holdfast/pkg/pipeline"
)

// Reaction is what a scripted model does with one try: it waits for the channel, if there is one, and answers.
type Reaction struct {
	Text    string // the answer's text
	Stop    pipeline.Stop
	Usage   pipeline.Usage
	Err     error           // instead of an answer; see Failing
	Until   <-chan struct{} // the answer comes once it is closed, or the context ends
	Ignores bool            // goes on until Until though the context has ended, as a call does that cannot be aborted
}

// Failing reacts with a model's error of this kind.
func Failing(kind pipeline.Kind) Reaction {
	return Reaction{Err: &pipeline.ModelError{Failure: pipeline.Fail(kind, "scripted: %s", kind)}}
}

// Answering reacts with this text.
func Answering(text string) Reaction { return Reaction{Text: text} }

// Model answers by script. Without a script for a request it answers Default. It remembers every request. Its methods
// may be called from any goroutine.
type Model struct {
	Described pipeline.ModelInfo
	// Name tells which script a request follows; its key if nil. A test that knows its prompts takes a call's id out.
	Name func(pipeline.Request) string
	// Default is the reaction to what has no script, or none left.
	Default Reaction
	// Started, if set, is called at the beginning of each try.
	Started func(pipeline.Request)

	mu      sync.Mutex
	scripts map[string][]Reaction
	asked   []pipeline.Request
	running int
	most    int
	aborted int
}

var _ pipeline.Model = (*Model)(nil)

// NewModel is a model that answers {"score": 0.5} to everything, for a cent per thousand tokens.
func NewModel() *Model {
	return &Model{
		Described: pipeline.ModelInfo{
			Name: "scripted", Version: "1",
			Price: pipeline.Price{Input: pipeline.Dollar / 100_000, Output: pipeline.Dollar / 100_000}, PricedAs: "scripted",
			ContextTokens: 100_000, MaxOutput: 4_000,
		},
		Default: Answering(`{"score": 0.5}`),
	}
}

// Script makes the tries of a name react so, one after the other.
func (m *Model) Script(name string, reactions ...Reaction) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scripts == nil {
		m.scripts = map[string][]Reaction{}
	}
	m.scripts[name] = append(m.scripts[name], reactions...)
}

// Info describes the model.
func (m *Model) Info() pipeline.ModelInfo { return m.Described }

// Complete follows the script.
func (m *Model) Complete(ctx context.Context, r pipeline.Request) (pipeline.Response, error) {
	reaction, number := m.begin(r)
	defer m.end()
	if m.Started != nil {
		m.Started(r)
	}
	if err := m.wait(ctx, reaction); err != nil {
		return pipeline.Response{}, err
	}
	if reaction.Err != nil {
		return pipeline.Response{}, reaction.Err
	}
	response := pipeline.Response{Text: reaction.Text, Stop: reaction.Stop, Usage: reaction.Usage, RequestID: fmt.Sprintf("request-%d", number)}
	if response.Stop == "" {
		response.Stop = pipeline.StopEnd
	}
	if response.Usage == (pipeline.Usage{}) {
		response.Usage = pipeline.Usage{Input: r.InputTokens(), Output: pipeline.EstimateTokens(reaction.Text)}
	}
	return response, nil
}

func (m *Model) begin(r pipeline.Request) (Reaction, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r)
	m.running++
	m.most = max(m.most, m.running)
	name := string(r.Key)
	if m.Name != nil {
		name = m.Name(r)
	}
	script := m.scripts[name]
	if len(script) == 0 {
		return m.Default, len(m.asked)
	}
	m.scripts[name] = script[1:]
	return script[0], len(m.asked)
}

func (m *Model) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
}

func (m *Model) wait(ctx context.Context, reaction Reaction) error {
	if reaction.Ignores {
		<-reaction.Until
		return nil
	}
	if reaction.Until != nil {
		select {
		case <-reaction.Until:
		case <-ctx.Done():
		}
	}
	if ctx.Err() == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.aborted++
	return context.Cause(ctx)
}

// Asked is every request so far, in the order in which they came.
func (m *Model) Asked() []pipeline.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]pipeline.Request(nil), m.asked...)
}

// Tries is how often each key was asked for.
func (m *Model) Tries() map[pipeline.ReplyKey]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	tries := map[pipeline.ReplyKey]int{}
	for _, r := range m.asked {
		tries[r.Key]++
	}
	return tries
}

// Most is how many tries were in flight at once, at the most.
func (m *Model) Most() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

// Aborted is how many tries ended because their context did.
func (m *Model) Aborted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.aborted
}
