package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// What the commands assume where a person names nothing else.
const (
	defaultStore  = ".holdfast"
	defaultTenant = "local"
	storeVar      = "HOLDFAST_STORE"
	tenantVar     = "HOLDFAST_TENANT"
)

// command is what a person may type next: this program as it was typed, on this store.
func (a *app) command(words ...string) string {
	all := append([]string{a.typed()}, words...)
	if os.Getenv("HOLDFAST_BACKEND") == "" {
		all = append(all, a.args()...) // those of another backend than a folder
	}
	if a.Store != defaultStore && a.Store != os.Getenv(storeVar) {
		all = append(all, "--store", a.Store)
	}
	if a.Tenant != defaultTenant && a.Tenant != os.Getenv(tenantVar) {
		all = append(all, "--tenant", a.Tenant)
	}
	for i, word := range all {
		if strings.ContainsAny(word, " \t'\"\\$&;()") {
			all[i] = quoted(word)
		}
	}
	return strings.Join(all, " ")
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
