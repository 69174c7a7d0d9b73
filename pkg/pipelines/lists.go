package pipelines

import (
	"regexp"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

// item is one entry of a list that for_each goes through, and the entry of the outer list that it belongs to.
type item struct{ self, parent value }

// readLists finds the lists: categories, analysts, and those under `lists:`. Each stands in the definition or in a file.
// False means that what goes through them cannot be judged.
func (l *loader) readLists(root value) bool {
	before := len(l.list)
	l.readList("categories", root.get("categories"))
	l.readList("analysts", root.get("analysts"))
	own := root.get("lists")
	if !own.missing() {
		l.readOwnLists(own)
	}
	return len(l.list) == before
}

func (l *loader) readOwnLists(own value) {
	l.mapping(own, "lists")
	keys, values := own.entries()
	for i, k := range keys {
		if name := k.node.Value; name == "categories" || name == "analysts" || !goodName.MatchString(name) {
			l.add(k.at(), "lists: %q cannot be a list's name; choose another", name)
			continue
		}
		l.readList(k.node.Value, values[i])
	}
}

func (l *loader) readList(name string, v value) {
	if v.missing() {
		return
	}
	if file, ok := l.fileOf(v, name); ok {
		from := v.at()
		if v, ok = l.readYAML(file, from); !ok {
			return
		}
	}
	if !v.isList() {
		l.add(v.at(), "%s must be a list, or `file:` and the name of a YAML file that holds one", name)
		return
	}
	seen := map[string]bool{}
	for _, entry := range v.items() {
		id := entry.get("id").written()
		if !goodName.MatchString(id) {
			l.add(entry.at(), "%s: each entry needs an id: %s", name, nameRule)
		}
		if seen[id] {
			l.add(entry.at(), "%s: id %q stands twice; ids must be unique", name, id)
		}
		seen[id] = true
	}
	l.lists[name] = v
}

func (l *loader) readCategories() {
	for _, v := range l.lists["categories"].items() {
		if !l.mapping(v, "categories", "id", "title", "instruction", "presence", "presence_min", "absence") {
			continue
		}
		c := pipeline.Category{
			ID:          v.get("id").written(),
			Title:       l.text(v.get("title"), "title"),
			Instruction: strings.TrimSpace(l.text(v.get("instruction"), "instruction")),
			Presence:    l.text(v.get("presence"), "presence"),
			PresenceMin: l.number(v.get("presence_min"), "presence_min", 0),
		}
		if c.Title == "" {
			l.add(v.at(), "category %s: title: must be set", c.ID)
		}
		c.Absence = l.readAbsence(c, v.get("absence"))
		l.def.Categories = append(l.def.Categories, c)
	}
}

func (l *loader) readAbsence(c pipeline.Category, v value) *pipeline.Absence {
	if v.missing() || !l.mapping(v, "absence", "severity", "title", "rationale", "suggestion") {
		return nil
	}
	a := &pipeline.Absence{
		Severity:   pipeline.Severity(l.text(v.get("severity"), "severity")),
		Title:      l.text(v.get("title"), "title"),
		Rationale:  strings.TrimSpace(l.text(v.get("rationale"), "rationale")),
		Suggestion: strings.TrimSpace(l.text(v.get("suggestion"), "suggestion")),
	}
	switch {
	case !a.Severity.Valid():
		l.add(orParent(v.get("severity"), v).at(), "category %s: absence: %q is no severity; the severities are %s", c.ID, a.Severity, names(severities()))
	case a.Title == "":
		l.add(v.at(), "category %s: absence: title: must be set", c.ID)
	case c.Presence == "":
		l.add(v.at(), "category %s: absence needs a presence: the call whose value says how much of it there is", c.ID)
	}
	return a
}

func severities() []string {
	list := make([]string, len(pipeline.Severities))
	for i, s := range pipeline.Severities {
		list[i] = string(s)
	}
	return list
}

func (l *loader) readAnalysts() {
	for _, v := range l.lists["analysts"].items() {
		a := pipeline.Analyst{ID: v.get("id").written(), Title: l.text(v.get("title"), "title")}
		if a.Title == "" {
			l.add(v.at(), "analyst %s: title: must be set", a.ID)
		}
		l.def.Analysts = append(l.def.Analysts, a)
	}
}

// each is the items of `for_each: list` or `for_each: list.inner`; one empty item when nothing is asked for.
func (l *loader) each(v value) []item {
	if v.missing() {
		return []item{{}}
	}
	name, inner, nested := strings.Cut(l.text(v, "for_each"), ".")
	outer, ok := l.lists[name]
	if !ok {
		l.add(v.at(), "for_each: there is no list %q; the lists are %s", name, names(l.listNames()))
		return nil
	}
	var all []item
	for _, entry := range outer.items() {
		if !nested {
			all = append(all, item{self: entry})
			continue
		}
		list := entry.get(inner)
		if !list.isList() {
			l.add(entry.at(), "for_each: %s.%s: entry %s has no list %q", name, inner, entry.get("id").written(), inner)
			return nil
		}
		for _, self := range list.items() {
			all = append(all, item{self: self, parent: entry})
		}
	}
	if len(all) == 0 {
		l.add(v.at(), "for_each: the list %q is empty", name)
	}
	return all
}

func (l *loader) listNames() []string {
	var list []string
	for name := range l.lists {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// fill puts the item's fields into the ${...} of a text.
func (l *loader) fill(text string, it item, at place) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		path := strings.TrimSpace(found[2 : len(found)-1])
		v, hint := it.find(path)
		if v.missing() {
			l.add(at, "%s: there is nothing of that name here; %s", found, hint)
			return ""
		}
		return v.written()
	})
}

// find is the value at a path such as each.title or parent.role, or a hint at what there is.
func (it item) find(path string) (value, string) {
	parts := strings.Split(path, ".")
	v := it.self
	switch {
	case it.self.missing():
		return value{}, "${...} needs a for_each on the call"
	case parts[0] == "parent" && !it.parent.missing():
		v = it.parent
	case parts[0] == "parent":
		return value{}, "${parent...} needs a for_each of the form list.inner"
	case parts[0] != "each":
		return value{}, "write ${each.field}, or ${parent.field} for the entry around it"
	}
	for _, key := range parts[1:] {
		inner := v.get(key)
		if inner.missing() {
			return value{}, "the fields are " + names(v.keys())
		}
		v = inner
	}
	return v, ""
}
