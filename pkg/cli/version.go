package cli

import (
	"fmt"
	"runtime/debug"
)

type versionCmd struct{}

// Run says which build this is.
func (c *versionCmd) Run(a *app) error {
	_, err := fmt.Fprintln(a.out, version())
	return err
}

// version is what the build knows of itself: a release, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "holdfast, of an unknown build"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	line := "holdfast " + info.Main.Version
	if commit := settings["vcs.revision"]; commit != "" {
		line += fmt.Sprintf(", commit %.12s of %s", commit, settings["vcs.time"])
	}
	if settings["vcs.modified"] == "true" {
		line += ", with changes"
	}
	return line + ", " + info.GoVersion
}
