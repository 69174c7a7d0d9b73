package pipeline

import (
	"fmt"
	"path"
	"slices"
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

// shells are programs that take what follows -c as their program text.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"}

// validateCommand refuses what would run the document's text as a program.
func validateCommand(command []string) []error {
	if len(command) == 0 || command[0] == "" {
		return []error{fmt.Errorf("command: the handler %s needs a program", ExecHandler)}
	}
	if strings.Contains(command[0], Placeholder) {
		return []error{fmt.Errorf("command: the program %q must not be chosen by the text", command[0])}
	}
	if !slices.Contains(shells, path.Base(command[0])) {
		return nil
	}
	for i, arg := range command[1:] {
		if strings.HasPrefix(command[i], "-") && strings.HasSuffix(command[i], "c") && strings.Contains(arg, Placeholder) {
			return []error{fmt.Errorf("command: the text would become part of the shell's program %q; hand it over as an argument: %s -c '... \"$1\" ...' %s {}", Cut(arg, 60), command[0], command[0])}
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

// CheckTryTimeout holds a definition's own time limit against the policy's.
func (p Policy) CheckTryTimeout(d Definition) error {
	p.CallTimeout = d.TryTime(p)
	if p.CallTimeout < p.StallTimeout && p.CallTimeout+p.RetryWait < p.AttemptTimeout {
		return nil
	}
	return fmt.Errorf("try_timeout (%v) must be less than stall_timeout (%v), and with retry_wait (%v) less than attempt_timeout (%v): raise these in a policy file for everybody who works on it",
		p.CallTimeout, p.StallTimeout, p.RetryWait, p.AttemptTimeout)
}
