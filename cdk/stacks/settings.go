package stacks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

// What works on chunks: `-c workers=`.
const (
	OnLambda  = "lambda"
	OnFargate = "fargate"
	OnBoth    = "both"
)

// Settings are what a deployment may choose, each by `cdk deploy -c KEY=VALUE` or in cdk.json's context.
type Settings struct {
	Stack     string          // stack: prefix of every name
	Workers   string          // workers: lambda, fargate or both
	Arch      string          // arch: arm64 or amd64, of functions and tasks
	Functions string          // functions: folder of the functions' zips; "" = where make functions puts them
	Image     string          // image: tag of workd's image in the deployment's repository; needed with Fargate
	Bucket    string          // bucket: its name; "" = STACK-blobs-ACCOUNT-REGION, because bucket names are everybody's
	Policy    pipeline.Policy // policy: a policy file
	// PolicyText is the policy as the workers read it; "" = the shipped one.
	PolicyText string

	Model          string // model: offline, or openai/NAME
	ModelURL       string // model-url
	ModelKeySecret string // model-key-secret: ARN of the secret with the model's key
	Quota          int    // quota: tokens a minute that the model's provider allows; 0 = no limit
	MaxCost        string // max-cost: ceiling of every job, in dollars; "" = each job's worst case
	PriceAs        string // price-as: at which model's prices costs are counted
	InFlight       int    // in-flight: calls at once in one process
	OfflinePace    string // offline-pace: mean time that the offline model takes for an answer, for trials
	OfflineFail    string // offline-fail: shares of its tries that fail, for trials

	MaxTasks int      // max-tasks: the most Fargate tasks
	MinTasks int      // min-tasks: the fewest; 0 only beside Lambda
	VPC      string   // vpc: an existing one's id; "" = one is made for Fargate
	Subnets  []string // subnets: of that VPC
	Zones    int      // zones: in how many the VPC that is made is; each costs its endpoints
	Public   bool     // public: tasks have addresses of their own and no way in; for a model outside AWS

	Issuer     string   // jwt-issuer: who issues the tokens that callers show; "" = callers sign with IAM
	Audience   []string // jwt-audience
	TenantFrom string   // tenant-from: whose jobs a caller's are

	AlarmAddress string // alarm-address: who is mailed
	Endpoint     string // endpoint: of all AWS services, as the functions reach them; for LocalStack. {process} in it is the function's name
	LogDays      int    // log-days
}

// LocalStack says that the deployment is on an emulator.
func (s Settings) LocalStack() bool { return s.Endpoint != "" }

// Lambda says that functions take chunks.
func (s Settings) Lambda() bool { return s.Workers != OnFargate }

// Fargate says that tasks take chunks.
func (s Settings) Fargate() bool { return s.Workers != OnLambda }

// keys are the settings there are, and what each is without being set.
var keys = map[string]string{
	"stack": "holdfast", "workers": OnLambda, "arch": "arm64", "functions": "", "image": "", "bucket": "", "policy": "",
	"model": config.OfflineModel, "model-url": "", "model-key-secret": "", "quota": "0", "max-cost": "", "price-as": config.PriceAs,
	"in-flight": "32", "offline-pace": "", "offline-fail": "", "max-tasks": "10", "min-tasks": "", "vpc": "", "subnets": "", "zones": "1", "public": "",
	"jwt-issuer": "", "jwt-audience": "", "tenant-from": "",
	"alarm-address": "", "endpoint": "", "log-days": "30",
}

// Keys are the names of the settings.
func Keys() []string { return sortedKeys(keys) }

// CheckKeys says which of the names in the CDK's context are no settings: one that is written wrongly would be as if it
// were not set, and a ceiling would be none. The CDK's own names have a colon, a slash or an @ in them.
func CheckKeys(names []string) error {
	var errs []error
	for _, name := range names {
		if _, known := keys[name]; !known && !strings.ContainsAny(name, ":/@") {
			errs = append(errs, fmt.Errorf("-c %s=...: there is no such setting; there are %s", name, strings.Join(Keys(), ", ")))
		}
	}
	return errors.Join(errs...)
}

// reader reads settings and collects what is wrong with them.
type reader struct {
	get  func(key string) (string, bool)
	errs []error
}

// text is a setting; an empty one is as if it were not set.
func (r *reader) text(key string) string {
	if value, set := r.get(key); set && strings.TrimSpace(value) != "" {
		return strings.TrimSpace(value)
	}
	return keys[key]
}

func (r *reader) wrong(key, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("-c %s=%s: %s", key, r.text(key), fmt.Sprintf(format, args...)))
}

func (r *reader) oneOf(key string, allowed ...string) string {
	value := r.text(key)
	if !slices.Contains(allowed, value) {
		r.wrong(key, "write one of %s", strings.Join(allowed, ", "))
	}
	return value
}

func (r *reader) matching(key, pattern, what string) string {
	value := r.text(key)
	if value != "" && !regexp.MustCompile("^(?:"+pattern+")$").MatchString(value) {
		r.wrong(key, "write %s", what)
	}
	return value
}

func (r *reader) number(key string, least, most int) int {
	value := r.text(key)
	if value == "" {
		return least
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		r.wrong(key, "write a whole number from %d to %d", least, most)
	}
	return n
}

