package pipelines

import (
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"holdfast/pkg/pipeline"
)

// whole is a definition without an error; each case below breaks one thing.
const whole = `name: notes
version: "1"
profiles: [full, short]
system: You read notes.
shared: |
  [NOTES BEGIN]
  {{.Text}}
  [NOTES END]
lists:
  topics:
    - id: a
      title: Alpha
    - id: b
      title: Beta
prompts:
  find: |
    Call: {{.Vars.call}}
    Look for {{.Vars.title}}.
  sum: {file: sum.md}
schemas:
  found:
    type: object
    properties: {findings: {type: array}, weight: {type: number}}
  told: {file: told.json}
stages:
  - name: find
    calls:
      - id: find.${each.id}
        for_each: topics
        prompt: find
        schema: found
        max_tokens: 100
        findings: findings
        value: weight
        vars:
          title: ${each.title}
  - name: sum
    calls:
      - id: sum
        prompt: sum
        schema: told
        max_tokens: 50
        uses: find.*
        gate: {call: find.a, min: 1}
`

func folderOf(main string) fstest.MapFS {
	return fstest.MapFS{
		"p.yaml":     {Data: []byte(main)},
		"sum.md":     {Data: []byte("Call: {{.Vars.call}}\n{{range .Replies}}\n{{.}}\n{{end}}\n")},
		"wrong.md":   {Data: []byte("Call: {{.Vars.call}}\n\n{{.Replies.find}}\n")},
		"told.json":  {Data: []byte(`{"type": "object", "properties": {"text": {"type": "string"}}}`)},
		"wrong.json": {Data: []byte("{\n\"type\": \"object\",\n}")},
		"list.yaml":  {Data: []byte("- id: a\n- title: no id\n")},
	}
}

func loadText(main, profile string) (pipeline.Definition, error) {
	return load(folderOf(main), "p.yaml", profile, func(f string) string { return path.Join("d", f) })
}

func TestWhole(t *testing.T) {
	d, err := loadText(whole, "")
	if err != nil || d.Calls() != 3 {
		t.Fatalf("got %d calls, %v, want 3", d.Calls(), err)
	}
}

