package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"holdfast/pkg/offline"
	"holdfast/pkg/pipeline"
)

// killsPerRun are placed at random moments, one in each equal part of a run.
const killsPerRun = 2

// death is what one signal to a worker led to.
type death struct {
	process  int
	from     int // entries of the ledger before it
	back     time.Duration
	unstored int // answered and not stored: billed again
	inFlight int // not answered: asked again
}

// crashes kills workers and reads in the model's ledger what that cost.
func (b *bench) crashes(ctx context.Context) error {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	var back, unstored, inFlight []float64
	stored := 0
	for range b.runs(10, 2) {
		deaths, again, err := b.killed(ctx, random, syscall.SIGKILL, killsPerRun)
		if err != nil {
			return err
		}
		stored += again
		for _, d := range deaths {
			back = append(back, d.back.Seconds())
			unstored = append(unstored, float64(d.unstored))
			inFlight = append(inFlight, float64(d.inFlight))
		}
	}
	fmt.Printf("  after kill -9 at a random moment, 64 calls at once of 50 ms +- 50 %% (seed %d)\n", seed)
	fmt.Printf("    stored answers billed again               %d\n", stored)
	fmt.Printf("    answered, not stored, billed again        %s\n", spreadOf(unstored).text("%.0f"))
	fmt.Printf("    in flight, asked again                    %s\n", spreadOf(inFlight).text("%.0f"))
	fmt.Printf("    first new call, supervised, s             %s\n", spreadOf(back).text("%.2f"))
	back = nil
	for range b.runs(5, 2) {
		deaths, _, err := b.killed(ctx, random, syscall.SIGTERM, 1)
		if err != nil {
			return err
		}
		back = append(back, deaths[0].back.Seconds())
	}
	fmt.Printf("  after SIGTERM: first new call of the next, s  %s\n", spreadOf(back).text("%.2f"))
	return nil
}

// killed sends a signal to the worker at n random moments of a run, and waits for the run's end.
func (b *bench) killed(ctx context.Context, random *rand.Rand, signal syscall.Signal, n int) (deaths []death, stored int, err error) {
	s, err := b.supervise(ctx, full.AtOnce)
	if err != nil {
		return nil, 0, err
	}
	defer s.close()
	part := full.calls() * 9 / 10 / n
	for i := range n {
		moment := i*part + part/10 + random.IntN(part*8/10)
		if err := s.until(ctx, func() bool { return s.begins >= moment }); err != nil {
			return nil, 0, err
		}
		d := death{process: s.worker(), from: len(s.entries)}
		at := pipeline.At(time.Now())
		if err := syscall.Kill(d.process, signal); err != nil {
			return nil, 0, fmt.Errorf("signal worker %d: %w", d.process, err)
		}
		err := s.until(ctx, func() bool {
			first, found := s.firstOfOther(d.process, d.from)
			d.back = first.Sub(at)
			return found
		})
		if err != nil {
			return nil, 0, err
		}
		deaths = append(deaths, d)
	}
	if err := s.ends(ctx); err != nil {
		return nil, 0, err
	}
	stored, err = s.witness(ctx, deaths)
	return deaths, stored, err
}

// witness counts in the ledger what was asked again after each death, and in all what was asked though it was stored.
func (s *supervised) witness(ctx context.Context, deaths []death) (stored int, err error) {
	system, closeStore, err := s.system(ctx)
	if err != nil {
		return 0, err
	}
	defer closeStore()
	var keys []pipeline.ReplyKey
	for _, e := range s.entries {
		keys = append(keys, e.Key)
	}
	replies, err := pipeline.ReadReplies(ctx, system.Backend.Store, system.Backend.Blobs, pipeline.NewRealClock(), keys)
	if err != nil {
		return 0, err
	}
	storedAt := map[pipeline.ReplyKey]pipeline.Instant{}
	for key, reply := range replies {
		storedAt[key] = reply.At
	}
	for i := range deaths {
		deaths[i].unstored, deaths[i].inFlight = againAfter(s.entries, deaths[i].process)
	}
	return offline.Repeats(s.entries, storedAt).Stored, nil
}

// againAfter counts the keys whose try by a process was followed by another's: after an answer, or without one.
func againAfter(entries []offline.Entry, process int) (answered, open int) {
	last, outcome := map[pipeline.ReplyKey]offline.Entry{}, map[string]string{}
	for _, e := range entries {
		if e.Event == offline.End {
			outcome[e.Nonce] = e.Outcome
			continue
		}
		before, repeated := last[e.Key]
		last[e.Key] = e
		if !repeated || before.Process != process || e.Process == process {
			continue
		}
		switch outcome[before.Nonce] {
		case offline.OK:
			answered++
		case "":
			open++
		}
	}
	return answered, open
}
