#!/usr/bin/env bash
# Runs workd as a process of this machine on what was deployed onto LocalStack, with the environment that the stack puts
# out for it (WorkdEnvironment): alone where nothing else works (-c workers=fargate), else beside the functions.
#   STACK     the deployment's name (default: holdfast)
# It runs until Ctrl-C, and then drains.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stack=${STACK:-holdfast}
outputs=$root/cdk/cdk.out/outputs.json
workd=$root/dist/$(go env GOARCH)/image/workd
fail() { echo "workd: $*" >&2; exit 1; }

[[ -f $outputs && -x $workd ]] || fail "nothing was deployed from here: make deploy-local"
unset HOLDFAST_STACK
while IFS= read -r -d '' variable; do export "$variable"; done < <(node -e '
  const put = require(process.argv[1])[process.argv[2]] || { WorkdEnvironment: "{}" };
  for (const [name, value] of Object.entries(JSON.parse(put.WorkdEnvironment))) process.stdout.write(`${name}=${value}\0`);
' "$outputs" "$stack-workers")
[[ -n ${HOLDFAST_STACK:-} ]] || fail "no stack $stack was deployed from here: make deploy-local STACK=$stack"
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 HOLDFAST_HEALTH_ADDRESS=127.0.0.1:0
exec "$workd"
