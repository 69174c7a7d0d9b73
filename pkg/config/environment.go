package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/pkg/pipeline"
)

// Process is one of the processes of a deployment: a folder of functions/.
type Process string

// The processes.
const (
	Control Process = "control" // splits and finalizes: a function behind the control queue
	Work    Process = "work"    // chunks: a function behind the work queue
	Reap    Process = "reap"    // every minute: whatever stalled
	API     Process = "api"     // HTTP: submit, look, steer
	Workd   Process = "workd"   // control and work as a process that polls
)

// Processes are all of them.
func Processes() []Process { return []Process{Control, Work, Reap, API, Workd} }

// The names of settings, as the environment of a process has them. What deploys them writes these, a process reads them
// with [ReadEnvironment], and nothing else names them.
const (
	StackVar           = "HOLDFAST_STACK"
	BackendVar         = "HOLDFAST_BACKEND"
	StoreVar           = "HOLDFAST_STORE"
	EndpointVar        = "HOLDFAST_ENDPOINT"
	BucketVar          = "HOLDFAST_BUCKET"
	ControlQueueVar    = "HOLDFAST_CONTROL_QUEUE_URL"
	ControlDeadVar     = "HOLDFAST_CONTROL_DEAD_URL"
	WorkQueueVar       = "HOLDFAST_WORK_QUEUE_URL"
	WorkDeadVar        = "HOLDFAST_WORK_DEAD_URL"
	ModelVar           = "HOLDFAST_MODEL"
	ModelURLVar        = "HOLDFAST_MODEL_URL"
	ModelKeyVar        = "HOLDFAST_MODEL_KEY"
	ModelKeySecretVar  = "HOLDFAST_MODEL_KEY_SECRET"
	PriceAsVar         = "HOLDFAST_PRICE_AS"
	TokensPerMinuteVar = "HOLDFAST_TOKENS_PER_MINUTE"
	MaxCostVar         = "HOLDFAST_MAX_COST"
	TenantFromVar      = "HOLDFAST_TENANT_FROM"
	PolicyVar          = "HOLDFAST_POLICY"
	InFlightVar        = "HOLDFAST_IN_FLIGHT"
	ClaimsVar          = "HOLDFAST_CLAIMS"
	StopTimeVar        = "HOLDFAST_STOP_TIME"
	HealthVar          = "HOLDFAST_HEALTH_ADDRESS"
	LogLevelVar        = "HOLDFAST_LOG_LEVEL"
	PaceVar            = "HOLDFAST_OFFLINE_PACE"
	FailVar            = "HOLDFAST_OFFLINE_FAIL"
)

// Where state lives, as BackendVar has it.
const (
	AWSBackend      = "aws"
	EmbeddedBackend = "embedded"
)

// OfflineModel is the model that asks nobody, as ModelVar has it; OpenAIPrefix is before the name of one that is asked
// at ModelURLVar.
const (
	OfflineModel = "offline"
	OpenAIPrefix = "openai/"
)

// MostStopTime is the longest that Fargate lets a process take to stop.
const MostStopTime = 120 * time.Second

// Setting is one variable of a process's environment.
type Setting struct {
	Name    string
	Default string // what an unset one means
	Must    bool   // there is no default: it has to be set
	Secret  bool   // never printed
	Says    string // what it sets, for a person
	read    func(e *Environment, text string) error
}

// Environment is what a process is told. Unset ones have their defaults.
type Environment struct {
	Process         Process
	Stack           string
	Backend         string
	Store           string // folder of the embedded backend
	Endpoint        string // "" is AWS itself
	Bucket          string // "" is the stack's own name for it
	Queues          QueueURLs
	Model           string // offline, or openai/NAME
	ModelURL        string
	ModelKey        string
	ModelKeySecret  string // name or ARN of the secret that has the key
	PriceAs         string
	TokensPerMinute int            // 0 = no quota to share
	MaxCost         pipeline.Money // ceiling of every job that the api takes; 0 = each job's worst case
	TenantFrom      TenantFrom
	Policy          pipeline.Policy
	InFlight        int
	Claims          int // 0 = enough to keep the calls in flight busy
	StopTime        time.Duration
	Health          string // address to listen on
	LogLevel        slog.Level
	Pace            time.Duration // of the offline model
	Fail            string        // of the offline model: shares of tries that fail
}

// QueueURLs are the addresses of the queues; "" is looked up by the stack's name for it.
type QueueURLs struct{ Control, ControlDead, Work, WorkDead string }

// TenantFrom says who a caller's tenant is.
type TenantFrom struct {
	Kind  string // one of the constants below
	Value string // the claim, or the one tenant
}

// Kinds of TenantFrom.
const (
	TenantAccount = "account" // the AWS account that signed the request
	TenantUser    = "user"    // the user or role that signed it
	TenantClaim   = "claim"   // a claim of the token: claim:NAME
	TenantOnly    = "only"    // whoever may call at all is one tenant: only:NAME
)

