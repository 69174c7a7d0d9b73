#!/usr/bin/env bash
# Deploys both stacks onto the LocalStack that runs on this machine: `make deploy-local`.
#   STACK     the deployment's name (default: holdfast)
#   CDK_APP   the CDK program (default: bin/holdfast-cdk)
#   further arguments go to cdk deploy, e.g. -c workers=both -c image=local
# It needs bin/holdfast-cdk (make cdk-app), the functions' zips for this machine (make functions) and Node.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stack=${STACK:-holdfast}
port=${LOCALSTACK_PORT:-4566}
url=http://127.0.0.1:$port
fail() { echo "deploy-local: $*" >&2; exit 1; }

curl --silent --fail --max-time 2 "$url/_localstack/health" >/dev/null || fail "LocalStack does not answer at $url: make localstack"
app=${CDK_APP:-$root/bin/holdfast-cdk}
[[ -x $app ]] || fail "there is no $app: make cdk-app"
command -v npm >/dev/null || fail "npm is missing: install Node 20 or later"
cd "$root/cdk"
if ! cmp -s package-lock.json node_modules/.holdfast-lock; then
  npm ci --no-fund --no-audit --silent
  cp package-lock.json node_modules/.holdfast-lock
fi
case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "functions run here as processes of this machine, and $(uname -m) is none of amd64 and arm64" ;;
esac
export AWS_ENDPOINT_URL=$url AWS_ENDPOINT_URL_S3=$url AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export CDK_DISABLE_CLI_TELEMETRY=true JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20
context=(-c "stack=$stack" -c "arch=$arch" -c "endpoint=$url" -c "bucket=$stack-blobs")
cdklocal=$root/cdk/node_modules/.bin/cdklocal

# What every deployment to an account needs: once for each LocalStack, since it keeps nothing. From a folder that has no
# app, which would be asked for nothing but where it is to be deployed.
bootstrapped() {
  curl --silent --fail --max-time 10 --data 'Action=DescribeStacks&Version=2010-05-15&StackName=CDKToolkit' \
    --header 'Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/cloudformation/aws4_request, SignedHeaders=host, Signature=0' \
    "$url/" | grep -q '_COMPLETE</StackStatus>'
}
bootstrapped || (cd "$root/localstack" && "$cdklocal" --no-notices bootstrap aws://000000000000/us-east-1)
"$cdklocal" --no-notices --app "$app" deploy --all --require-approval never --progress events --outputs-file cdk.out/outputs.json "${context[@]}" "$@"
echo "deployed: stack $stack at $url"
echo "  bin/holdfast run FILE --backend aws --endpoint $url --stack $stack --workers 0"
