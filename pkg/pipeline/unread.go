package pipeline

import (
	"fmt"
	"strings"
)

// Unread is a part of what was submitted that holds something and was not read. Nothing was asked about it: a job whose
// document has one never ends completed, and nothing is said to be missing from its document.
type Unread struct {
	What  string `json:"what"`            // in words: "pages 2-4", "charts"
	Pages []int  `json:"pages,omitempty"` // by number, from 1, where it is pages
	Why   string `json:"why"`             // in words: "there is no text on them: scanned, or drawn"
}

// NotRead says in words what was not read; "" if there is nothing.
func NotRead(parts []Unread) string {
	var names []string
	for _, part := range parts {
		names = append(names, part.What)
	}
	verb := "were"
	if len(parts) == 1 && len(parts[0].Pages) == 1 {
		verb = "was"
	}
	switch last := len(names) - 1; last {
	case -1:
		return ""
	case 0:
		return fmt.Sprintf("%s %s not read", names[0], verb)
	default:
		return fmt.Sprintf("%s and %s were not read", strings.Join(names[:last], ", "), names[last])
	}
}
