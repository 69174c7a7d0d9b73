package pipeline

import "testing"

func TestOriginFindsTheUnitOfEveryByte(t *testing.T) {
	o := Origin{Version: OriginVersion, Unit: "page"}
	o.Add("", 1, 10)
	o.Add("", 1, 5)  // more of the same
	o.Add("", 3, 10) // the second has no text
	o.Add("footnote", 1, 10)
	o.Add("header", 2, 10)
	o.Add("", 900, 10)
	for _, c := range []struct {
		offset int
		want   string
	}{
		{0, "page 1"},
		{14, "page 1"},
		{15, "page 3"},
		{24, "page 3"},
		{25, "footnote 1"},
		{35, "header, page 2"},
		{45, "page 900"},
		{54, "page 900"},
		{55, ""},
		{-1, ""},
	} {
		if got := o.Where(c.offset); got != c.want {
			t.Errorf("byte %d: got %q, want %q", c.offset, got, c.want)
		}
	}
	if len(o.Parts) != 4 {
		t.Errorf("got %d parts, want 4: what follows each other is one", len(o.Parts))
	}
	o.Version++
	if got := o.Where(0); got != "" {
		t.Errorf("got %q from a map of another version, want none", got)
	}
}
