package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"testing"
	"testing/synctest"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/work"
)

func TestEvents(t *testing.T) {
	t.Run("a supervisor that does not read stops no work, and what it misses is counted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, out := io.Pipe() // without any room
			w := newEventWriter(out, true)
			synctest.Wait()
			const n = 3 * eventsRoom
			for range n {
				w.write(work.Event{What: "answer", N: 7})
			}
			dropped := w.close(pipeline.NewRealClock())
			if dropped < n-eventsRoom-1000 || dropped >= n {
				t.Errorf("dropped %d of %d events, there is room for %d", dropped, n, eventsRoom)
			}
			w.write(work.Event{What: "late"}) // after the end it is nobody's
			_ = r.Close()
		})
	})
	t.Run("one that reads gets every event, the last too", func(t *testing.T) {
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		w := newEventWriter(out, true)
		const n = eventsRoom
		for i := range n {
			w.write(work.Event{What: "answer", N: i})
		}
		got := make(chan int)
		go func() {
			lines := bufio.NewScanner(r)
			k := 0
			for ; lines.Scan(); k++ {
				var e work.Event
				if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.N != k {
					t.Errorf("line %d: got %s, %v", k, lines.Text(), err)
				}
			}
			got <- k
		}()
		dropped := w.close(pipeline.NewRealClock())
		_ = out.Close()
		if k := <-got; k != n || dropped != 0 {
			t.Errorf("%d of %d events came, %d dropped", k, n, dropped)
		}
		_ = r.Close()
	})
	t.Run("a worker without a supervisor prints none", func(t *testing.T) {
		w := newEventWriter(nil, false)
		w.write(work.Event{What: "answer"})
		if dropped := w.close(pipeline.NewRealClock()); dropped != 0 {
			t.Errorf("%d dropped", dropped)
		}
	})
}
