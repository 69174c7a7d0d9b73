package pipeline

import (
	"fmt"
	"testing"
)

func TestGaps(t *testing.T) {
	t.Run("cells that miss for one reason are one gap, whatever numbers it names, the largest first", func(t *testing.T) {
		gaps := Gaps([]Cell{
			{Chunk: 1, Call: "a", Failure: Fail(Lost, "worker died 3 times")},
			{Chunk: 1, Call: "b", Failure: Fail(Refused, "refused chunk 1").At("find", "b")},
			{Chunk: 12, Call: "b", Failure: Fail(Refused, "refused chunk 12").At("find", "b")},
			{Chunk: 12, Call: "c", Failure: Fail(Malformed, "refused chunk 12")},
		})
		got := ""
		for _, g := range gaps {
			got += fmt.Sprintf("%s %q %d %v %v %v; ", g.Kind, g.Cause, g.Cells, g.Tasks, g.Stages, g.Calls)
		}
		want := `refused "refused chunk 1" 2 [work#00001 work#00012] [find] [b]; lost "worker died 3 times" 1 [work#00001] [] [a]; ` +
			`malformed "refused chunk 12" 1 [work#00012] [] [c]; `
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
