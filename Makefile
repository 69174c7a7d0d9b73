# Holdfast: what one runs from a clone. Each target says what it is for; `make help` lists them.
SHELL := bash
.DEFAULT_GOAL := help

GOFUMPT := go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
CDK := cdk/main.go $(addprefix cdk/,access cmd deployed price stacks template)
SAMPLE := pkg/pipelines/documents/cuad-worldwide-reseller.txt

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: build
build: ## build bin/holdfast
	go build -o bin/holdfast ./pkg/cmd/holdfast

.PHONY: run
run: build ## review a real contract: three workers, 5 % of the tries fail, one worker is killed
	bin/holdfast run $(SAMPLE) --workers 3 --concurrency 48 --pace 800ms --kill 1 \
		--fail 'throttled=3%,unavailable=1%,malformed=0.8%,crash=0.05%' --out holdfast-out

.PHONY: test
test: ## all tests, with the race detector
	go test -race -timeout 20m ./...
	cd scripts/bench && go test ./...

.PHONY: kills
kills: ## fifty SIGKILLs in one run of real processes, at full size (the race detector gets fewer)
	go test ./pkg/cli -run TestKills -count 1

.PHONY: localstack
localstack: ## start LocalStack on this machine, without Docker; installs it first (DYNOXIDE=FILE saves compiling it)
	localstack/up.sh

.PHONY: localstack-down
localstack-down: ## stop it
	localstack/down.sh

.PHONY: test-localstack
test-localstack: ## the AWS adapters and whole runs against LocalStack; fails without it (make localstack)
	localstack/dynoxide.sh go test -tags localstack -count 1 -timeout 20m ./pkg/dynamostore
	localstack/dynoxide.sh go test -tags localstack -count 1 -timeout 20m ./pkg/wiring -run 'TestBenchOnAWS|TestCaseD09|TestABucketOf'
	go test -tags localstack -count 1 -p 1 -timeout 20m ./pkg/sqsqueue ./pkg/s3blob
	go test -tags localstack -count 1 -timeout 20m ./pkg/cli -run '$(LOCALSTACK_RUNS)'

.PHONY: bench-aws
bench-aws: ## what a job of 22 x 116 calls asks of AWS: requests, write and read units, price; needs LocalStack
	localstack/dynoxide.sh go test -tags localstack -count 1 -v ./pkg/wiring -run TestBenchOnAWS
	go test -tags localstack -count 1 -v ./pkg/cli -run TestOnLocalStackFullSize

# The tests of whole runs that are as true on LocalStack as in a folder.
LOCALSTACK_RUNS := ^(TestPoisonInAChunk|TestPoisonInAStepOfItsOwn|TestSignals|TestCaseD03FrozenWorkerComesBackTooLate|TestCancelFromAnotherTerminal|TestPauseAndResume|TestSubmitAndWorker|TestOnLocalStack.*)$$

.PHONY: functions
functions: ## zips of the functions and the program of workd in dist/ARCH: make functions ARCH=amd64 for this machine
	go run ./scripts/package -arch $(or $(ARCH),arm64)

.PHONY: functions-check
functions-check: ## the same, built a second time from another folder with nothing cached: the bytes must be the same
	go run ./scripts/package -arch $(or $(ARCH),arm64) -check

.PHONY: invoke-control invoke-work invoke-reap invoke-api
invoke-control: ## run a function on one event with AWS's runtime emulator; make invoke-work, -reap, -api; EVENT=FILE for another
	go run ./scripts/invoke control $(EVENT)
invoke-work:
	go run ./scripts/invoke work $(EVENT)
invoke-reap:
	go run ./scripts/invoke reap $(EVENT)
invoke-api:
	go run ./scripts/invoke api $(EVENT)

.PHONY: cdk-app
cdk-app: ## build the CDK program, bin/holdfast-cdk: minutes and 1 GB of memory the first time
	cd cdk && go build -o ../bin/holdfast-cdk .

.PHONY: test-cdk
test-cdk: cdk-app ## what the templates promise: assertions, cdk-nag, cfn-lint, roles, prices, each with its reason or figure; nothing is deployed
	@cd cdk && set -o pipefail && go test -count 1 -v ./... 2>&1 | grep -vE '^(===|PASS| *--- PASS|!!)'
	cdk/lint.sh

.PHONY: lint-cdk
lint-cdk: ## vet, staticcheck and go mod tidy of cdk/: minutes the first time
	cd cdk && go vet -tags deployed ./... && $(STATICCHECK) -tags deployed ./... && go mod tidy -diff

.PHONY: deploy-local
deploy-local: localstack cdk-app build ## deploy the stacks onto LocalStack: make deploy-local STACK=NAME CDK_ARGS='-c workers=both -c image=local'
	$(MAKE) functions ARCH=$$(go env GOARCH)
	localstack/deploy.sh $(CDK_ARGS)

