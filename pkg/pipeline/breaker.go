package pipeline

import "slices"

// strikesToOpen is how many distinct tasks open a breaker: one bad document must not stop everybody.
const strikesToOpen = 2

// Struck is what a strike makes of the breaker: the rule that every store writes by.
func (c Cooldown) Struck(s Strike) Cooldown {
	if len(c.Strikes) == 0 || s.Now.Sub(c.Since) > s.Window {
		c.Strikes, c.Since = nil, s.Now
	}
	task := s.Task.String()
	if !slices.Contains(c.Strikes, task) && len(c.Strikes) < MaxStrikes {
		c.Strikes = append(slices.Clone(c.Strikes), task)
	}
	if s.Open || len(c.Strikes) >= strikesToOpen {
		c.Until, c.Reason = max(c.Until, s.Until), s.Reason
	}
	return c
}