// Settings are the variables that a process reads, those that must be set first.
func Settings(p Process) []Setting {
	all := slices.Concat(everywhere(), perProcess(p))
	slices.SortStableFunc(all, func(a, b Setting) int {
		switch {
		case a.Must && !b.Must:
			return -1
		case b.Must && !a.Must:
			return 1
		}
		return 0
	})
	return all
}

func everywhere() []Setting {
	return []Setting{
		{Name: StackVar, Must: true, Says: "prefix of the names of the deployment's tables, queues and bucket", read: readStack},
		{Name: BackendVar, Default: AWSBackend, Says: "where state lives: aws, or embedded in a build for one machine", read: readBackend},
		{Name: StoreVar, Default: ".holdfast", Says: "folder of the embedded backend", read: text(func(e *Environment) *string { return &e.Store })},
		{Name: EndpointVar, Says: "one address for all services of AWS, e.g. http://127.0.0.1:4566 for LocalStack; empty: AWS itself", read: address(func(e *Environment) *string { return &e.Endpoint })},
		{Name: BucketVar, Says: "name of the bucket; empty: STACK-blobs", read: text(func(e *Environment) *string { return &e.Bucket })},
		{Name: ControlQueueVar, Says: "address of the control queue; empty: looked up", read: text(func(e *Environment) *string { return &e.Queues.Control })},
		{Name: ControlDeadVar, Says: "address of its dead-letter queue; empty: looked up", read: text(func(e *Environment) *string { return &e.Queues.ControlDead })},
		{Name: WorkQueueVar, Says: "address of the work queue; empty: looked up", read: text(func(e *Environment) *string { return &e.Queues.Work })},
		{Name: WorkDeadVar, Says: "address of its dead-letter queue; empty: looked up", read: text(func(e *Environment) *string { return &e.Queues.WorkDead })},
		{Name: PolicyVar, Says: `fields of the policy that differ from the shipped one, as YAML or JSON, e.g. {"max_attempts": 4}`, read: readPolicySetting},
		{Name: LogLevelVar, Default: "info", Says: "debug, info, warn or error", read: func(e *Environment, s string) error { return e.LogLevel.UnmarshalText([]byte(s)) }},
	}
}

func perProcess(p Process) []Setting {
	switch p {
	case Work:
		return slices.Concat(modelSettings(), askingSettings())
	case Workd:
		return slices.Concat(modelSettings(), askingSettings(), workdSettings())
	case API:
		return slices.Concat(modelSettings(), apiSettings())
	}
	return nil
}

// modelSettings say which model it is, and what it costs.
func modelSettings() []Setting {
	return []Setting{
		{Name: ModelVar, Must: true, Says: "the model that is asked: offline (rules, no network, no cost), or openai/NAME", read: readModel},
		{Name: ModelURLVar, Default: "https://api.openai.com/v1", Says: "address of the server that has openai/NAME", read: address(func(e *Environment) *string { return &e.ModelURL })},
		{Name: PriceAsVar, Default: PriceAs, Says: "the model of the price list at whose price costs are counted", read: func(e *Environment, s string) error {
			e.PriceAs = s
			_, err := FindModel(s)
			return err
		}},
		{Name: TokensPerMinuteVar, Default: "0", Says: "the model's quota that all workers share, in tokens a minute; 0: none", read: number(0, func(e *Environment) *int { return &e.TokensPerMinute })},
	}
}

// askingSettings are those of a process that asks the model.
func askingSettings() []Setting {
	return []Setting{
		{Name: ModelKeyVar, Secret: true, Says: "the server's key; better a secret that has it", read: text(func(e *Environment) *string { return &e.ModelKey })},
		{Name: ModelKeySecretVar, Says: "name or ARN of a secret of Secrets Manager that has the server's key", read: text(func(e *Environment) *string { return &e.ModelKeySecret })},
		{Name: InFlightVar, Default: "32", Says: "calls in flight at once in one process", read: number(1, func(e *Environment) *int { return &e.InFlight })},
		{Name: PaceVar, Default: "0s", Says: "mean time that the offline model takes for an answer", read: duration(0, math.MaxInt64, func(e *Environment) *time.Duration { return &e.Pace })},
		{Name: FailVar, Says: "shares of tries that fail with the offline model, e.g. throttled=3%", read: text(func(e *Environment) *string { return &e.Fail })},
	}
}

func workdSettings() []Setting {
	return []Setting{
		{Name: ClaimsVar, Default: "0", Says: "chunks claimed at once; 0: enough to keep the calls in flight busy", read: number(0, func(e *Environment) *int { return &e.Claims })},
		{Name: StopTimeVar, Default: MostStopTime.String(), Says: "how long the process has from SIGTERM to its end", read: duration(time.Second, MostStopTime, func(e *Environment) *time.Duration { return &e.StopTime })},
		{Name: HealthVar, Default: "127.0.0.1:8080", Says: "address at which the process says that it is well", read: text(func(e *Environment) *string { return &e.Health })},
	}
}

