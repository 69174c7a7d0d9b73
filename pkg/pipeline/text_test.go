package pipeline

import "testing"

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(0), "0"},
		{Count(-999), "-999"},
		{Count(1000), "1,000"},
		{Count(-2_320_000), "-2,320,000"},
		{CountOf(0, "try", "tries"), "0 tries"},
		{CountOf(1, "try", "tries"), "1 try"},
		{CountOf(2320, "try", "tries"), "2,320 tries"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
