package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/sync/errgroup"
)

// runAsynq enqueues a task for each call and works on them: asynq knows of no stages. The reply is kept as the task's
// result.
func runAsynq(ctx context.Context, c child) (report, error) {
	redis := asynq.RedisClientOpt{Addr: c.Server}
	client := asynq.NewClient(redis)
	defer client.Close()
	var left atomic.Int64
	left.Store(int64(c.Load.calls()))
	done := make(chan struct{})
	var tries sync.Map
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: c.Load.AtOnce, LogLevel: asynq.FatalLevel, TaskCheckInterval: 50 * time.Millisecond, DelayedTaskCheckInterval: 100 * time.Millisecond,
		RetryDelayFunc: func(n int, _ error, _ *asynq.Task) time.Duration { return retryWait(n + 1) },
	})
	began := time.Now()
	err := server.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		key := string(t.Payload())
		n, _ := tries.LoadOrStore(key, new(atomic.Int64))
		reply, err := c.Load.ask(ctx, key, int(n.(*atomic.Int64).Add(1)))
		if err != nil {
			return err
		}
		if _, err := io.WriteString(t.ResultWriter(), reply); err != nil {
			return err
		}
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	}))
	if err != nil {
		return report{}, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32) // it has no bulk insertion
	for _, key := range c.Load.keys() {
		group.Go(func() error {
			_, err := client.EnqueueContext(ctx, asynq.NewTask("call", []byte(key)), asynq.MaxRetry(10), asynq.Retention(time.Hour))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return report{}, err
	}
	<-done
	r := report{Makespan: time.Since(began), Calls: c.Load.calls()}
	server.Shutdown()
	inspector := asynq.NewInspector(redis)
	defer inspector.Close()
	info, err := inspector.GetQueueInfo("default")
	if err != nil {
		return r, err
	}
	return r, wantCount(info.Completed, c.Load.calls())
}

func wantCount(n, want int) error {
	if n != want {
		return fmt.Errorf("%d of %d replies are stored", n, want)
	}
	return nil
}

// flush empties Redis between two runs.
func (b *bench) flush(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", b.redis.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("FLUSHALL\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 64))
	return err
}
