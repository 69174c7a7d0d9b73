package offline

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

// Fault is a way in which a try fails on command.
type Fault string

// The faults: failure kinds by the model's own words, and two that no answer tells: Crash and Hang.
const (
	Throttled   Fault = "throttled"
	Quota       Fault = "quota"
	Unavailable Fault = "unavailable"
	Ambiguous   Fault = "ambiguous"
	Truncated   Fault = "truncated"
	Malformed   Fault = "malformed"
	Refused     Fault = "refused"
	Rejected    Fault = "rejected"
	Invalid     Fault = "invalid"
	TooLong     Fault = "too_long"
	Crash       Fault = "crash" // the worker dies before the answer
	Hang        Fault = "hang"  // no answer until the context ends
)

var allFaults = []Fault{Throttled, Quota, Unavailable, Ambiguous, Truncated, Malformed, Refused, Rejected, Invalid, TooLong, Crash, Hang}

// Faults are shares of tries, 0 to 1, that fail in each way.
type Faults map[Fault]float64

// ParseFaults reads "throttled=3%,crash=0.2%"; empty is no faults. An error names the part that is wrong.
func ParseFaults(s string) (Faults, error) {
	faults := Faults{}
	if strings.TrimSpace(s) == "" {
		return faults, nil
	}
	total := 0.0
	for _, part := range strings.Split(s, ",") {
		name, share, err := parseFault(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("faults: %w", err)
		}
		if _, twice := faults[name]; twice {
			return nil, fmt.Errorf("faults: %q stands twice; keep one", name)
		}
		faults[name] = share
		total += share
	}
	if total > 1+1e-9 {
		return nil, fmt.Errorf("faults: %q is more than 100 %% in all", s)
	}
	return faults, nil
}

func parseFault(part string) (Fault, float64, error) {
	name, value, ok := strings.Cut(part, "=")
	fault := Fault(strings.TrimSpace(name))
	if !ok {
		return "", 0, fmt.Errorf("%q must be a fault and its share, for example throttled=3%%", part)
	}
	if !slices.Contains(allFaults, fault) {
		return "", 0, fmt.Errorf("%q: there is no fault %q; the faults are %s", part, fault, faultNames())
	}
	percent, isPercent := strings.CutSuffix(strings.TrimSpace(value), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	if err != nil || !isPercent || !(share >= 0 && share <= 100) {
		return "", 0, fmt.Errorf("%q: the share must be 0%% to 100%%, for example %s=3%%", part, fault)
	}
	return fault, share / 100, nil
}

func faultNames() string {
	names := make([]string, len(allFaults))
	for i, f := range allFaults {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// String is what ParseFaults reads, in a fixed order.
func (f Faults) String() string {
	var parts []string
	for _, fault := range allFaults {
		if share := f[fault]; share > 0 {
			parts = append(parts, fmt.Sprintf("%s=%s%%", fault, strconv.FormatFloat(share*100, 'g', -1, 64)))
		}
	}
	return strings.Join(parts, ",")
}

// pick is the fault of one try, or "" if it does not fail. A crash is drawn apart, for this process: otherwise it would
// come back in every process that replaces a dead one, and no call could ever get past it.
func (m *Model) pick(key pipeline.ReplyKey, try int) Fault {
	if chance(m.cfg.Seed, "crash", m.incarnation, string(key), strconv.Itoa(try)) < m.cfg.Faults[Crash] {
		return Crash
	}
	draw := chance(m.cfg.Seed, "fault", string(key), strconv.Itoa(try))
	for _, fault := range allFaults {
		if fault == Crash {
			continue
		}
		if draw < m.cfg.Faults[fault] {
			return fault
		}
		draw -= m.cfg.Faults[fault]
	}
	return ""
}

// chance is a number from 0 to 1 that depends on nothing but its arguments.
func chance(seed uint64, parts ...string) float64 {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, seed))
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return float64(binary.BigEndian.Uint64(h.Sum(nil))>>11) / (1 << 53)
}

// failure is how a provider tells of a fault.
type failure struct {
	kind   pipeline.Kind
	code   string
	cause  string
	detail string
	wait   time.Duration // until the answer asks to be tried again
	slow   bool          // comes after the time of an answer, not at once
	used   bool          // the input was read, and is perhaps billed
}

var failures = map[Fault]failure{
	Throttled:   {kind: pipeline.Throttled, code: "ThrottlingException", cause: "the model asks to slow down", detail: "429: Too many requests, please wait before trying again."},
	Quota:       {kind: pipeline.Quota, code: "ServiceQuotaExceededException", cause: "the quota of this model is used up", detail: "400: Too many tokens per day.", wait: time.Minute},
	Unavailable: {kind: pipeline.Unavailable, code: "ServiceUnavailableException", cause: "the model's service is not available", detail: "503: The service is temporarily unable to handle the request."},
	Ambiguous:   {kind: pipeline.Ambiguous, code: "ModelTimeoutException", cause: "the model did not answer in time; the call may have been billed", detail: "408: The model timed out.", slow: true, used: true},
	Refused:     {kind: pipeline.Refused, code: "content_filtered", cause: "the model refused to answer", detail: "stop reason content_filtered", slow: true, used: true},
	Rejected:    {kind: pipeline.Rejected, code: "AccessDeniedException", cause: "these credentials may not use this model", detail: "403: You don't have access to the model with the specified model ID."},
	Invalid:     {kind: pipeline.Invalid, code: "ValidationException", cause: "the model does not accept this request", detail: "400: The request is not valid."},
	TooLong:     {kind: pipeline.TooLong, code: "ValidationException", cause: "the request is longer than the model's context", detail: "400: Input is too long for requested model."},
}

// errOnCommand is the cause of every failure that was asked for.
var errOnCommand = errors.New("failed on command")

func (f failure) err(r pipeline.Request) *pipeline.ModelError {
	e := &pipeline.ModelError{
		Failure:    pipeline.Failure{Kind: f.kind, Cause: f.cause, Code: f.code, Detail: f.detail},
		RetryAfter: f.wait,
		Err:        errOnCommand,
	}
	if f.used {
		e.Usage = pipeline.Usage{Input: r.InputTokens()}
	}
	return e
}