func TestAnErrorNamesFileLineAndWhatToDo(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown field", "        value: weight", "        valeu: weight", `d/p.yaml:34: a call: there is no field "valeu" (did you mean value?); the fields are id, title, for_each, prompt, schema, max_tokens, category, analyst, vars, uses, value, findings and 2 more` + "\n" + `d/p.yaml:44: gate: call find.a has no value to compare with; set its ` + "`value:`" + ` to a number field of its schema`},
		{"field set twice", "version: \"1\"", "version: \"1\"\nversion: \"2\"", `d/p.yaml:3: a definition: "version" is set twice; keep one`},
		{"a misspelt field comes before what is missing because of it", "max_tokens: 50", "max_tokns: 50", `d/p.yaml:42: a call: there is no field "max_tokns" (did you mean max_tokens?); the fields are id, title, for_each, prompt, schema, max_tokens, category, analyst, vars, uses, value, findings and 2 more` + "\n" + `d/p.yaml:39: max_tokens: "" must be a number of at least 1: the longest answer that is paid for`},
		{"unknown prompt", "prompt: find", "prompt: fnid", `d/p.yaml:30: stage find: call find.a: there is no prompt "fnid"; the prompts are find, sum`},
		{"unknown schema", "schema: told", "schema: tald", `d/p.yaml:41: stage sum: call sum: there is no schema "tald"; the schemas are found, told`},
		{"unknown list", "for_each: topics", "for_each: topic", "d/p.yaml:29: for_each: there is no list \"topic\"; the lists are topics\nd/p.yaml:43: uses: \"find.*\" is not a call of an earlier stage; those are (none)\nd/p.yaml:44: gate: \"find.a\" is not a call of an earlier stage; those are (none)"},
		{"unknown field of the item", "${each.title}", "${each.titel}", `d/p.yaml:36: ${each.titel}: there is nothing of that name here; the fields are id, title`},
		{"ids that are not unique", "find.${each.id}", "find.a", `d/p.yaml:28: stage find: call find.a: line 28 has a call of that id already; ids must be unique (use ${each.id} with for_each)`},
		{"a use of a later call", "uses: find.*", "uses: sum", `d/p.yaml:43: uses: "sum" is not a call of an earlier stage; those are find.a, find.b`},
		{"a gate on a call that is not there", "call: find.a,", "call: find.z,", `d/p.yaml:44: gate: "find.z" is not a call of an earlier stage; those are find.a, find.b`},
		{"a template that does not parse", "Look for {{.Vars.title}}.", "Look for {{.Vars.title}.", `d/p.yaml:18: prompt find: bad character U+007D '}'`},
		{"a template that names no var", "Look for {{.Vars.title}}.", "Look for {{.Vars.name}}.", `d/p.yaml:18: prompt find, as call find.a asks it: <.Vars.name>: map has no entry for key "name"; the vars are call, title`},
		{"a template that needs an answer", "sum.md", "wrong.md", `d/wrong.md:3: prompt sum, as call sum asks it: <.Replies.find>: map has no entry for key "find"; write {{with index .Replies "id"}}...{{end}}, and name the call in uses`},
		{"a template that asks for what prompts do not see", "{{.Text}}", "{{.Number}}", `d/p.yaml:7: shared: <.Number>: can't evaluate field Number in type pipeline.PromptData; a prompt sees .Text, .Context, .Heading, .Vars and .Replies`},
		{"a prompt file that is not there", "sum.md", "sun.md", `d/p.yaml:19: there is no file d/sun.md` + "\n" + `d/p.yaml:19: prompt sum: is empty`},
		{"a file outside the folder", "sum.md", "../sum.md", `d/p.yaml:19: file "../sum.md" must be a path below the definition's folder, with forward slashes` + "\n" + `d/p.yaml:19: prompt sum: is empty`},
		{"a schema file that is not JSON", "told.json", "wrong.json", `d/wrong.json:3: schema told: not JSON: invalid character '}' looking for beginning of object key string`},
		{"a schema that is no object", "    type: object", "    type: array", "d/p.yaml:22: schema found: must say `type: object` at the top: an answer is always an object"},
		{"a schema that does not compile", "weight: {type: number}", "weight: {type: number, minimum: x}", `d/p.yaml:22: schema found: not a JSON Schema: at '/properties/weight/minimum': got string, want number`},
		{"a schema that refers elsewhere", "weight: {type: number}", "weight: {type: number, $ref: \"file:///etc/passwd\"}", `d/p.yaml:22: schema found: failing loading "file:///etc/passwd": a schema may not refer to file:///etc/passwd; write it out under $defs`},
		{"a call that shows no part of the document", "{{.Text}}", "notes", "d/p.yaml:17: prompt find, as call find.a asks it: neither it nor `shared` shows the text, nor an earlier reply: every chunk would be asked the same; write {{.Text}} in `shared`, between markers"},
		{"a severity that nobody knows", "{findings: {type: array}, weight", "{findings: {type: array, items: {type: object, properties: {severity: {enum: [high, urgent]}}}}, weight", `d/p.yaml:33: stage find: call find.a: findings: schema found allows the severity "urgent", which nobody knows; the severities are critical, high, medium, low, info`},
		{"a finding without a severity", "{findings: {type: array}, weight", "{findings: {type: array, items: {type: object, properties: {title: {type: string}}}}, weight", "d/p.yaml:33: stage find: call find.a: findings: in schema found a finding has no severity; add severity: {type: string, enum: [critical, high, medium, low, info]}"},
		{"findings that the schema lacks", "        findings: findings", "        findings: finding", `d/p.yaml:33: stage find: call find.a: findings: schema found has no list field "finding"; its fields are findings, weight`},
		{"no limit on the answer", "        max_tokens: 100\n", "", `d/p.yaml:28: max_tokens: "" must be a number of at least 1: the longest answer that is paid for`},
		{"an entry without an id", "    - id: a\n      title: Alpha\n    - id: b\n      title: Beta\n", "    {file: list.yaml}\n", "d/list.yaml:2: topics: each entry needs an id: " + nameRule},
		{"anchors", "  find: |", "  find: &x |", "d/p.yaml:16: anchors (&) and aliases (*) are not supported; write it out, or use a list with for_each"},
		{"not YAML", "stages:\n", "stages: [\n", "d/p.yaml:25: not YAML: did not find expected node content"},
		{"overlap as long as the chunk", "stages:\n", "chunking: {target: 100, max: 120, overlap: 100}\nstages:\n", "d/p.yaml:25: chunking: overlap (100) must be less than target (100)"},
		{"no stages", whole[strings.Index(whole, "stages:"):], "", "d/p.yaml:1: stages: there must be a list of at least one stage, each with a name and calls"},
		{"nothing at all", whole, "", "d/p.yaml:1: not YAML: the file is empty; it needs at least name, version, prompts, schemas and stages"},
		{"an unknown profile of a stage", "  - name: sum\n", "  - name: sum\n    profiles: [shot]\n", `d/p.yaml:38: stage sum: there is no profile "shot"; the profiles are full, short`},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken := strings.Replace(whole, c.old, c.new, 1)
			if broken == whole {
				t.Fatal("the case changes nothing")
			}
			_, err := loadText(broken, "")
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAStageOfAnotherProfileIsLeftOut(t *testing.T) {
	text := strings.Replace(whole, "  - name: sum\n", "  - name: sum\n    profiles: [full]\n", 1)
	full, err := loadText(text, "full")
	if err != nil {
		t.Fatal(err)
	}
	short, err := loadText(text, "short")
	if err != nil {
		t.Fatal(err)
	}
	if full.Calls() != 3 || short.Calls() != 2 {
		t.Errorf("got %d and %d calls, want 3 and 2", full.Calls(), short.Calls())
	}
	if _, kept := short.Prompts["sum"]; kept {
		t.Error("a prompt that the profile does not use is part of its fingerprint")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(whole)
	f.Add("name: x")
	f.Add("stages: [{name: a, calls: [{id: \"${each.id}\", for_each: categories}]}]\ncategories: [{id: a}]")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := loadText(text, "")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "d/") {
				t.Errorf("the error names no file: %v", err)
			}
			return
		}
		if err := d.Validate(); err != nil {
			t.Errorf("loaded, but not valid: %v", err)
		}
	})
}
