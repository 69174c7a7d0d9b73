package config

import (
	_ "embed" // the price list
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"holdfast/pkg/pipeline"
)

//go:embed prices.json
var priceList []byte

// PriceAs is the model at whose price costs are shown where nobody says otherwise.
const PriceAs = "claude-sonnet-5-5"

// ModelPrice is what a model costs, and who says so.
type ModelPrice struct {
	Name      string  `json:"name"`
	Input     float64 `json:"input"`  // US dollars per million tokens
	Output    float64 `json:"output"` //
	Context   int     `json:"context"`
	MaxOutput int     `json:"max_output"`
	Source    string  `json:"source"`
	AsOf      string  `json:"as_of"`
}

// Price is the price per token, rounded up.
func (m ModelPrice) Price() pipeline.Price {
	perToken := func(perMillion float64) pipeline.Money {
		return pipeline.Money(math.Ceil(math.Round(perMillion*float64(pipeline.Dollar)) / 1e6))
	}
	return pipeline.Price{Input: perToken(m.Input), Output: perToken(m.Output)}
}

// Models are the models whose price is known, in the list's order.
func Models() ([]ModelPrice, error) {
	var list struct {
		Models []ModelPrice `json:"models"`
	}
	if err := json.Unmarshal(priceList, &list); err != nil {
		return nil, fmt.Errorf("read the price list: %w", err)
	}
	return list.Models, nil
}

// FindModel is the model of that name.
func FindModel(name string) (ModelPrice, error) {
	models, err := Models()
	if err != nil {
		return ModelPrice{}, err
	}
	var names []string
	for _, m := range models {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return ModelPrice{}, fmt.Errorf("no price of model %q is known; those of these are: %s", name, strings.Join(names, ", "))
}

// Price is what the model of that name costs per token.
func Price(name string) (pipeline.Price, error) {
	m, err := FindModel(name)
	return m.Price(), err
}