func (r *reader) list(key string) []string {
	var all []string
	for _, part := range strings.Split(r.text(key), ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// Read reads the settings; get is one setting's value, and whether it is set. Every mistake is told, with the setting.
func Read(get func(key string) (string, bool)) (Settings, error) {
	r := &reader{get: get}
	s := Settings{
		Stack:     r.matching("stack", "[a-z][a-z0-9-]{0,27}[a-z0-9]", "2 to 29 small letters, digits and hyphens: with account and region a bucket's name takes no more"),
		Workers:   r.oneOf("workers", OnLambda, OnFargate, OnBoth),
		Arch:      r.oneOf("arch", "arm64", "amd64"),
		Functions: r.text("functions"),
		Image:     r.matching("image", `[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}`, "the tag under which the image of workd was pushed"),
		Bucket:    r.matching("bucket", `[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]`, "a bucket's name"),

		Model:          r.text("model"),
		ModelURL:       r.text("model-url"),
		ModelKeySecret: r.matching("model-key-secret", `arn:[a-z-]+:secretsmanager:.+`, "the secret's ARN"),
		Quota:          r.number("quota", 0, 1<<31-1),
		MaxCost:        r.text("max-cost"),
		PriceAs:        r.text("price-as"),
		InFlight:       r.number("in-flight", 1, 1000),
		OfflinePace:    r.text("offline-pace"),
		OfflineFail:    r.text("offline-fail"),

		MaxTasks: r.number("max-tasks", 1, 1000),
		VPC:      r.matching("vpc", `vpc-[0-9a-f]+`, "a VPC's id"),
		Subnets:  r.list("subnets"),
		Zones:    r.number("zones", 1, 3),
		Public:   r.oneOf("public", "", "true", "false") == "true",

		Issuer:     r.matching("jwt-issuer", `https://.+`, "the issuer's https address"),
		Audience:   r.list("jwt-audience"),
		TenantFrom: r.text("tenant-from"),

		AlarmAddress: r.matching("alarm-address", `[^@\s]+@[^@\s]+`, "a mail address"),
		Endpoint:     r.matching("endpoint", `https?://.+`, "an address, e.g. http://127.0.0.1:4566"),
		LogDays:      r.number("log-days", 1, 3653),
	}
	if s.Functions == "" {
		s.Functions = "../dist/" + s.Arch
	}
	s.MinTasks = r.number("min-tasks", r.fewest(s), s.MaxTasks)
	s.Policy, s.PolicyText = r.policy()
	r.together(s)
	return s, errors.Join(r.errs...)
}

// fewest tasks that there may be: without Lambda somebody must be there to take the first chunk.
func (r *reader) fewest(s Settings) int {
	if s.Workers == OnFargate {
		return 1
	}
	return 0
}

// A function's environment may have so many bytes in all; some are for the bucket's name, which is not known here.
const (
	mostEnvironment = 4096
	room            = 100
)

// retentions are for how many days CloudWatch Logs may be told to keep a log (its API's PutRetentionPolicy, November 2026).
var retentions = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

// CheckZips says which functions' zips are not there yet.
func (s Settings) CheckZips() error {
	for _, process := range s.processes() {
		if process == config.Workd {
			continue
		}
		if _, err := os.Stat(s.zip(process)); err != nil {
			return fmt.Errorf("the zip of function %s is not there: make functions (ARCH=%s): %w", process, s.Arch, err)
		}
	}
	return nil
}

// zip is the path of a function's zip.
func (s Settings) zip(process config.Process) string {
	return filepath.Join(s.Functions, string(process)+".zip")
}

// together checks what settings say of one another.
func (r *reader) together(s Settings) {
	if (s.Workers == OnFargate || s.Workers == OnBoth) && s.Image == "" {
		r.wrong("image", "workers=%s starts tasks: push the image of workd, and name its tag", s.Workers)
	}
	if !slices.Contains(retentions, s.LogDays) {
		r.wrong("log-days", "CloudWatch keeps logs for so many days: %s", strings.Trim(fmt.Sprint(retentions), "[]"))
	}
	if (s.VPC == "") != (len(s.Subnets) == 0) {
		r.wrong("vpc", "an existing VPC is named together with its subnets: -c vpc=vpc-... -c subnets=subnet-...,subnet-...")
	}
	if (s.Issuer == "") != (len(s.Audience) == 0) {
		r.wrong("jwt-issuer", "tokens are checked for issuer and audience: name both")
	}
	if s.Issuer != "" && !strings.HasPrefix(s.TenantFrom, config.TenantClaim+":") && !strings.HasPrefix(s.TenantFrom, config.TenantOnly+":") {
		r.wrong("tenant-from", "with tokens, name the claim that is the tenant, e.g. claim:sub; or only:NAME if all callers are one")
	}
	if s.Issuer == "" && strings.HasPrefix(s.TenantFrom, config.TenantClaim+":") {
		r.wrong("tenant-from", "only tokens have claims: name who issues them (-c jwt-issuer=... -c jwt-audience=...); callers who sign with IAM are told apart by account or user")
	}
	if s.Model != config.OfflineModel && s.Fargate() && !s.Public && s.VPC == "" {
		r.wrong("model", "a model outside AWS cannot be reached from a VPC without a way out: -c public=true gives tasks addresses of their own, with no way in; or name a VPC that has one")
	}
	if s.Model != config.OfflineModel && s.ModelKeySecret == "" && !s.LocalStack() {
		r.wrong("model-key-secret", "name the secret (of Secrets Manager) with the key of %s", s.Model)
	}
	if err := s.Policy.CheckFunction(); s.Lambda() && err != nil {
		r.wrong("policy", "%v; or use workers=fargate", err)
	}
	for _, process := range s.processes() {
		told := s.environment(process, "-")
		size := 0
		for name, value := range told {
			size += len(name) + len(value)
		}
		if process != config.Workd && size > mostEnvironment-room {
			r.wrong("policy", "the environment of %s would have %d bytes, and Lambda takes %d: leave comments and what is as shipped out of the policy file", process, size+room, mostEnvironment)
		}
		_, err := config.ReadEnvironment(process, func(name string) (string, bool) { value, set := told[name]; return value, set })
		if err != nil {
			r.errs = append(r.errs, err)
		}
	}
}
