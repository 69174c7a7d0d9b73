package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"holdfast/pkg/config"
	"holdfast/pkg/offline"
	"holdfast/pkg/openai"
	"holdfast/pkg/pipeline"
)

// modelFlags choose the model and, for the offline one, how it behaves.
type modelFlags struct {
	Model    string        `help:"Model to ask: offline (rules, no network), or openai/NAME at --model-url." default:"offline"`
	ModelURL string        `name:"model-url" help:"Address of a server that speaks the OpenAI dialect; its key is read from OPENAI_API_KEY." default:"https://api.openai.com/v1" env:"OPENAI_BASE_URL" placeholder:"URL"`
	PriceAs  string        `name:"price-as" help:"Show costs at this model's prices." default:"claude-sonnet-5-5" placeholder:"MODEL"`
	Pace     time.Duration `help:"Mean time that the offline model takes for an answer." placeholder:"DURATION"`
	Fail     string        `help:"Share of tries that fail, by kind, e.g. 'throttled=3%,unavailable=1%,malformed=1%,crash=0.2%'." placeholder:"SPEC"`
	Seed     uint64        `help:"Seed of the failures." default:"1"`
	Ledger   string        `help:"File to which the offline model appends every question before it answers." placeholder:"FILE"`
}

// offlineNames are what --model may say for the offline model.
var offlineNames = []string{"offline", "offline-rules-1"}

// model makes the model. worker names who asks, in the ledger.
func (f modelFlags) model(worker string, clock pipeline.Clock, kill func()) (pipeline.Model, error) {
	if name, is := strings.CutPrefix(f.Model, openaiPrefix); is {
		return f.openai(name)
	}
	known := false
	for _, name := range offlineNames {
		known = known || f.Model == name
	}
	if !known {
		return nil, usage("there is no model %q; the models are: %s, openai/NAME", f.Model, strings.Join(offlineNames, ", "))
	}
	faults, err := offline.ParseFaults(f.Fail)
	if err != nil {
		return nil, usage("--fail: %s", strings.TrimPrefix(err.Error(), "faults: "))
	}
	price, err := config.Price(f.PriceAs)
	if err != nil {
		return nil, usage("--price-as: %v", err)
	}
	return between.model(offline.New(offline.Config{
		Seed: f.Seed, Pace: f.Pace, Faults: faults, Ledger: f.Ledger, Worker: worker, Clock: clock, Kill: kill,
		Price: price, PricedAs: f.PriceAs,
	})), nil
}

// openaiPrefix is before the name of a model at a server.
const openaiPrefix = "openai/"

// openai is a model at a server. Its price is that of --price-as, whose limits are taken for its own.
func (f modelFlags) openai(name string) (pipeline.Model, error) {
	if name == "" {
		return nil, usage("--model openai/NAME: which model?")
	}
	like, err := config.FindModel(f.PriceAs)
	if err != nil {
		return nil, usage("--price-as: %v", err)
	}
	return between.model(openai.New(openai.Config{
		URL: f.ModelURL, Key: os.Getenv("OPENAI_API_KEY"), Name: name,
		Info: pipeline.ModelInfo{
			Name: openaiPrefix + name, Version: "1", Price: like.Price(), PricedAs: f.PriceAs, ContextTokens: like.Context, MaxOutput: like.MaxOutput,
		},
	})), nil
}

// where is the address of the model's server, if a person named it: only the shell's variable is said again by itself.
func (f modelFlags) where() []string {
	if !strings.HasPrefix(f.Model, openaiPrefix) || f.ModelURL == os.Getenv("OPENAI_BASE_URL") {
		return nil
	}
	return []string{"--model-url", f.ModelURL}
}

// args are the flags again, for a worker process.
func (f modelFlags) args() []string {
	args := []string{"--model", f.Model, "--model-url", f.ModelURL, "--price-as", f.PriceAs, "--seed", fmt.Sprint(f.Seed)}
	if f.Pace > 0 {
		args = append(args, "--pace", f.Pace.String())
	}
	if f.Fail != "" {
		args = append(args, "--fail", f.Fail)
	}
	if f.Ledger != "" {
		args = append(args, "--ledger", f.Ledger)
	}
	return args
}
