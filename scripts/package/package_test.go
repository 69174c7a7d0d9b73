package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheSameProgramGivesTheSameZip(t *testing.T) {
	program := []byte(strings.Repeat("program ", 10_000))
	var zips [2][]byte
	for i := range zips {
		dir := t.TempDir()
		path := filepath.Join(dir, "work")
		if err := os.WriteFile(path, program, os.FileMode(0o600+0o155*i)); err != nil { // neither mode nor time of the file is in it
			t.Fatal(err)
		}
		if err := os.Chtimes(path, epoch.AddDate(30+i, 0, 0), epoch.AddDate(30+i, 0, 0)); err != nil {
			t.Fatal(err)
		}
		if err := zipFile(path+".zip", path); err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(path + ".zip")
		if err != nil {
			t.Fatal(err)
		}
		zips[i] = body
	}
	if !bytes.Equal(zips[0], zips[1]) {
		t.Error("two zips of one program differ")
	}
	z, err := zip.NewReader(bytes.NewReader(zips[0]), int64(len(zips[0])))
	if err != nil {
		t.Fatal(err)
	}
	if len(z.File) != 1 || z.File[0].Name != "bootstrap" || z.File[0].Mode() != 0o755 || !z.File[0].Modified.Equal(epoch) {
		t.Errorf("got %+v, want bootstrap alone, executable, of 1980", z.File)
	}
	f, err := z.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(f); err != nil || !bytes.Equal(body, program) {
		t.Errorf("got %d bytes (%v)", len(body), err)
	}
}

func TestWhatIsTooLargeIsTold(t *testing.T) {
	if err := tooLarge([]artifact{{name: "work", bytes: limits["work"]}, {name: "control", bytes: 1 << 30}}); err != nil {
		t.Error(err)
	}
	if err := tooLarge([]artifact{{name: "work", path: "dist/work.zip", bytes: limits["work"] + 1}}); err == nil || !strings.Contains(err.Error(), "dist/work.zip") {
		t.Errorf("got %v, want which", err)
	}
}

// What a process carries is paid for at every cold start, and is what it could do if it were taken over.
func TestAProcessCarriesOnlyWhatItNeeds(t *testing.T) {
	reader := []string{"holdfast/pkg/ingest", "github.com/klippa-app/go-pdfium", "github.com/tetratelabs/wazero"}
	machine := []string{"modernc.org/sqlite", "holdfast/pkg/sqlitestore", "holdfast/pkg/cli", "github.com/alecthomas/kong", "holdfast/pkg/command", "holdfast/pkg/pipelinetest"}
	asked := []string{"holdfast/pkg/api", "holdfast/pkg/report"}
	for name, not := range map[string][]string{
		"control": {machine[0], machine[1], machine[2], machine[3], machine[4], machine[5], asked[0], asked[1]},
		"work":    append(append(append([]string(nil), reader...), machine...), asked...),
		"reap":    append(append(append([]string(nil), reader...), machine...), asked...),
		"api":     append(append([]string(nil), reader...), machine...),
		"workd":   append(append([]string(nil), machine...), asked...),
	} {
		out, err := exec.Command("go", "list", "-deps", "../../functions/"+name).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for dep := range strings.Lines(string(out)) {
			dep = strings.TrimSpace(dep)
			for _, other := range not {
				if dep == other || strings.HasPrefix(dep, other+"/") {
					t.Errorf("functions/%s carries %s", name, dep)
				}
			}
		}
	}
}
