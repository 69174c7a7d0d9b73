package pipeline

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// ExecHandler is the handler that runs a definition's Command.
const ExecHandler = "exec@1"

// Placeholder stands for the chunk's text in a command's arguments.
const Placeholder = "{}"

// validateHandler checks a definition whose chunks a handler works on. Each error names the field.
func (d Definition) validateHandler() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	name, version, found := strings.Cut(d.Handler, "@")
	if !found || name == "" || version == "" {
		bad("handler: %q must be name@version", d.Handler)
	}
	if len(d.Stages) != 1 || d.Calls() != 1 || d.Stages[0].Name == "" || d.Stages[0].Calls[0].ID == "" {
		bad("stages: a handler needs one stage with one call, each with a name")
	}
	if d.TryCost < 0 {
		bad("try_cost: %s must not be less than nothing", d.TryCost)
	}
	if d.TryTimeout < 0 {
		bad("try_timeout: %v must not be less than 0", d.TryTimeout)
	}
	if d.Handler == ExecHandler {
		errs = append(errs, validateCommand(d.Command)...)
	} else if len(d.Command) > 0 {
		bad("command: only the handler %s runs one, this is %s", ExecHandler, d.Handler)
	}
	return errs
}

// interpreters are programs that take what follows this letter's flag as their program text.
var interpreters = map[string]string{
	"sh": "c", "bash": "c", "dash": "c", "zsh": "c", "ksh": "c", "ash": "c", "fish": "c", "python": "c", "python3": "c",
	"perl": "e", "ruby": "e", "node": "e", "php": "r",
}

// validateCommand refuses what would run the document's text as a program.
func validateCommand(command []string) []error {
	if len(command) == 0 || command[0] == "" {
		return []error{fmt.Errorf("command: the handler %s needs a program", ExecHandler)}
	}
	if strings.Contains(command[0], Placeholder) {
		return []error{fmt.Errorf("command: the program %q must not be chosen by the text", command[0])}
	}
	flag := "" // of the last interpreter: it may come after another program, as in env sh -c
	for i, word := range command {
		if i > 0 && flag != "" && strings.Contains(word, Placeholder) && strings.HasPrefix(command[i-1], "-") && strings.HasSuffix(command[i-1], flag) {
			return []error{fmt.Errorf("command: the text would become a part of the program %q; hand it over as an argument, as in: sh -c '... \"$1\" ...' sh {}", Cut(word, 60))}
		}
		if found := interpreters[path.Base(word)]; found != "" {
			flag = found
		}
	}
	return nil
}

// TryTime is how long one try of a handler may take.
func (d Definition) TryTime(p Policy) time.Duration {
	if d.TryTimeout > 0 {
		return d.TryTimeout
	}
	return p.CallTimeout
}

// LongestTry is the longest that one try of any definition may take: see [Policy.CheckTryTimeout].
func (p Policy) LongestTry() time.Duration { return max(p.CallTimeout, p.StallTimeout) }

// CheckTryTimeout holds a definition's own time limit against the policy's.
func (p Policy) CheckTryTimeout(d Definition) error {
	p.CallTimeout = d.TryTime(p)
	if p.CallTimeout < p.StallTimeout && p.CallTimeout+p.RetryWait < p.AttemptTimeout {
		return nil
	}
	return fmt.Errorf("try_timeout (%v) must be less than stall_timeout (%v), and with retry_wait (%v) less than attempt_timeout (%v): raise these in a policy file for everybody who works on it",
		p.CallTimeout, p.StallTimeout, p.RetryWait, p.AttemptTimeout)
}
