package stacks_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/cxapi"
	"github.com/aws/jsii-runtime-go"

	"holdfast/cdk/stacks"
	"holdfast/cdk/template"
)

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// deployment is both stacks, as CloudFormation would get them.
type deployment struct {
	settings       stacks.Settings
	app            awscdk.App
	stacks         []awscdk.Stack
	state, workers template.Template
}

// deployed makes the stacks with settings such as "workers=both".
func deployed(t *testing.T, settings ...string) deployment {
	t.Helper()
	d := built(t, settings...)
	assembly := d.app.Synth(nil)
	d.state = parse(t, assembly, d.stacks[0])
	d.workers = parse(t, assembly, d.stacks[1])
	return d
}

// built makes the stacks and no templates of them yet.
func built(t *testing.T, settings ...string) deployment {
	t.Helper()
	read, err := stacks.Read(given(append([]string{"functions=" + zips(t)}, settings...)...))
	if err != nil {
		t.Fatal(err)
	}
	app := stacks.NewApp(t.TempDir())
	state, workers := stacks.New(app, read)
	return deployment{settings: read, app: app, stacks: []awscdk.Stack{state, workers}}
}

// given are settings as the command line hands them over.
func given(settings ...string) func(string) (string, bool) {
	set := map[string]string{}
	for _, each := range settings {
		key, value, _ := strings.Cut(each, "=")
		set[key] = value
	}
	return func(key string) (string, bool) { value, is := set[key]; return value, is }
}

func parse(t *testing.T, assembly cxapi.CloudAssembly, stack awscdk.Stack) template.Template {
	t.Helper()
	read, err := template.Load(*assembly.GetStackArtifact(stack.ArtifactId()).TemplateFullPath())
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// zips is a folder with a zip for each function.
func zips(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"control", "work", "reap", "api"} {
		file, err := os.Create(filepath.Join(folder, name+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		archive := zip.NewWriter(file)
		entry, err := archive.Create("bootstrap")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(entry, name)
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// variants are the deployments that every promise is checked of.
var variants = [][]string{
	nil,
	{"workers=fargate", "image=v1"},
	{"workers=both", "image=v1", "arch=amd64", "quota=400000", "max-cost=25", "alarm-address=ops@example.com", "zones=2"},
	{
		"workers=both", "image=v1", "public=true", "model=openai/large", "model-key-secret=arn:aws:secretsmanager:us-east-1:111122223333:secret:model-abc123",
		"jwt-issuer=https://tokens.example.com/", "jwt-audience=holdfast", "tenant-from=claim:sub",
	},
	{"workers=both", "image=v1", "vpc=vpc-0a1b2c3d", "subnets=subnet-0a1b2c3d,subnet-1a1b2c3d"},
}

// each runs a test of every variant.
func each(t *testing.T, test func(t *testing.T, d deployment)) {
	t.Helper()
	for _, settings := range variants {
		name := strings.Join(settings, " ")
		if name == "" {
			name = "as shipped"
		}
		t.Run(name, func(t *testing.T) { test(t, deployed(t, settings...)) })
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("%s: got %s, want %s", what, a, b)
	}
}
