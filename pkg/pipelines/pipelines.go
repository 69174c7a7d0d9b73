// Package pipelines reads pipeline definitions: the shipped ones, which are embedded in the binary, and a team's own
// YAML files. What it hands out is resolved and checked: every call is spelled out, every prompt parses and runs, every
// schema compiles.
//
// It may decide: what a definition file may say, and how an error in one reads (file, line, what to do).
// It may not: ask a model, know anything of contracts in its code, or read a file outside the definition's folder.
package pipelines

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/pkg/pipeline"
)

//go:embed contract-review
var shipped embed.FS

//go:embed documents/cuad-worldwide-reseller.txt
var sampleContract string

// file is the name of a shipped definition's main file, in a folder of the definition's name.
const file = "pipeline.yaml"

// Shipped names the definitions in the binary.
func Shipped() []string {
	entries, err := shipped.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("list the shipped pipelines: %v", err)) // they are part of the binary
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// SampleContract is the contract that ships with Holdfast: a reseller agreement from CUAD v1 (The Atticus Project,
// CC BY 4.0), byte for byte.
func SampleContract() string { return sampleContract }

// Open is Load for a shipped name and LoadFile for anything that looks like a file. An empty profile is the
// definition's first.
func Open(nameOrPath, profile string) (pipeline.Definition, error) {
	if slices.Contains(Shipped(), nameOrPath) {
		return Load(nameOrPath, profile)
	}
	if looksLikeFile(nameOrPath) {
		return LoadFile(nameOrPath, profile)
	}
	return pipeline.Definition{}, unknownPipeline(nameOrPath)
}

// Load is a shipped definition in one of its profiles.
func Load(name, profile string) (pipeline.Definition, error) {
	if !slices.Contains(Shipped(), name) {
		return pipeline.Definition{}, unknownPipeline(name)
	}
	folder, err := fs.Sub(shipped, name)
	if err != nil {
		return pipeline.Definition{}, fmt.Errorf("open pipeline %s: %w", name, err)
	}
	return load(folder, file, profile, func(file string) string { return path.Join(name, file) })
}

// LoadFile is the definition in a YAML file; the prompts, schemas and lists it names are files beside it.
func LoadFile(name, profile string) (pipeline.Definition, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return pipeline.Definition{}, fmt.Errorf("there is no pipeline file %s; the shipped pipelines are %s",
			name, strings.Join(Shipped(), ", "))
	}
	if err != nil {
		return pipeline.Definition{}, fmt.Errorf("open pipeline file: %w", err)
	}
	if info.IsDir() {
		return pipeline.Definition{}, fmt.Errorf("%s is a folder; name the YAML file in it, for example %s",
			name, filepath.Join(name, file))
	}
	folder := filepath.Dir(name)
	show := func(file string) string { return filepath.Join(folder, filepath.FromSlash(file)) }
	return load(os.DirFS(folder), filepath.Base(name), profile, show)
}

func looksLikeFile(s string) bool {
	if strings.HasSuffix(s, ".yaml") || strings.HasSuffix(s, ".yml") || strings.ContainsAny(s, `/\`) {
		return true
	}
	_, err := os.Stat(s)
	return err == nil
}

func unknownPipeline(name string) error {
	return fmt.Errorf("there is no pipeline %q; the shipped ones are %s, and a file of your own ends in .yaml",
		name, strings.Join(Shipped(), ", "))
}
