package access

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"holdfast/cdk/template"
)

// Statement is one of a policy.
type Statement struct {
	ID         string
	Deny       bool
	Actions    []string
	Resources  []string // as the template has them, references written out
	Conditions map[string]map[string][]string
}

// Statements of the inline policies of a role, by the role's logical id.
func Statements(t template.Template, role string) (all []Statement) {
	for _, policy := range t.Of("AWS::IAM::Policy") {
		if !slices.Contains(template.Texts(policy.Get("Roles")), "${"+role+"}") {
			continue
		}
		list, _ := policy.Get("PolicyDocument.Statement").([]any)
		for _, each := range list {
			all = append(all, statementOf(each.(map[string]any)))
		}
	}
	return all
}

func statementOf(m map[string]any) Statement {
	s := Statement{
		ID: template.Text(m["Sid"]), Deny: m["Effect"] == "Deny",
		Actions: template.Texts(m["Action"]), Resources: template.Texts(m["Resource"]),
		Conditions: map[string]map[string][]string{},
	}
	conditions, _ := m["Condition"].(map[string]any)
	for operator, of := range conditions {
		s.Conditions[operator] = map[string][]string{}
		for key, values := range of.(map[string]any) {
			s.Conditions[operator][key] = template.Texts(values)
		}
	}
	return s
}

// Allows says whether a policy allows a request, and by which statement; or which one denies it.
func Allows(policy []Statement, q Request) (allowed bool, why string) {
	for _, s := range policy {
		if s.Deny && s.meets(q) {
			return false, "denied by " + s.ID
		}
	}
	for _, s := range policy {
		if !s.Deny && s.meets(q) {
			return true, "allowed by " + s.ID
		}
	}
	return false, "no statement allows it"
}

func (s Statement) meets(q Request) bool {
	named := func(patterns []string, text string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return like(p, text) })
	}
	if !named(s.Actions, q.Action) {
		return false
	}
	if !slices.ContainsFunc(s.Resources, func(arn string) bool { return like(lastOf(arn), q.Resource) }) {
		return false
	}
	for operator, of := range s.Conditions {
		for key, values := range of {
			if !holds(operator, values, q.values(key)) {
				return false
			}
		}
	}
	return true
}

var references = regexp.MustCompile(`\$\{[^}]*\}`)

// lastOf is the part of an ARN after the account. A reference in it stands for anything.
func lastOf(arn string) string {
	parts := strings.SplitN(references.ReplaceAllString(arn, "*"), ":", 6)
	return parts[len(parts)-1]
}

// values of a condition's key.
func (q Request) values(key string) []string {
	switch key {
	case "dynamodb:LeadingKeys":
		return q.Keys
	case "dynamodb:Attributes":
		return q.Attributes
	}
	panic(fmt.Sprintf("access: the condition %s is not known here", key))
}

// holds says whether a condition is met. As in IAM, one for all values holds where there are none.
func holds(operator string, patterns, values []string) bool {
	one := func(value string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			if strings.HasSuffix(operator, "StringLike") {
				return like(p, value)
			}
			return p == value
		})
	}
	switch operator {
	case "ForAllValues:StringLike", "ForAllValues:StringEquals":
		return !slices.ContainsFunc(values, func(v string) bool { return !one(v) })
	case "ForAnyValue:StringLike", "ForAnyValue:StringEquals":
		return slices.ContainsFunc(values, one)
	}
	panic("access: the operator " + operator + " is not known here")
}

// like matches IAM's wildcards.
func like(pattern, text string) bool {
	quoted := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("^(?:" + quoted + ")$").MatchString(text)
}
