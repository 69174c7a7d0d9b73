// Command holdfast reviews documents with thousands of LLM calls and loses none of them. See holdfast --help.
package main

import (
	"os"

	"holdfast/pkg/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