func apiSettings() []Setting {
	return []Setting{
		{Name: MaxCostVar, Default: "0", Says: "ceiling in dollars of every job that is submitted here; 0: each job's worst case", read: readMaxCost},
		{Name: TenantFromVar, Default: TenantAccount, Says: "whose jobs a caller's are: account, user, claim:NAME of a token, or only:NAME", read: readTenantFrom},
	}
}

// ReadEnvironment reads what a process is told; lookup is os.LookupEnv. Its error names every setting that is missing
// or wrong, and what it is for.
func ReadEnvironment(p Process, lookup func(name string) (string, bool)) (Environment, error) {
	e := Environment{Process: p}
	var errs []error
	for _, s := range Settings(p) {
		value, _ := lookup(s.Name)
		if value == "" {
			value = s.Default
		}
		switch err := error(nil); {
		case value == "" && s.Must:
			errs = append(errs, fmt.Errorf("%s is not set: %s", s.Name, s.Says))
		default:
			if err = s.read(&e, value); err == nil {
				continue
			}
			shown := fmt.Sprintf("%q", pipeline.Cut(value, 100))
			if s.Secret {
				shown = "its value"
			}
			errs = append(errs, fmt.Errorf("%s: %s cannot be used: %w; it is: %s", s.Name, shown, err, s.Says))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return e, fmt.Errorf("the environment of %s: %w", p, err)
	}
	return e, nil
}

func text(field func(*Environment) *string) func(*Environment, string) error {
	return func(e *Environment, s string) error {
		*field(e) = s
		return nil
	}
}

// address is that of a server, or nothing.
func address(field func(*Environment) *string) func(*Environment, string) error {
	return func(e *Environment, s string) error {
		*field(e) = s
		u, err := url.Parse(s)
		if s != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return errors.New("an address that begins with https:// or http://")
		}
		return nil
	}
}

func number(least int, field func(*Environment) *int) func(*Environment, string) error {
	return func(e *Environment, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least {
			return fmt.Errorf("a whole number, at least %d", least)
		}
		*field(e) = n
		return nil
	}
}

func duration(least, most time.Duration, field func(*Environment) *time.Duration) func(*Environment, string) error {
	return func(e *Environment, s string) error {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return errors.New("a duration, e.g. 90s")
		case d < least || d > most:
			return fmt.Errorf("at least %v and at most %v", least, most)
		}
		*field(e) = d
		return nil
	}
}

// readStack takes what the name of a queue may begin with: of all that bears the stack's name, queues take least.
func readStack(e *Environment, s string) error {
	e.Stack = s
	if strings.ContainsFunc(s, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) {
		return errors.New("letters, digits, - and _")
	}
	return nil
}

func readBackend(e *Environment, s string) error {
	e.Backend = s
	if s != AWSBackend && s != EmbeddedBackend {
		return fmt.Errorf("one of %s, %s", AWSBackend, EmbeddedBackend)
	}
	return nil
}

func readModel(e *Environment, s string) error {
	e.Model = s
	name, at := strings.CutPrefix(s, OpenAIPrefix)
	if s != OfflineModel && (!at || name == "") {
		return fmt.Errorf("one of %s, %sNAME", OfflineModel, OpenAIPrefix)
	}
	return nil
}

func readPolicySetting(e *Environment, s string) (err error) {
	e.Policy, err = ReadPolicy(PolicyVar, []byte(s))
	return err
}

func readMaxCost(e *Environment, s string) error {
	const most = 1e9 // what an amount in our unit can hold
	dollars, err := strconv.ParseFloat(s, 64)
	if err != nil || !(dollars >= 0 && dollars <= most) {
		return errors.New("an amount of dollars, e.g. 25.00")
	}
	if e.MaxCost = pipeline.Money(dollars * float64(pipeline.Dollar)); e.MaxCost == 0 && dollars > 0 { // which would be none
		return fmt.Errorf("at least %.9f, or 0 for none", 1/float64(pipeline.Dollar))
	}
	return nil
}

func readTenantFrom(e *Environment, s string) error {
	kind, value, has := strings.Cut(s, ":")
	e.TenantFrom = TenantFrom{Kind: kind, Value: value}
	switch {
	case !has && (kind == TenantAccount || kind == TenantUser):
		return nil
	case value != "" && (kind == TenantClaim || kind == TenantOnly):
		return nil
	}
	return fmt.Errorf("one of %s, %s, %s:NAME, %s:NAME", TenantAccount, TenantUser, TenantClaim, TenantOnly)
}
