#!/usr/bin/env bash
# Writes the templates of several deployments and lets cfn-lint look at them. It installs cfn-lint first, once, into
# cdk/.venv (PYTHON names another Python). Every rule that is not asked for is named here with its reason.
set -euo pipefail
cd "$(dirname "$0")"
app=../bin/holdfast-cdk
[[ -x $app ]] || { echo "cdk/lint.sh: there is no $app: make cdk-app" >&2; exit 1; }
if ! cmp -s requirements.txt .venv/requirements.txt; then
  "${PYTHON:-python3}" -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
  cp requirements.txt .venv/requirements.txt
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir "$out/zips"
for name in control work reap api; do # what is in them does not matter here
  python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1], "w").writestr("bootstrap", "")' "$out/zips/$name.zip"
done
n=0
while read -r context; do
  n=$((n + 1))
  CDK_OUTDIR=$out/$n CDK_CONTEXT_JSON=$(sed "s|ZIPS|$out/zips|" <<<"$context") "$app" 2>"$out/log" || { cat "$out/log" >&2; exit 1; }
done <<'END'
{"functions": "ZIPS"}
{"functions": "ZIPS", "workers": "fargate", "image": "v1"}
{"functions": "ZIPS", "workers": "both", "image": "v1", "arch": "amd64", "quota": "400000", "alarm-address": "ops@example.com", "zones": "2"}
{"functions": "ZIPS", "workers": "both", "image": "v1", "public": "true", "jwt-issuer": "https://tokens.example.com/", "jwt-audience": "holdfast", "tenant-from": "claim:sub"}
END
# W3005: the CDK makes a function depend on its role and the role's policy; of the role that is said twice.
.venv/bin/cfn-lint --regions us-east-1 eu-central-1 --ignore-checks W3005 -- "$out"/*/*.template.json
echo "cfn-lint: $(ls "$out"/*/*.template.json | wc -l) templates of $n deployments are clean"
