package pipelines

import (
	"io"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"holdfast/pkg/pipeline"
)

// prompt is a template and where its first line stands.
type prompt struct {
	text  string
	at    place
	ready *template.Template // nil when it does not parse
}

func (l *loader) readPrompts(v value) {
	if v.missing() {
		l.add(v.at(), "prompts: there must be at least one, as `name: |` and its text or `name: {file: name.md}`")
		return
	}
	l.mapping(v, "prompts")
	keys, values := v.entries()
	for i, k := range keys {
		l.prompts[k.node.Value] = l.readPrompt(values[i], "prompt "+k.node.Value)
	}
}

func (l *loader) readPrompt(v value, what string) prompt {
	text, at := l.textOrFile(v, what)
	if strings.TrimSpace(text) == "" {
		l.add(v.at(), "%s: is empty", what)
		return prompt{text: text, at: at}
	}
	t, err := template.New("prompt").Option("missingkey=error").Parse(text)
	if err != nil {
		l.badTemplate(at, what, err)
		return prompt{text: text, at: at}
	}
	return prompt{text: text, at: at, ready: t}
}

// templateError takes the line out of what text/template says: `template: prompt:3:12: executing "prompt" at <.X>: why`.
var templateError = regexp.MustCompile(`^template: prompt:(\d+)(?::\d+)?: (?:executing "prompt" at )?`)

func (l *loader) badTemplate(begin place, what string, err error) {
	text := err.Error()
	if m := templateError.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits
		begin.line += max(line, 1) - 1
		text = text[len(m[0]):]
	}
	l.add(begin, "%s: %s", what, text)
}

// checkPrompts runs every template as the engine will: with all replies it may show, and with none, since a call may
// stay without an answer.
func (l *loader) checkPrompts(root value) {
	shared := l.readPrompt(orParent(root.get("shared"), root), "shared")
	l.def.Shared = shared.text
	l.try(shared, "shared", pipeline.PromptData{})
	for _, s := range l.def.Stages {
		for _, c := range s.Calls {
			p := l.prompts[c.Prompt]
			all := map[string]string{}
			for _, id := range c.Uses {
				all[id] = seenReply
			}
			what := "prompt " + c.Prompt + ", as call " + c.ID + " asks it"
			if l.try(p, what, pipeline.PromptData{Vars: c.Vars, Replies: all}) && l.try(p, what+" when no earlier call was answered", pipeline.PromptData{Vars: c.Vars}) {
				l.checkShows(p, shared, what, pipeline.PromptData{Vars: c.Vars, Replies: all})
			}
		}
	}
}

// What stands for the chunk's text and for a reply when a template is tried, to see whether it shows them.
const (
	seenText  = "\x00text\x00"
	seenReply = "{\"\x00reply\x00\":0}"
)

// checkShows refuses a call that shows no part of the document: it would ask the same about every chunk.
func (l *loader) checkShows(p, shared prompt, what string, data pipeline.PromptData) {
	if shared.ready == nil {
		return
	}
	data.Text, data.Context, data.Heading = seenText, "context", "heading"
	var out strings.Builder
	if shared.ready.Execute(&out, pipeline.PromptData{Text: seenText, Context: "context", Heading: "heading"}) != nil || p.ready.Execute(&out, data) != nil {
		return // said already
	}
	if !strings.Contains(out.String(), seenText) && !strings.Contains(out.String(), seenReply) {
		l.add(p.at, "%s: neither it nor `shared` shows the text, nor an earlier reply: every chunk would be asked the same; write {{.Text}} in `shared`, between markers", what)
	}
}

func (l *loader) try(p prompt, what string, data pipeline.PromptData) bool {
	if p.ready == nil {
		return false
	}
	data.Text, data.Context, data.Heading = "text", "context", "heading"
	err := p.ready.Execute(io.Discard, data)
	if err == nil {
		return true
	}
	vars := sorted(maps.Clone(data.Vars))
	l.badTemplate(p.at, what, &hinted{err, vars})
	return false
}

// hinted adds what the template could have named.
type hinted struct {
	err  error
	vars []string
}

func (h *hinted) Error() string {
	text := h.err.Error()
	switch {
	case strings.Contains(text, "<.Vars"):
		return text + "; the vars are " + names(h.vars)
	case strings.Contains(text, "<.Replies"):
		return text + "; write {{with index .Replies \"id\"}}...{{end}}, and name the call in uses"
	case strings.Contains(text, "can't evaluate field"):
		return text + "; a prompt sees .Text, .Context, .Heading, .Vars and .Replies"
	}
	return text
}
