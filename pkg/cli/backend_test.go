package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestWhereStateLives(t *testing.T) {
	store := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		name  string
		env   map[string]string
		args  []string
		want  int
		named string // what is told to leave out
	}{
		{"an endpoint without a backend is refused", nil, []string{"--endpoint", "http://127.0.0.1:1", "jobs"}, exitUsage, "--endpoint"},
		{"wherever it stands", nil, []string{"jobs", "--endpoint=http://127.0.0.1:1"}, exitUsage, "--endpoint"},
		{"so is a stack, even the usual one", nil, []string{"jobs", "--stack", defaultStack}, exitUsage, "--stack"},
		{"and a bucket", nil, []string{"status", "abc", "--bucket", "b"}, exitUsage, "--bucket"},
		{"and any of them beside the word for a folder", map[string]string{backendVar: awsBackend}, []string{"jobs", "--backend", embeddedBackend, "--stack", "s"}, exitUsage, "--stack"},
		{"an empty one says nothing", nil, []string{"jobs", "--endpoint", "", "--bucket="}, exitCompleted, ""},
		{
			"the shell's variables are not about this command",
			map[string]string{endpointVar: "http://127.0.0.1:1", stackVar: "s", bucketVar: "b"},
			[]string{"jobs"},
			exitCompleted, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			unsaid(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			code, out, errOut := holdfast(t, append([]string{"--store", store}, c.args...)...)
			if code != c.want {
				t.Fatalf("exit code %d, want %d: %s%s", code, c.want, out, errOut)
			}
			if c.named != "" && !strings.Contains(errOut, "add --backend aws, or leave "+c.named+" out") {
				t.Errorf("got %q, want what to do about %s", errOut, c.named)
			}
		})
	}
	t.Run("with aws, by a flag or by the shell, it is used", func(t *testing.T) {
		unsaid(t)
		args := []string{"--store", store, "--endpoint", "http://127.0.0.1:1", "--stack", "s", "--bucket", "b", "admin", "delete"}
		refuses := func(who string, args []string) {
			if code, _, errOut := holdfast(t, args...); code != exitUsage || !strings.Contains(errOut, "every job of stack s at http://127.0.0.1:1") {
				t.Errorf("%s: exit code %d, %q; want the refusal of admin delete, about that stack", who, code, errOut)
			}
		}
		refuses("a flag", append([]string{"--backend", awsBackend}, args...))
		t.Setenv(backendVar, awsBackend)
		refuses("the shell", args)
	})
}
