// Command package builds what is deployed: a zip for each function, and for the polling process the folder that its
// image is built from.
//
// The same sources give the same bytes, wherever and whenever they are built: a deployment changes only what has
// changed. -check proves it: it builds everything again from a copy in another folder, with nothing cached, and
// compares.
//
//	go run ./scripts/package                    arm64, as it is deployed, into dist/arm64
//	go run ./scripts/package -arch amd64        for LocalStack on this machine
//	go run ./scripts/package -check
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// functions are what Lambda starts, and daemon is what Fargate does.
var functions = []string{"control", "work", "reap", "api"}

const daemon = "workd"

// limits are the most that a zip may have, in bytes: a function that starts often has to be small.
var limits = map[string]int64{"work": 8 << 20, "reap": 8 << 20}

func main() {
	arch := flag.String("arch", "arm64", "processor that it is for: arm64 or amd64")
	out := flag.String("out", "dist", "folder; each processor has one in it")
	check := flag.Bool("check", false, "build twice, from two folders, and compare")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *arch, *out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arch, out string, check bool) error {
	if arch != "arm64" && arch != "amd64" {
		return fmt.Errorf("-arch %s: write arm64 or amd64", arch)
	}
	built, err := buildAll(ctx, ".", arch, filepath.Join(out, arch), os.Environ())
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for _, a := range built {
		fmt.Fprintf(table, "%s\t%.2f MB\t%s\n", a.path, float64(a.bytes)/1e6, a.sum)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if arch == "arm64" { // what is deployed; built for this machine the same is a little larger
		if err := tooLarge(built); err != nil {
			return err
		}
	}
	if !check {
		return nil
	}
	return again(ctx, arch, built)
}

// artifact is a file that was built.
type artifact struct {
	name, path, sum string
	bytes           int64
}

func tooLarge(built []artifact) error {
	for _, a := range built {
		if limit := limits[a.name]; limit > 0 && a.bytes > limit {
			return fmt.Errorf("%s has %d bytes, and %d is the limit: see what it carries with go list -deps ./functions/%s", a.path, a.bytes, limit, a.name)
		}
	}
	return nil
}

// again builds from a copy of the sources with an empty cache, and compares.
func again(ctx context.Context, arch string, first []artifact) error {
	elsewhere, err := os.MkdirTemp("", "holdfast-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(elsewhere)
	root := filepath.Join(elsewhere, "another", "folder")
	for _, part := range []string{"go.mod", "go.sum", "pkg", "functions"} {
		if err := copyTree(part, filepath.Join(root, part)); err != nil {
			return fmt.Errorf("copy the sources: %w", err)
		}
	}
	env := append(os.Environ(), "GOCACHE="+filepath.Join(elsewhere, "cache"))
	second, err := buildAll(ctx, root, arch, filepath.Join(root, "dist"), env)
	if err != nil {
		return err
	}
	for i, a := range first {
		if second[i].sum != a.sum {
			return fmt.Errorf("%s was built twice, and is %s and %s: something of where or when it was built is in it", a.name, a.sum, second[i].sum)
		}
	}
	fmt.Println("built twice, the same bytes")
	return nil
}

func copyTree(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	body, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, body, 0o644)
}

// buildAll builds from the sources in root.
func buildAll(ctx context.Context, root, arch, out string, env []string) ([]artifact, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	var built []artifact
	for _, name := range append(append([]string(nil), functions...), daemon) {
		program := filepath.Join(out, name)
		if name == daemon {
			program = filepath.Join(out, "image", name)
			if err := copyTree(filepath.Join(root, "functions", daemon, "Dockerfile"), filepath.Join(out, "image", "Dockerfile")); err != nil {
				return nil, err
			}
		}
		if err := build(ctx, root, arch, name, program, env); err != nil {
			return nil, err
		}
		path := program
		if name != daemon {
			path = program + ".zip"
			if err := zipFile(path, program); err != nil {
				return nil, fmt.Errorf("zip %s: %w", name, err)
			}
			if err := os.Remove(program); err != nil {
				return nil, err
			}
		}
		sum, size, err := sumOf(path)
		if err != nil {
			return nil, err
		}
		built = append(built, artifact{name, path, sum, size})
	}
	return built, nil
}

// build compiles one program so that nothing of this machine is in it.
func build(ctx context.Context, root, arch, name, to string, env []string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", to, "./functions/"+name)
	cmd.Dir = root
	cmd.Env = append(env, "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build functions/%s: %w\n%s", name, err, said.String())
	}
	return nil
}
