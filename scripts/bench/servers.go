package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a database that the bench started for an anchor, in a folder of its own, on a port of 127.0.0.1.
type server struct {
	name    string
	address string
	dir     string
	cmd     *exec.Cmd
}

// errMissing says that a server's program is not installed.
var errMissing = errors.New("is not installed")

// find is the program in PATH, or where Debian puts it.
func find(name string, elsewhere ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, pattern := range elsewhere {
		found, _ := filepath.Glob(pattern)
		if len(found) > 0 {
			return slices.Max(found), nil
		}
	}
	return "", fmt.Errorf("%s %w", name, errMissing)
}

// asOther runs a command as the user postgres where this is root, since Postgres refuses to be root's.
func asOther(cmd *exec.Cmd, dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	cmd.Dir = dir
	return os.Chown(dir, uid, gid)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// startPostgres starts one whose commits survive a crash of the server's process, as SQLite's do with synchronous NORMAL.
func startPostgres(ctx context.Context) (*server, error) {
	initdb, err := find("initdb", "/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return nil, fmt.Errorf("postgres %w: apt-get install postgresql", errMissing)
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-pg-")
	if err != nil {
		return nil, err
	}
	s := &server{name: "postgres", dir: dir}
	data := filepath.Join(dir, "data")
	cmd := exec.CommandContext(ctx, initdb, "-D", data, "-A", "trust", "-U", "bench", "-E", "UTF8")
	if err := asOther(cmd, dir); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), s.stop())
	}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.cmd = exec.CommandContext(ctx, filepath.Join(filepath.Dir(resolved(initdb)), "postgres"), "-D", data, "-p", strconv.Itoa(port), "-k", dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "synchronous_commit=off", "-c", "max_connections=200")
	if err := asOther(s.cmd, dir); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.address = fmt.Sprintf("postgres://bench@127.0.0.1:%d/postgres?sslmode=disable&pool_max_conns=32", port)
	return s, s.begin(ctx, port)
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// startRedis starts one that appends every write to its log and flushes it each second.
func startRedis(ctx context.Context) (*server, error) {
	path, err := find("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis %w: apt-get install redis-server", errMissing)
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-redis-")
	if err != nil {
		return nil, err
	}
	s := &server{name: "redis", dir: dir}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.cmd = exec.CommandContext(ctx, path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
	s.address = fmt.Sprintf("127.0.0.1:%d", port)
	return s, s.begin(ctx, port)
}

// begin starts the program and waits until its port answers.
func (s *server) begin(ctx context.Context, port int) error {
	log, err := os.Create(filepath.Join(s.dir, "server.log"))
	if err != nil {
		return errors.Join(err, s.stop())
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return errors.Join(err, s.stop())
	}
	for range 100 {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			_ = conn.Close()
			return sleep(ctx, time.Second) // Postgres listens before it is ready
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return errors.Join(err, s.stop())
		}
	}
	text, _ := os.ReadFile(log.Name())
	return errors.Join(fmt.Errorf("%s does not answer: %s", s.name, strings.TrimSpace(string(text))), s.stop())
}

// stop ends the server and removes its folder.
func (s *server) stop() error {
	if s == nil {
		return nil
	}
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGINT) // both shut down fast on it
		_ = s.cmd.Wait()
	}
	return os.RemoveAll(s.dir)
}
