package pipeline

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestDefaultPolicyIsValid(t *testing.T) {
	if err := DefaultPolicy().Validate(); err != nil {
		t.Error(err)
	}
}

// Each inequality is broken alone, and the error names both sides.
func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		edit  func(*Policy)
		names []string
	}{
		"no try":                  {func(p *Policy) { p.MaxTries = 0 }, []string{"max_tries (0)"}},
		"re-asks below nothing":   {func(p *Policy) { p.MaxReasks = -1 }, []string{"max_reasks (-1)"}},
		"no attempt":              {func(p *Policy) { p.MaxAttempts = 0 }, []string{"max_attempts (0)"}},
		"deferrals below nothing": {func(p *Policy) { p.MaxDeferrals = -1 }, []string{"max_deferrals (-1) must be at least 0"}},
		"no receive":              {func(p *Policy) { p.MaxReceives = 0 }, []string{"max_receives (0) must be at least 1"}},
		"no ring":                 {func(p *Policy) { p.MaxRings = 0 }, []string{"max_rings (0)"}},
		"no claim":                {func(p *Policy) { p.MaxJobClaims = 0 }, []string{"max_job_claims (0)"}},

		"no try backoff":      {func(p *Policy) { p.TryBackoff = 0 }, []string{"try_backoff"}},
		"no attempt backoff":  {func(p *Policy) { p.AttemptBackoff = 0 }, []string{"attempt_backoff"}},
		"no deferral backoff": {func(p *Policy) { p.DeferralBackoff = 0 }, []string{"deferral_backoff"}},
		"no ring delay":       {func(p *Policy) { p.RingDelay = 0 }, []string{"ring_delay"}},
		"no renewals":         {func(p *Policy) { p.RenewEvery = 0 }, []string{"renew_every"}},
		"no skew":             {func(p *Policy) { p.MaxSkew = 0 }, []string{"max_skew"}},
		"no poll":             {func(p *Policy) { p.JobPoll = 0 }, []string{"job_poll"}},
		"no breaker reading":  {func(p *Policy) { p.BreakerFresh = 0 }, []string{"breaker_fresh"}},
		"no call timeout":     {func(p *Policy) { p.CallTimeout = 0 }, []string{"call_timeout"}},

		"a renewal that comes too late":       {func(p *Policy) { p.RenewEvery = 15 * time.Second }, []string{"max_skew (5s)", "claim_ttl - renew_every (5s)"}},
		"readings that are never fresh":       {func(p *Policy) { p.JobFresh = p.JobPoll }, []string{"job_poll (500ms)", "job_fresh (500ms)"}},
		"a cancel that is seen too late":      {func(p *Policy) { p.JobFresh = 2 * time.Second }, []string{"job_fresh (2s)", "2 s after a cancel"}},
		"a call that stalls":                  {func(p *Policy) { p.StallTimeout = p.CallTimeout }, []string{"call_timeout (1m40s)", "stall_timeout (1m40s)"}},
		"a stall that nobody notices":         {func(p *Policy) { p.AttemptTimeout = 131 * time.Second; p.StallTimeout = 131 * time.Second }, []string{"stall_timeout (2m11s)", "attempt_timeout (2m11s)"}},
		"a call that no attempt can finish":   {func(p *Policy) { p.RetryWait = 200 * time.Second }, []string{"call_timeout + retry_wait (5m0s)", "attempt_timeout (5m0s)"}},
		"a breaker that is heard of too late": {func(p *Policy) { p.BreakerFresh = p.BreakerOpen }, []string{"breaker_fresh (30s)", "breaker_open (30s)"}},
		"deferrals that wait less and less":   {func(p *Policy) { p.DeferralBackoff = p.DeferralLimit + 1 }, []string{"deferral_backoff", "deferral_limit"}},
		"rings that wait less and less":       {func(p *Policy) { p.RingDelay = p.RingLimit + 1 }, []string{"ring_delay", "ring_limit"}},
		"a letter that dies before its job":   {func(p *Policy) { p.DeadLetterRetention = p.JobDeadline }, []string{"job_deadline (24h0m0s)", "dead_letter_retention (24h0m0s)"}},
		"a reply that dies in its job":        {func(p *Policy) { p.Retention = 2 * p.JobDeadline }, []string{"job_deadline (24h0m0s)", "half of retention (24h0m0s)"}},
		"a letter without its checkpoints":    {func(p *Policy) { p.Retention = p.DeadLetterRetention }, []string{"dead_letter_retention (336h0m0s)", "retention (336h0m0s)"}},
		"a queue that gives up before a row":  {func(p *Policy) { p.MaxReceives = p.MaxAttempts }, []string{"max_receives (3)", "max_attempts (3)"}},
		"an outage that uses deferrals up":    {func(p *Policy) { p.MaxDeferrals = 50 }, []string{"max_deferrals (50)", "job_deadline (24h0m0s)"}},
		"a deadline that no deferral reaches": {func(p *Policy) { p.JobDeadline = 28 * time.Hour }, []string{"max_deferrals (60)", "job_deadline (28h0m0s)"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := DefaultPolicy()
			test.edit(&p)
			err := p.Validate()
			if err == nil {
				t.Fatal("it is valid")
			}
			for _, want := range test.names {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
	for name, edit := range map[string]func(*Policy){
		"the smallest numbers": func(p *Policy) {
			p.MaxTries, p.MaxReasks, p.MaxAttempts, p.MaxReceives, p.MaxRings, p.MaxJobClaims = 1, 0, 1, 2, 1, 1
		},
		"no deferrals where no deadline needs them": func(p *Policy) { p.MaxDeferrals, p.JobDeadline = 0, 0 },
		"waits that do not grow":                    func(p *Policy) { p.DeferralBackoff, p.RingDelay = p.DeferralLimit, p.RingLimit },
		"deferrals that just reach the deadline":    func(p *Policy) { p.JobDeadline = p.deferralSum() },
		"the tightest claim":                        func(p *Policy) { p.RenewEvery = 15*time.Second - 1 },
	} {
		t.Run(name+" are valid", func(t *testing.T) {
			p := DefaultPolicy()
			edit(&p)
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("every error is told at once", func(t *testing.T) {
		err := Policy{}.Validate()
		if err == nil || strings.Count(err.Error(), "\n") < 10 {
			t.Errorf("got %v, want all of them", err)
		}
	})
}

func TestDoubled(t *testing.T) {
	for _, test := range []struct {
		first, limit time.Duration
		n            int
		want         time.Duration
	}{
		{time.Second, time.Minute, 0, time.Second},
		{time.Second, time.Minute, 1, 2 * time.Second},
		{time.Second, time.Minute, 5, 32 * time.Second},
		{time.Second, time.Minute, 6, time.Minute},
		{time.Second, time.Minute, 1_000_000, time.Minute}, // does not overflow
		{time.Minute, time.Second, 0, time.Second},
	} {
		if got := doubled(test.first, test.limit, test.n); got != test.want {
			t.Errorf("%v x 2^%d, at most %v: got %v, want %v", test.first, test.n, test.limit, got, test.want)
		}
	}
}

func TestWaits(t *testing.T) {
	p := DefaultPolicy()
	for name, test := range map[string]struct{ got, want time.Duration }{
		"before the second try":        {p.TryWait(1, 0.999999999), 999999999},
		"before the fourth try":        {p.TryWait(3, 0.5), 2 * time.Second},
		"a try may come at once":       {p.TryWait(3, 0), 0},
		"after the first attempt":      {p.AttemptWait(1, 0), 30 * time.Second},
		"after the second, jittered":   {p.AttemptWait(2, 0.5), 66 * time.Second},
		"after the first deferral":     {p.DeferralWait(1, 0), 30 * time.Second},
		"after the ninth deferral":     {p.DeferralWait(9, 0), 30 * time.Minute},
		"before the first ring":        {p.RingWait(0), time.Minute},
		"after many rings":             {p.RingWait(9), 15 * time.Minute},
		"a delivery is invisible":      {p.Visibility(), 6 * time.Minute},
		"a claim is not trusted":       {p.OwnMargin(), 500 * time.Millisecond},
		"a held row, just claimed":     {p.HeldWait(Task{ClaimedAt: noon}, noon), 5 * time.Minute},
		"a held row, claimed long ago": {p.HeldWait(Task{ClaimedAt: noon}, noon.Add(time.Hour)), 10 * time.Second},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
	}
	if p.Visibility() <= p.AttemptTimeout {
		t.Error("a delivery must be invisible for longer than its attempt lasts")
	}
}

// Tries are allowed in blocks: those of lost attempts never use up more than half of what the task may send.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		p := DefaultPolicy()
		p.MaxTries, p.MaxAttempts, p.MaxDeferrals = 1+r.IntN(6), 1+r.IntN(6), r.IntN(100)
		cells := 1 + r.IntN(4000)
		tries := p.TriesPerCell()
		if limit := p.TryCap(cells); limit != cells*p.MaxTries*p.MaxAttempts {
			t.Fatalf("%d cells: got a cap of %d", cells, limit)
		}
		block := p.Block(cells)
		if block < 1 {
			t.Fatalf("%d cells: got blocks of %d, want at least 1", cells, block)
		}
		if tries > 1 && 2*block*min(p.MaxDeferrals, cells) > p.TryCap(cells) {
			t.Fatalf("%d cells, %d tries each, %d deferrals: got blocks of %d, too large for a cap of %d", cells, tries, p.MaxDeferrals, block, p.TryCap(cells))
		}
	}
	p := DefaultPolicy()
	if got := p.Block(116); got != 11 {
		t.Errorf("a chunk of 116 calls: got blocks of %d, want 11", got)
	}
	if got := p.Block(1); got != 2 { // a worker that died in each of two attempts leaves tries for the third
		t.Errorf("one cell: got blocks of %d, want 2", got)
	}
	if got := p.TriesPerCell(); got != 12 {
		t.Errorf("got %d tries per cell, want 12", got)
	}
	if got := p.WorstCase(1000); got != 12_000 {
		t.Errorf("got a worst case of %d, want %d", int64(got), 12_000)
	}
}