.PHONY: test-deploy
test-deploy: localstack cdk-app build ## deploy onto LocalStack and review by functions, by workd, by both and two versions, with crashes, time-outs, poison, cancel, API: some minutes
	$(MAKE) functions ARCH=$$(go env GOARCH)
	cd cdk && HOLDFAST_ENDPOINT=http://127.0.0.1:$${LOCALSTACK_PORT:-4566} RECORDER='$(RECORDER)' go test -tags deployed -count 1 -timeout 60m -v ./deployed

.PHONY: smoke
smoke: build ## try a deployed stack with a canary: make smoke STACK=NAME; on LocalStack with HOLDFAST_ENDPOINT, on AWS with HOLDFAST_BUCKET; some minutes
	bin/holdfast admin smoke --backend aws --stack $(or $(STACK),holdfast) $(SMOKE_ARGS)

.PHONY: record
record: ## the same, and write down what each process asks of AWS: what the tests compare the roles with
	cd cdk && go build -o ../bin/record ./cmd/record
	bin/record -to http://127.0.0.1:$${LOCALSTACK_PORT:-4566} -out cdk/stacks/testdata/operations.jsonl & recorder=$$!; \
		trap "kill $$recorder" EXIT; $(MAKE) test-deploy RECORDER='http://127.0.0.1:4570/{process}'

.PHONY: lint
lint: ## vet, staticcheck, gofumpt
	go vet ./...
	$(STATICCHECK) ./...
	go vet -tags localstack ./pkg/...
	$(STATICCHECK) -tags localstack ./pkg/...
	cd scripts/bench && go vet ./... && $(STATICCHECK) ./...
	go mod tidy -diff && cd scripts/bench && go mod tidy -diff
	@out="$$($(GOFUMPT) -l pkg scripts localstack functions events $(CDK))"; if [ -n "$$out" ]; then echo "not formatted (make fmt):"; echo "$$out"; exit 1; fi

.PHONY: fmt
fmt: ## format
	$(GOFUMPT) -w pkg scripts functions events $(CDK)

.PHONY: mutants
mutants: ## break one clause at a time; each mutant must make its test fail
	go run ./scripts/mutants

.PHONY: sim
sim: ## whole worlds in virtual time, and every fault at every call: at most three minutes; make sim N=1000000 runs long, and goes on where it stopped
	SIM=1 go test ./pkg/simulation -run '^TestSim$$' -count 1 -v -timeout 0 $(if $(N),-worlds $(N) -state $(CURDIR)/bin/simulation-$(N).json,-worlds 6000 -budget 165s)

.PHONY: sim-planted
sim-planted: ## plant bugs of the protocol in the code, one at a time; the simulation must find each; ONLY=REGEX for a part
	go run ./scripts/mutants -timeout 5m $(if $(ONLY),-only '$(ONLY)') -show 'world [0-9]+ of' pkg/simulation/testdata/planted.txt

.PHONY: spec
spec: ## search the model of the claim protocol within its larger bounds: every history of a task and of a job; 3 GB
	go run ./scripts/spec
	@go run ./scripts/spec -broken | tail -n 1 && test $${PIPESTATUS[0]} = 0

.PHONY: scale
scale: ## large deployments in virtual time, at full size: what they ask of tables and queues; some minutes, 1 GB
	go test ./pkg/simulation/scale -count 1 -v -timeout 30m -args -full

.PHONY: train
train: ## make the classifier's weights again: make train CUAD=DIR
	go run ./scripts/train -cuad "$(CUAD)"

.PHONY: eval
eval: ## measure the offline model against CUAD's labels, beside a baseline: make eval CUAD=DIR
	go run ./scripts/eval -cuad "$(CUAD)"

.PHONY: incident-poller
incident-poller: ## a row that can never finish behind a poller: billed every minute for ever, and with Holdfast
	go run ./scripts/incident poller

.PHONY: incident-pipeline
incident-pipeline: ## 3,248 calls, 5 % failing, workers that die: a chunk silently missing, or billed twice, and with Holdfast
	go run ./scripts/incident pipeline

.PHONY: incident-media
incident-media: ## four corrupt files: hard timeout, reaper and requeue for ever, and with Holdfast, by every way in
	go run ./scripts/incident media

.PHONY: bench
bench: ## print the embedded figures beside anchors, some twenty minutes; make bench QUICK=1 for a short look, ONLY=REGEX for a part
	cd scripts/bench && go build -o "$${TMPDIR:-/tmp}/holdfast-bench" . && "$${TMPDIR:-/tmp}/holdfast-bench" $(if $(QUICK),-quick) $(if $(ONLY),-only '$(ONLY)')

.PHONY: clean
clean: ## remove what building and running left here
	rm -rf bin dist .holdfast holdfast-out
