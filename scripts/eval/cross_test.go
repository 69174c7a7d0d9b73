package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/scripts/cuad"
)

func TestCrossed(t *testing.T) {
	weights, err := os.ReadFile(filepath.Join("..", "..", "pkg", "offline", "clauses.bin.gz"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(t *testing.T, lists map[string]string) string {
		t.Helper()
		dir := t.TempDir()
		for name, list := range lists {
			for file, body := range map[string][]byte{name + ".bin.gz": weights, name + ".txt": []byte(list)} {
				if err := os.WriteFile(filepath.Join(dir, file), body, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		return dir
	}
	contracts := []cuad.Contract{{Name: "A"}, {Name: "B"}, {Name: "C"}}
	t.Run("each contract is measured by weights that were made without it", func(t *testing.T) {
		turns, err := crossed(put(t, map[string]string{"without-0": "B\nC\n", "without-1": "# names\nA\n"}), contracts)
		if err != nil {
			t.Fatal(err)
		}
		models := map[string]any{}
		for _, by := range turns {
			models[by.contract.Name] = by.model
		}
		if len(turns) != 3 || models["A"] == models["B"] || models["B"] != models["C"] {
			t.Errorf("got %d turns, %v", len(turns), models)
		}
	})
	t.Run("a contract that all weights have seen, or two have not, is an error", func(t *testing.T) {
		for _, lists := range []map[string]string{
			{"without-0": "A\nB\nC\n", "without-1": "A\n"},
			{"without-0": "A\nB\n", "without-1": "A\n"},
		} {
			if _, err := crossed(put(t, lists), contracts); err == nil || !strings.Contains(err.Error(), "make them again") {
				t.Errorf("%v: got %v, want an error that says what to do", lists, err)
			}
		}
	})
	t.Run("a folder without weights is an error that names the command", func(t *testing.T) {
		if _, err := crossed(t.TempDir(), contracts); err == nil || !strings.Contains(err.Error(), "-parts") {
			t.Errorf("got %v", err)
		}
	})
}
