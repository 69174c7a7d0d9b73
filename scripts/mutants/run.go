package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// verdict is what became of a mutant.
type verdict struct {
	noticed bool
	says    string
}

func (v verdict) word() string {
	if v.noticed {
		return "noticed"
	}
	return "SURVIVED"
}

// one builds a mutant in a scratch folder and runs its test.
func (r runner) one(ctx context.Context, scratch string, m mutant) verdict {
	overlay, err := r.overlay(scratch, m)
	if err != nil {
		return verdict{says: err.Error()}
	}
	failed, output := r.test(ctx, m.test, overlay)
	switch {
	case ctx.Err() != nil:
		return verdict{says: "interrupted"}
	case !failed:
		return verdict{says: "every test passed"}
	case strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]"):
		return verdict{says: "does not compile: " + firstLine(output)}
	}
	if r.show != nil {
		for line := range strings.Lines(output) {
			if r.show.MatchString(line) {
				return verdict{noticed: true, says: strings.TrimSpace(line)}
			}
		}
	}
	return verdict{noticed: true, says: noticedBy(output)}
}

// overlay writes the changed file and the map that puts it in the place of the real one.
func (r runner) overlay(scratch string, m mutant) (string, error) {
	real, err := filepath.Abs(filepath.Join(r.root, m.file))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(real)
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.where, err)
	}
	changed, err := m.apply(string(source))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", err
	}
	fake, err := filepath.Abs(filepath.Join(scratch, filepath.Base(m.file)))
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]map[string]string{"Replace": {real: fake}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(fake, []byte(changed), 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, body, 0o600)
}

// test runs go test; overlay may be empty.
func (r runner) test(ctx context.Context, test []string, overlay string) (failed bool, output string) {
	args := []string{"test", "-count=1", "-vet=off", "-failfast", "-timeout=" + r.timeout.String()}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, test...)...)
	cmd.Dir = r.root
	body, err := cmd.CombinedOutput()
	return err != nil, string(body)
}

var failures = regexp.MustCompile(`(?m)^\s*--- FAIL: (.+) \(`)

// noticedBy is the most precise name of what failed.
func noticedBy(output string) string {
	best := ""
	for _, match := range failures.FindAllStringSubmatch(output, -1) {
		if len(match[1]) > len(best) {
			best = match[1]
		}
	}
	switch {
	case best != "":
		return best
	case strings.Contains(output, "test timed out"):
		return "a test that did not end"
	}
	return firstLine(output)
}

func firstLine(output string) string {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return line
		}
	}
	return ""
}
