package pipelines

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"holdfast/pkg/pipeline"
)

func (l *loader) readStages(v value) {
	if len(v.items()) == 0 {
		l.add(v.at(), "stages: there must be a list of at least one stage, each with a name and calls")
		return
	}
	seen := map[string]bool{}
	for _, s := range v.items() {
		if !l.mapping(s, "a stage", "name", "calls", "profiles") || !l.inProfile(s) {
			continue
		}
		name := l.text(s.get("name"), "name")
		switch {
		case !goodName.MatchString(name):
			l.add(s.at(), "a stage needs a name: %s", nameRule)
		case seen[name]:
			l.add(s.at(), "stage %s: there is another stage of that name; names must be unique", name)
		case len(s.get("calls").items()) == 0:
			l.add(s.at(), "stage %s: calls: there must be a list of at least one call", name)
		}
		seen[name] = true
		l.def.Stages = append(l.def.Stages, pipeline.Stage{Name: name})
		for _, c := range s.get("calls").items() {
			l.readCall(c)
		}
	}
	if l.def.Calls() == 0 {
		l.add(v.at(), "stages: profile %s has no calls", l.profile)
	}
}

func (l *loader) inProfile(stage value) bool {
	only := l.texts(stage.get("profiles"), "profiles")
	return len(only) == 0 || slices.Contains(only, l.profile)
}

// readCall spells one entry of `calls:` out: once, or once for each item of its for_each.
func (l *loader) readCall(v value) {
	if !l.mapping(v, "a call", "id", "title", "for_each", "prompt", "schema", "max_tokens", "category", "analyst", "vars",
		"uses", "value", "findings", "replaces", "gate") {
		return
	}
	stage := &l.def.Stages[len(l.def.Stages)-1]
	for _, it := range l.each(v.get("for_each")) {
		c := l.oneCall(v, it)
		where := "stage " + stage.Name + ": call " + c.ID
		if !l.checkID(v, c, where) || !l.withinCalls(v.at()) {
			continue
		}
		l.checkNames(v, c, where)
		l.checkSchemaFields(v, c, where)
		l.calls[c.ID] = parsed{v.at(), len(l.def.Stages)}
		stage.Calls = append(stage.Calls, c)
	}
}

func (l *loader) oneCall(v value, it item) pipeline.Call {
	text := func(field string) string {
		f := v.get(field)
		return strings.TrimSpace(l.fill(l.text(f, field), it, f.at()))
	}
	c := pipeline.Call{
		ID:       text("id"),
		Title:    text("title"),
		Prompt:   text("prompt"),
		Schema:   text("schema"),
		Category: text("category"),
		Analyst:  text("analyst"),
		Value:    text("value"),
		Findings: text("findings"),
	}
	if c.Title == "" {
		c.Title = c.ID
	}
	c.MaxTokens = l.maxTokens(v, text("max_tokens"))
	c.Vars = l.vars(v.get("vars"), it)
	c.Vars["call"] = c.ID
	c.Uses = l.earlier(v.get("uses"), it, "uses")
	c.Replaces = l.earlier(v.get("replaces"), it, "replaces")
	c.Gate = l.gate(v.get("gate"), it)
	return c
}

func (l *loader) maxTokens(call value, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		l.add(orParent(call.get("max_tokens"), call).at(), "max_tokens: %q must be a number of at least 1: the longest answer that is paid for", text)
		return 1
	}
	return n
}

// vars are the call's own variables; `call`, its id, is always one of them.
func (l *loader) vars(v value, it item) map[string]string {
	vars := map[string]string{}
	if v.missing() {
		return vars
	}
	l.mapping(v, "vars")
	keys, values := v.entries()
	for i, k := range keys {
		if k.node.Value == "call" {
			l.add(k.at(), "vars: call is set to the call's id already; choose another name")
		}
		vars[k.node.Value] = l.fill(l.text(values[i], "vars: "+k.node.Value), it, values[i].at())
	}
	return vars
}

