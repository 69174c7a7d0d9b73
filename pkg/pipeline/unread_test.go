package pipeline

import "testing"

func TestWhatWasNotReadIsSaidInWords(t *testing.T) {
	one, some, parts := Unread{What: "page 2", Pages: []int{2}}, Unread{What: "pages 4-5", Pages: []int{4, 5}}, Unread{What: "charts"}
	for want, of := range map[string][]Unread{
		"":                                   nil,
		"page 2 was not read":                {one},
		"pages 4-5 were not read":            {some},
		"charts were not read":               {parts},
		"page 2 and pages 4-5 were not read": {one, some},
		"page 2, pages 4-5 and charts were not read": {one, some, parts},
	} {
		if got := NotRead(of); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
