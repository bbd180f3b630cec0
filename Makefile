# spoolfs: files that are written into the mount are published to RabbitMQ.
# "make" alone shows what can be made.

.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

GO ?= go

# How hard "make chaos" tries.
CHECKS ?= 2000

# How long "make bench-go" measures each benchmark.
BENCHTIME ?= 2s

# What "make bench" runs: BENCH=short takes minutes, BENCH=full hours. SCENARIO
# names some of close, end, process, outage, scale, with commas between.
BENCH ?= short
SCENARIO ?=

# These start RabbitMQ, measure times or build packages: one after the other, and last.
SLOW := ./publisher/amqp ./integration/... ./cmd/spoolfs/package

# The revision goes into the program where git can read it, which it refuses
# for another user's clone.
BUILDVCS := $(shell git rev-parse --verify --quiet HEAD >/dev/null 2>&1 && echo auto || echo false)

.PHONY: help
help: ## show this help
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: deps build ## watch 1,000 messages outlive a RabbitMQ that is away (as root, less than a minute)
	$(GO) build -buildvcs=false -o bin/demo ./integration/demo
	@bin/demo

.PHONY: test
test: deps lint unit slow ## run all tests and checks, as CI does

.PHONY: build
build: ## build bin/spoolfs
	$(GO) build -trimpath -buildvcs=$(BUILDVCS) -o bin/spoolfs ./cmd/spoolfs

.PHONY: packages
packages: ## build bin/spoolfs_*.deb and bin/spoolfs-*.rpm, the same byte for byte for each build of a commit
	@cmd/spoolfs/package/build bin

.PHONY: deps
deps: ## install what building and testing need, through apt (as root)
	@.ci/install

.PHONY: lint
lint: ## check the format of the code, vet it, and run staticcheck
	@unformatted=$$(gofmt -l .); [[ -z $$unformatted ]] || { printf 'not formatted, run gofmt -w:\n%s\n' "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

.PHONY: unit
unit: ## run the tests that need no broker
	$(GO) test -race -count=1 -timeout=30m $$($(GO) list ./... | grep -vxF "$$($(GO) list $(SLOW))")

.PHONY: slow
slow: ## run the tests that need a broker: of AMQP, and of the whole program
	$(GO) test -race -count=1 -timeout=1h -p=1 $(SLOW)

.PHONY: chaos
chaos: deps ## crash the store and kill the daemon far more often than the tests do (CHECKS=2000)
	@.ci/install chaos
	$(GO) test -count=1 -timeout=2h -run='^TestQueue_CrashLosesNothing$$' -v ./queue -rapid.checks=$(CHECKS)
	SPOOLFS_CHAOS=1 $(GO) test -count=1 -timeout=2h -run='Killed|Keeper|ListMany|PurgeMany|OutageLog|BrokerFrozen|OneName|Inherited|ManyOpen|Alternating|SameNames|TestRoutes_Chain|TestRoutes_Isolation|TestRoutes_Coalesce|TestScale' -v ./integration
	SPOOLFS_CHAOS=1 $(GO) test -count=1 -timeout=1h -run='DropsCrash|CoalesceCrash' -v ./queue
	SPOOLFS_CHAOS=1 $(GO) test -count=1 -timeout=30m -run=Killed -v ./fs/janitor
	SPOOLFS_CHAOS=1 $(GO) test -count=1 -timeout=1h -run='TestKill|CutAnywhere|TakeOver_Damaged' -v ./fs
	SPOOLFS_CHAOS=1 $(GO) test -count=1 -timeout=10m -run='BlackHole|MemoryAlarmLarge|OddMessages' -v ./publisher/amqp
	SPOOLFS_CHAOS=1 $(GO) test -count=1 -timeout=10m -run=TestLog -v ./cmd/spoolfs
	SPOOLFS_CHAOS=1 $(GO) test -count=1 -timeout=30m -run="Reproducible|Systemd|Alerts" -v ./cmd/spoolfs/package

.PHONY: bench
bench: deps ## compare with floors and alternatives, into bin/bench (as root; BENCH=short|full, SCENARIO=close,end,process,outage,scale)
	@.ci/install bench
	$(GO) build -buildvcs=false -o bin/bench-harness ./integration/bench
	@bin/bench-harness -mode=$(BENCH) -scenario=$(SCENARIO)

.PHONY: bench-readme
bench-readme: ## write the table of the last "make bench" into README.md
	$(GO) run ./integration/bench -readme=README.md

.PHONY: bench-go
bench-go: deps ## run the benchmarks of the packages (BENCHTIME=2s)
	$(GO) test -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) -timeout=60m -p=1 ./queue ./fs/ingest ./fs ./publisher/amqp ./integration

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
