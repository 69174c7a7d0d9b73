#!/usr/bin/env bash
# Runs a command beside a dynoxide of its own, in memory, and ends that with it: for tests of the store alone, which are
# several times faster without LocalStack's gateway before it.
#   localstack/dynoxide.sh COMMAND...      with AWS_ENDPOINT_URL_DYNAMODB set
# Settings, all by environment: DYNOXIDE and LOCALSTACK_CACHE as in up.sh, which installs it; DYNOXIDE_PORT, default 4577.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${LOCALSTACK_CACHE:-$here/.cache}
binary=${DYNOXIDE:-$(command -v dynoxide || echo "$cache/bin/dynoxide")}
port=${DYNOXIDE_PORT:-4577}
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
fail() { echo "dynoxide: $*" >&2; exit 1; }

[[ -x $binary ]] || fail "there is none at $binary: make localstack installs it, or set DYNOXIDE"
if answers; then fail "something else answers at port $port: stop it, or set DYNOXIDE_PORT"; fi
"$binary" serve --host 127.0.0.1 --port "$port" --log quiet &
pid=$!
trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null || true' EXIT
for _ in $(seq 100); do
  kill -0 "$pid" 2>/dev/null || fail "it did not start"
  if answers; then
    AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:$port "$@"
    exit
  fi
  sleep 0.1
done
fail "it does not answer at port $port"
