// Command invoke runs a function of functions/ on one event, with AWS's own emulator of the Lambda runtime, and prints
// what it logs and what it answers.
//
//	go run ./scripts/invoke work                        on events/work.json
//	go run ./scripts/invoke api events/api-submit.json
//
// Without any setting state lives in .holdfast, and the model is the one that asks nobody. Each variable of a function's
// environment that is set here is passed on: with HOLDFAST_BACKEND=aws and HOLDFAST_ENDPOINT=http://127.0.0.1:4566 the
// same function works on LocalStack (holdfast --backend aws admin create makes the stack there).
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/pkg/config"
	"holdfast/pkg/pipeline"
)

// emulator is AWS's Lambda runtime interface emulator, at the version that is known to work.
const (
	emulator        = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie"
	emulatorVersion = "v0.0.0-20261030222936-bef5c4ba774d"
)

func main() {
	bin := flag.String("bin", "bin", "folder for the emulator and the function")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *bin, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "invoke:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, args []string) error {
	process, path, err := parse(args)
	if err != nil {
		return err
	}
	event, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	rie, err := install(ctx, bin)
	if err != nil {
		return err
	}
	program := filepath.Join(bin, "functions", string(process))
	build := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc embedded", "-o", program, "./functions/"+string(process))
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build functions/%s: %w", process, err)
	}
	answer, took, err := invoke(ctx, rie, program, process, event)
	if err != nil {
		return err
	}
	return show(os.Stdout, answer, took)
}

func parse(args []string) (process config.Process, path string, err error) {
	wrong := errors.New("name a function (control, work, reap or api) and, unless it is events/FUNCTION.json, the event's file")
	if len(args) < 1 || len(args) > 2 {
		return "", "", wrong
	}
	process = config.Process(args[0])
	if config.Timeout(process, pipeline.DefaultPolicy()) == 0 {
		return "", "", wrong
	}
	path = filepath.Join("events", args[0]+".json")
	if process == config.API {
		path = filepath.Join("events", "api-status.json")
	}
	if len(args) == 2 {
		path = args[1]
	}
	return process, path, nil
}

// install makes the emulator, once.
func install(ctx context.Context, bin string) (string, error) {
	path := filepath.Join(bin, "aws-lambda-rie")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	fmt.Fprintln(os.Stderr, "compiling the emulator, once ...")
	cmd := exec.CommandContext(ctx, "go", "install", emulator+"@"+emulatorVersion)
	cmd.Env = append(os.Environ(), "GOBIN="+bin)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("install %s: %w", emulator, err)
	}
	return path, nil
}

// invoke starts the emulator with the program behind it, on ports of the loopback alone, and hands it one event.
func invoke(ctx context.Context, rie, program string, process config.Process, event []byte) (answer []byte, took time.Duration, err error) {
	front, err := freePort()
	if err != nil {
		return nil, 0, err
	}
	runtime, err := freePort()
	if err != nil {
		return nil, 0, err
	}
	cmd := exec.Command(rie, "--runtime-interface-emulator-address", front, "--runtime-api-address", runtime, program)
	cmd.Env = environment(process, os.Environ())
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // its group: the function too
		_ = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}()
	for n := 0; ; n++ {
		began := time.Now()
		answer, err = post(ctx, "http://"+front+"/2015-03-31/functions/function/invocations", event)
		if !errors.Is(err, syscall.ECONNREFUSED) || n == 100 {
			return answer, time.Since(began), err
		}
		select {
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// environment is this program's, with what a function needs and nobody set.
func environment(process config.Process, set []string) []string {
	timeout := int(config.Timeout(process, pipeline.DefaultPolicy()).Seconds())
	defaults := map[string]string{
		config.StackVar: "holdfast", config.BackendVar: config.EmbeddedBackend, config.ModelVar: config.OfflineModel,
		"AWS_LAMBDA_FUNCTION_NAME": config.FunctionName("holdfast", process), "AWS_LAMBDA_FUNCTION_TIMEOUT": strconv.Itoa(timeout),
		"AWS_REGION": "us-east-1",
	}
	for _, pair := range set {
		name, _, _ := strings.Cut(pair, "=")
		delete(defaults, name)
	}
	all := append([]string(nil), set...)
	for name, value := range defaults {
		all = append(all, name+"="+value)
	}
	return all
}

func post(ctx context.Context, url string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// show prints an answer for a person: JSON with its lines, and the body of an HTTP answer as what it is. A function's
// error is an error.
func show(w io.Writer, answer []byte, took time.Duration) error {
	var failed struct {
		ErrorMessage string `json:"errorMessage"`
		ErrorType    string `json:"errorType"`
	}
	if json.Unmarshal(answer, &failed) == nil && failed.ErrorType != "" {
		return fmt.Errorf("the function failed: %s: %s", failed.ErrorType, failed.ErrorMessage)
	}
	fmt.Fprintf(w, "answered in %d ms\n", took.Milliseconds())
	var http struct {
		StatusCode int               `json:"statusCode"`
		Headers    map[string]string `json:"headers"`
		Body       string            `json:"body"`
	}
	if json.Unmarshal(answer, &http) == nil && http.StatusCode != 0 {
		fmt.Fprintf(w, "%d %s\n", http.StatusCode, http.Headers["content-type"])
		answer = []byte(http.Body)
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, answer, "", "  ") == nil {
		answer = pretty.Bytes()
	}
	_, err := fmt.Fprintf(w, "%s\n", bytes.TrimSpace(answer))
	return err
}
