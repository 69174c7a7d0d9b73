package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"holdfast/pkg/pipeline"
)

// What the commands assume where a person names nothing else.
const (
	defaultStore  = ".holdfast"
	defaultTenant = "local"
	storeVar      = "HOLDFAST_STORE"
	tenantVar     = "HOLDFAST_TENANT"

	defaultStack = "holdfast"
	backendVar   = "HOLDFAST_BACKEND"
	endpointVar  = "HOLDFAST_ENDPOINT"
	stackVar     = "HOLDFAST_STACK"
	bucketVar    = "HOLDFAST_BUCKET"
)

// command is what a person may type next: this program as it was typed, on this store, with these settings. What the
// shell's variables or the defaults say already is left out.
func (a *app) command(words ...string) string { return shellWords(a.words(words...)) }

func (a *app) words(words ...string) []string {
	all := append([]string{a.typed()}, words...)
	flag := func(name, value, said string) {
		if value != said {
			all = append(all, name, value)
		}
	}
	flag("--backend", cmp.Or(a.Backend, embeddedBackend), cmp.Or(os.Getenv(backendVar), embeddedBackend))
	if a.isAWS() {
		flag("--stack", a.Stack, cmp.Or(os.Getenv(stackVar), defaultStack))
		flag("--endpoint", a.Endpoint, os.Getenv(endpointVar))
		flag("--bucket", a.Bucket, os.Getenv(bucketVar))
	} else {
		flag("--store", a.Store, cmp.Or(os.Getenv(storeVar), defaultStore))
	}
	flag("--tenant", a.Tenant, cmp.Or(os.Getenv(tenantVar), defaultTenant))
	flag("--policy", a.Policy, "")
	return all
}

// shellWords are the words as a shell reads them back.
func shellWords(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$&;()<>|*?[]#~`!") {
			word = quoted(word)
		}
		all[i] = word
	}
	return strings.Join(all, " ")
}

// quoted is a word as a shell reads it back.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// workerFor is the command that starts a worker for jobs of a model or handler; more are flags that only some need.
func (a *app) workerFor(model string, more ...string) string {
	words := []string{"worker"}
	name, _, _ := strings.Cut(model, "@")
	switch {
	case model == pipeline.ExecHandler:
		words = append(words, "--allow-exec")
	case strings.HasPrefix(name, openaiPrefix):
		words = append(words, "--model", name)
	}
	return a.command(append(words, more...)...)
}

// splits says who splits a document that waits for it: the functions of a deployment, which nobody has to start, or a
// worker that is started so.
func (a *app) splits(worker string) string {
	if a.isAWS() {
		return "what is deployed of the stack (functions, workd) splits it, or a worker, started with: " + worker
	}
	return "a worker splits it: " + worker
}

// typeable puts into a text of the steps, which know no flags, the command that can be typed here.
func (a *app) typeable(text string) string {
	text = strings.ReplaceAll(text, pipeline.WorkerFor(pipeline.ExecHandler), a.workerFor(pipeline.ExecHandler))
	_, more, _ := strings.Cut(pipeline.WorkerFor(""), "holdfast worker")
	return strings.ReplaceAll(text, pipeline.WorkerFor(""), a.workerFor("")+more)
}

// typeableSetbacks is typeable of what holds a job back.
func (a *app) typeableSetbacks(all []pipeline.Setback) []pipeline.Setback {
	for i := range all {
		all[i].Cause = a.typeable(all[i].Cause)
	}
	return all
}

// typed is how this program was called; by its name where that was a file of `go run`, which is gone after it.
func (a *app) typed() string {
	self := os.Args[0]
	if self == "" || strings.Contains(self, "go-build") || strings.HasSuffix(self, ".test") {
		return a.program.Name
	}
	if filepath.IsAbs(self) {
		if dir, err := os.Getwd(); err == nil {
			if near, err := filepath.Rel(dir, self); err == nil && !strings.HasPrefix(near, "..") {
				return "./" + near
			}
		}
	}
	return self
}