// earlier spells a list of call ids out; `*` in one stands for anything. Only calls of earlier stages match.
func (l *loader) earlier(v value, it item, what string) []string {
	var ids []string
	for _, pattern := range l.texts(v, what) {
		pattern = l.fill(pattern, it, v.at())
		before := len(ids)
		for _, s := range l.def.Stages[:len(l.def.Stages)-1] {
			for _, c := range s.Calls {
				if ok, err := path.Match(pattern, c.ID); err == nil && ok && !slices.Contains(ids, c.ID) {
					ids = append(ids, c.ID)
				}
			}
		}
		if len(ids) == before {
			l.add(v.at(), "%s: %q is not a call of an earlier stage; those are %s", what, pattern, names(l.earlierCalls()))
		}
	}
	return ids
}

func (l *loader) earlierCalls() []string {
	var ids []string
	for _, s := range l.def.Stages[:len(l.def.Stages)-1] {
		for _, c := range s.Calls {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func (l *loader) gate(v value, it item) *pipeline.Gate {
	if v.missing() || !l.mapping(v, "gate", "call", "min") {
		return nil
	}
	g := &pipeline.Gate{
		Call: l.fill(l.text(v.get("call"), "gate: call"), it, v.get("call").at()),
		Min:  l.number(v.get("min"), "gate: min", 0),
	}
	if v.get("min").missing() {
		l.add(v.at(), "gate: min: must be set: the value from which on the call is asked")
	}
	p, ok := l.calls[g.Call]
	if !ok || p.stage >= len(l.def.Stages) {
		l.add(v.at(), "gate: %q is not a call of an earlier stage; those are %s", g.Call, names(l.earlierCalls()))
		return nil
	}
	if c, _, _ := l.def.Find(g.Call); c.Value == "" {
		l.add(v.at(), "gate: call %s has no value to compare with; set its `value:` to a number field of its schema", g.Call)
	}
	return g
}

func (l *loader) checkID(v value, c pipeline.Call, where string) bool {
	if !goodName.MatchString(c.ID) {
		l.add(orParent(v.get("id"), v).at(), "%s: a call needs an id: %s", where, nameRule)
		return false
	}
	if other, twice := l.calls[c.ID]; twice {
		l.add(orParent(v.get("id"), v).at(), "%s: line %d has a call of that id already; ids must be unique (use ${each.id} with for_each)", where, other.at.line)
		return false
	}
	return true
}

func (l *loader) checkNames(v value, c pipeline.Call, where string) {
	if _, ok := l.prompts[c.Prompt]; !ok {
		l.add(orParent(v.get("prompt"), v).at(), "%s: there is no prompt %q; the prompts are %s", where, c.Prompt, names(sorted(l.prompts)))
	}
	if _, ok := l.schemas[c.Schema]; !ok {
		l.add(orParent(v.get("schema"), v).at(), "%s: there is no schema %q; the schemas are %s", where, c.Schema, names(sorted(l.schemas)))
	}
	if c.Category != "" && !hasID(l.lists["categories"], c.Category) {
		l.add(v.get("category").at(), "%s: there is no category %q; the categories are %s", where, c.Category, names(ids(l.lists["categories"])))
	}
	if c.Analyst != "" && !hasID(l.lists["analysts"], c.Analyst) {
		l.add(v.get("analyst").at(), "%s: there is no analyst %q; the analysts are %s", where, c.Analyst, names(ids(l.lists["analysts"])))
	}
}

// checkPresence looks at the calls that categories name.
func (l *loader) checkPresence() {
	entries := l.lists["categories"].items()
	for i, c := range l.def.Categories {
		if c.Presence == "" || i >= len(entries) {
			continue
		}
		at := entries[i].get("presence").at()
		call, _, ok := l.def.Find(c.Presence)
		if !ok {
			l.add(at, "category %s: presence: there is no call %q", c.ID, c.Presence)
		} else if call.Value == "" {
			l.add(at, "category %s: presence: call %s has no value; set its `value:` to a number field of its schema", c.ID, c.Presence)
		}
	}
}

func ids(list value) []string {
	var all []string
	for _, v := range list.items() {
		all = append(all, v.get("id").written())
	}
	return all
}

func hasID(list value, id string) bool { return slices.Contains(ids(list), id) }

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
