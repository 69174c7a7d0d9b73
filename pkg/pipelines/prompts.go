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
				all[id] = "{}"
			}
			what := "prompt " + c.Prompt + ", as call " + c.ID + " asks it"
			if l.try(p, what, pipeline.PromptData{Vars: c.Vars, Replies: all}) {
				l.try(p, what+" when no earlier call was answered", pipeline.PromptData{Vars: c.Vars})
			}
		}
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
