package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

// callArgs is one call as a job of River.
type callArgs struct {
	Key string `json:"key"`
}

// Kind names the job.
func (callArgs) Kind() string { return "call" }

// callWorker asks, stores the reply in a table of its own, and lets River complete the job.
type callWorker struct {
	river.WorkerDefaults[callArgs]
	load load
	pool *pgxpool.Pool
}

// Work is one try.
func (w *callWorker) Work(ctx context.Context, job *river.Job[callArgs]) error {
	reply, err := w.load.ask(ctx, job.Args.Key, job.Attempt)
	if err != nil {
		return err
	}
	_, err = w.pool.Exec(ctx, `INSERT INTO replies (key, body) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`, job.Args.Key, reply)
	return err
}

// NextRetry is when the call is tried again.
func (w *callWorker) NextRetry(job *river.Job[callArgs]) time.Time {
	return time.Now().Add(retryWait(max(1, job.Attempt)))
}

// runRiver inserts a job for each call at once and works on them: River knows of no stages.
func runRiver(ctx context.Context, c child) (report, error) {
	pool, err := pgxpool.New(ctx, c.Server)
	if err != nil {
		return report{}, err
	}
	defer pool.Close()
	w := &callWorker{load: c.Load, pool: pool}
	client, err := newRiver(ctx, pool, w, c.Load.AtOnce)
	if err != nil {
		return report{}, err
	}
	events, unsubscribe := client.Subscribe(river.EventKindJobCompleted)
	defer unsubscribe()
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return report{}, err
	}
	var jobs []river.InsertManyParams
	for _, key := range c.Load.keys() {
		jobs = append(jobs, river.InsertManyParams{Args: callArgs{key}})
	}
	if _, err := client.InsertManyFast(ctx, jobs); err != nil {
		return report{}, err
	}
	for range jobs {
		<-events
	}
	r := report{Makespan: time.Since(began), Calls: len(jobs)}
	return r, errors.Join(client.Stop(ctx), stored(ctx, pool, len(jobs)))
}

// newRiver makes a fresh schema and a client over it, with its shortest sensible waits.
func newRiver(ctx context.Context, pool *pgxpool.Pool, w *callWorker, atOnce int) (*river.Client[pgx.Tx], error) {
	for _, sql := range []string{`DROP SCHEMA public CASCADE`, `CREATE SCHEMA public`, `CREATE TABLE replies (key TEXT PRIMARY KEY, body TEXT NOT NULL)`} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	return river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: atOnce}}, Workers: workers, JobTimeout: time.Minute,
		FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		ErrorHandler: quiet{},
	})
}

// quiet leaves errors to River: they were asked for.
type quiet struct{}

func (quiet) HandleError(context.Context, *rivertype.JobRow, error) *river.ErrorHandlerResult {
	return nil
}

func (quiet) HandlePanic(context.Context, *rivertype.JobRow, any, string) *river.ErrorHandlerResult {
	return nil
}

func stored(ctx context.Context, pool *pgxpool.Pool, want int) error {
	var n int
	if err := pool.QueryRow(ctx, `SELECT COUNT(*) FROM replies`).Scan(&n); err != nil {
		return err
	}
	return wantCount(n, want)
}
