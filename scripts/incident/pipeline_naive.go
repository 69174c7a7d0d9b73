package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/pkg/memory"
	"holdfast/pkg/pipeline"
)

// The system that had the incident, as its write-up describes it: chunks fan out over a queue, a worker asks every call
// about its chunk and retries each, the chunk's answers are stored when it is through, and the report is written from
// what there is once nothing is left to do. None of these parts is wrong.

// Numbers of the naive system.
const (
	naiveTries      = 4                // a call: at once, after 1, 2 and 4 s
	naiveCallTime   = 10 * time.Minute // what the common clients wait for an answer unless told otherwise
	naiveVisibility = 5 * time.Minute
	naiveReceives   = 3
)

// naiveJob is one job of it.
type naiveJob struct {
	shape      shape
	provider   *provider
	number     int
	redelivers bool // a message is deleted when its chunk is stored, not when it is received
	queue      *memory.Queue

	mu       sync.Mutex
	busy     int
	finished map[int]bool
}

func newNaiveJob(s shape, p *provider, number int, redelivers bool) *naiveJob {
	j := &naiveJob{shape: s, provider: p, number: number, redelivers: redelivers, finished: map[int]bool{}}
	j.queue = memory.NewQueue(memory.QueueConfig{Visibility: naiveVisibility, MaxReceives: naiveReceives})
	return j
}

// run fans out, waits for the end, and says how it went. Its places are worker processes that die and are started again.
func (j *naiveJob) run(ctx context.Context, places int) outcome {
	began := time.Now()
	for n := range j.shape.Chunks {
		m := pipeline.Message{Job: "job", Task: pipeline.WorkTask(n)}
		if _, err := j.queue.Send(ctx, []pipeline.Message{m}); err != nil {
			panic(err) // a queue in memory takes everything
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var group pipeline.Group
	died := make([]int, places)
	for place := range places {
		group.Go(func() { died[place] = j.place(ctx, place) })
	}
	j.waitUntilQuiet(ctx)
	took := time.Since(began)
	stop()
	group.Wait()
	return outcome{missing: j.shape.Chunks - len(j.finished), deaths: sum(died), took: took, bill: j.provider.bill()}
}

func sum(all []int) (n int) {
	for _, one := range all {
		n += one
	}
	return n
}

// waitUntilQuiet is the fan-in: nothing visible, nothing in flight, nobody busy.
func (j *naiveJob) waitUntilQuiet(ctx context.Context) {
	for {
		time.Sleep(5 * time.Second)
		visible, inFlight, _ := j.queue.Depth(ctx)
		j.mu.Lock()
		quiet := visible+inFlight+j.busy == 0
		j.mu.Unlock()
		if quiet {
			return
		}
	}
}

// place keeps one worker process alive.
func (j *naiveJob) place(ctx context.Context, place int) (deaths int) {
	for n := 0; ; n++ {
		life, kill := context.WithTimeout(ctx, j.provider.weather.life(j.number, place, n))
		j.worker(life)
		kill()
		if ctx.Err() != nil {
			return deaths
		}
		deaths++
		time.Sleep(restart)
	}
}

// worker takes chunks until it dies: nothing it does after that counts.
func (j *naiveJob) worker(life context.Context) {
	for life.Err() == nil {
		deliveries, err := j.queue.Receive(life, 1, 20*time.Second)
		if err != nil || len(deliveries) == 0 {
			continue
		}
		j.work(life, deliveries[0])
	}
}

func (j *naiveJob) work(life context.Context, d pipeline.Delivery) {
	j.occupied(1)
	defer j.occupied(-1)
	m, err := pipeline.DecodeMessage(d.Body)
	if err != nil {
		return
	}
	if !j.redelivers {
		_, _ = j.queue.Delete(life, []pipeline.Delivery{d})
	}
	err = j.chunk(life, m.Task.Number())
	if err != nil || life.Err() != nil {
		return // logged; with redelivery it comes back
	}
	j.store(m.Task.Number())
	if j.redelivers {
		_, _ = j.queue.Delete(life, []pipeline.Delivery{d})
	}
}

func (j *naiveJob) occupied(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.busy += n
}

func (j *naiveJob) store(chunk int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.finished[chunk] = true
}

// chunk asks every call, so many at once; one that fails for good fails the chunk.
func (j *naiveJob) chunk(life context.Context, chunk int) error {
	ctx, fail := context.WithCancelCause(life)
	defer fail(nil)
	calls := make(chan int)
	var group pipeline.Group
	for range atOnce {
		group.Go(func() {
			for call := range calls {
				if err := j.call(ctx, cell{j.number, chunk, call}); err != nil {
					fail(err)
				}
			}
		})
	}
	for call := range j.shape.Calls {
		select {
		case calls <- call:
		case <-ctx.Done():
		}
	}
	close(calls)
	group.Wait()
	return context.Cause(ctx)
}

// call is tier one.
func (j *naiveJob) call(ctx context.Context, c cell) error {
	var err error
	for try := range naiveTries {
		if try > 0 {
			if err := sleep(ctx, time.Second<<(try-1)); err != nil {
				return err
			}
		}
		one, stop := context.WithTimeout(ctx, naiveCallTime)
		err = j.provider.ask(one, c)
		stop()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return errors.Join(errors.New("giving up"), err)
}
