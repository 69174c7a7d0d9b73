package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/pkg/offline"
	"holdfast/scripts/cuad"
)

// turn is one contract to be measured, and the model that does it.
type turn struct {
	contract cuad.Contract
	model    *offline.Model
}

// shipped lets the model that ships measure contracts.
func shipped(contracts []cuad.Contract) []turn {
	model := offline.New(offline.Config{})
	turns := make([]turn, len(contracts))
	for i, c := range contracts {
		turns[i] = turn{c, model}
	}
	return turns
}

// crossed lets each contract that was trained on be measured by weights, of those in dir, that were made without it and
// without every other of its filer. `train -parts` writes them, each beside the names of what it was trained on.
func crossed(dir string, contracts []cuad.Contract) ([]turn, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.bin.gz"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there are no weights in %s: make them with `go run ./scripts/train -cuad DIR -parts %s`", dir, dir)
	}
	var turns []turn
	measured := map[string]int{}
	for _, file := range files {
		model, saw, err := readPart(file)
		if err != nil {
			return nil, err
		}
		for _, c := range contracts {
			if !slices.Contains(saw, c.Name) {
				turns = append(turns, turn{c, model})
				measured[c.Name]++
			}
		}
	}
	for _, c := range contracts {
		if n := measured[c.Name]; n != 1 {
			return nil, fmt.Errorf("%d of the weights in %s were made without %s, not one: make them again", n, dir, c.Name)
		}
	}
	return turns, nil
}

// readPart reads weights and the names of what they were trained on.
func readPart(file string) (*offline.Model, []string, error) {
	packed, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read weights: %w", err)
	}
	weights, err := offline.ReadClassifier(packed)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	names, err := os.ReadFile(strings.TrimSuffix(file, ".bin.gz") + ".txt")
	if err != nil {
		return nil, nil, fmt.Errorf("read what %s was trained on: %w", file, err)
	}
	return offline.New(offline.Config{Classifier: weights}), cuad.Names(string(names)), nil
}
