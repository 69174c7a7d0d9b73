#!/usr/bin/env bash
# Stops the LocalStack that up.sh started, by its own pid; dynoxide and the functions' processes end with it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${LOCALSTACK_CACHE:-$here/.cache}
[[ -f $cache/pid ]] || { echo "LocalStack is not running (no $cache/pid)"; exit 0; }
pid=$(cat "$cache/pid")
if ! grep -qa run.py "/proc/$pid/cmdline" 2>/dev/null && ! ps -p "$pid" -o args= 2>/dev/null | grep -q run.py; then
  rm -f "$cache/pid"
  echo "LocalStack is not running (process $pid is gone)"
  exit 0
fi
kill "$pid"
for _ in $(seq 40); do
  kill -0 "$pid" 2>/dev/null || { rm -f "$cache/pid"; echo "LocalStack is stopped"; exit 0; }
  sleep 0.25
done
kill -KILL "$pid" 2>/dev/null || true
rm -f "$cache/pid"
echo "LocalStack did not stop within 10 s and was killed"
