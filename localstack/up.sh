#!/usr/bin/env bash
# Starts LocalStack and dynoxide on the loopback, without Docker, and waits until they answer. Installs them first if
# they are not there: python packages by pip, dynoxide by cargo (about 5 CPU-minutes, once).
#   localstack/up.sh            `make localstack`
#   localstack/down.sh          `make localstack-down`
# Settings, all by environment:
#   LOCALSTACK_CACHE  folder of the installs, the data, the log and the pid (default: localstack/.cache)
#   LOCALSTACK_PORT   default 4566
#   DYNOXIDE          a dynoxide binary, instead of compiling one
#   PYTHON            default python3; LocalStack 4.9.2 wants 3.9 to 3.13
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${LOCALSTACK_CACHE:-$here/.cache}
port=${LOCALSTACK_PORT:-4566}
python=${PYTHON:-python3}
dynoxide_version=3.2.0 # of the crate
dynoxide_says=1.5.0    # what that crate's program calls itself: its product has a version of its own
url=http://127.0.0.1:$port

fail() { echo "localstack: $*" >&2; exit 1; }
healthy() { curl --silent --fail --max-time 2 "$url/_localstack/health" >/dev/null; }
running() { [[ -f $cache/pid ]] && kill -0 "$(cat "$cache/pid")" 2>/dev/null; }

command -v curl >/dev/null || fail "curl is missing: install it"
command -v "$python" >/dev/null || fail "$python is missing: install Python 3.9 or later, or set PYTHON"
mkdir -p "$cache"
if running; then
  healthy || fail "process $(cat "$cache/pid") is running and does not answer at $url: make localstack-down, then look at $cache/log"
  echo "LocalStack is already running at $url"
  exit 0
fi
if healthy; then fail "something else answers at $url: stop it, or set LOCALSTACK_PORT"; fi

if ! cmp -s "$here/requirements.txt" "$cache/requirements.txt"; then
  echo "localstack: installing $(head -1 "$here/requirements.txt") into $cache (once)"
  "$python" -m venv "$cache/venv" || fail "no virtual environment could be made: install python3-venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt" ||
    fail "pip could not install localstack/requirements.txt: is there a package index?"
  cp "$here/requirements.txt" "$cache/requirements.txt"
fi

export DYNOXIDE=${DYNOXIDE:-$(command -v dynoxide || echo "$cache/bin/dynoxide")}
if [[ ! -x $DYNOXIDE ]]; then
  command -v cargo >/dev/null || fail "there is no dynoxide at $DYNOXIDE and no cargo to compile it: install Rust, or set DYNOXIDE"
  echo "localstack: compiling dynoxide $dynoxide_version into $cache (once, some minutes)"
  cargo install dynoxide-rs --version "$dynoxide_version" --locked --root "$cache" \
    --no-default-features --features http-server,native-sqlite,cli || fail "dynoxide did not compile"
fi

# A folder for scratch of its own: one in common would go with whichever LocalStack of this machine stops first.
mkdir -p "$cache/tmp"
export TMPDIR=$cache/tmp
mkdir -p "$cache/bin" # where the tests look for it
[[ $DYNOXIDE -ef $cache/bin/dynoxide ]] || ln -sf "$(realpath "$DYNOXIDE")" "$cache/bin/dynoxide"
if [[ $("$DYNOXIDE" --version) != "dynoxide $dynoxide_says" ]]; then
  echo "localstack: $DYNOXIDE says $("$DYNOXIDE" --version); what was tested is dynoxide $dynoxide_says (crate $dynoxide_version)" >&2
fi

export LOCALSTACK_VOLUME_DIR=$cache/volume GATEWAY_LISTEN=127.0.0.1:$port
cd "$here"
setsid nohup "$cache/venv/bin/python" -B run.py >"$cache/log" 2>&1 </dev/null &
echo $! >"$cache/pid"
for _ in $(seq 240); do
  if healthy; then
    echo "LocalStack with $("$DYNOXIDE" --version) is ready at $url (log: $cache/log)"
    exit 0
  fi
  running || break
  sleep 0.5
done
tail -n 20 "$cache/log" >&2
running && "$here/down.sh"
fail "it did not come up; the whole log is $cache/log"
