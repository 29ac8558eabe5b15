# Development tasks. `make` alone lists them.

# Extra flags for the program of a target: make run ARGS="--in-memory"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run dist test check fmt clippy docs deny tidy features audit repeat bench parity conformance extension semver systems fleet golden reference scaffolds facts fuzz fuzz-short torture clients clean

help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build (release) and serve on 127.0.0.1:6443, data in ./bareboat-data
	cargo run --release --package bareboat-cli -- serve $(ARGS)

dist: ## Build the optimized binary target/dist/bareboat (slow)
	cargo build --profile dist --package bareboat-cli

test: ## Run all tests as CI does: unit, integration and end-to-end tests with real clients
	@scripts/test.sh

repeat: ## Run all tests twenty times, also pinned to one core and beside a busy loop (ARGS="20 3": 20 runs, three at once)
	@scripts/repeat.sh $(ARGS)

clients: ## Run the end-to-end tests with real clients only (ARGS=kubectl for one of them)
	@scripts/peers.sh
	@scripts/python.sh --setup
	@scripts/java.sh --setup
	@scripts/javascript.sh --setup
	cargo test --workspace --test e2e $(ARGS)

check: fmt tidy clippy docs features deny ## Check formatting, lints, documentation, dependencies and features, as CI does

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets -- --deny warnings
	cargo clippy --workspace --test e2e --test hostile --test outages --test postgres --test shelf --test mariadb --test etcd -- --deny warnings

docs:
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps

deny:
	@scripts/deny.sh --offline check --hide-inclusion-graph bans licenses sources

tidy:
	cargo run --quiet --package xtask -- tidy

features:
	@scripts/features.sh

audit: ## Check dependencies for known vulnerabilities (downloads the advisories)
	@scripts/deny.sh check advisories

bench: ## Benchmark against kube-apiserver + etcd (builds both; ARGS="--quick" for a short run)
	@scripts/peers.sh kubernetes servers
	cargo run --profile dist --package bareboat-bench -- $(ARGS)

parity: ## Record the responses of a kube-apiserver 1.36 for every kind again, and compare (builds it)
	@scripts/peers.sh kubernetes servers
	@scripts/parity.sh $(ARGS)

conformance: ## Run conformance specs of Kubernetes with its controllers, scheduler and hollow nodes (builds them)
	@scripts/peers.sh kubernetes conformance
	@scripts/conformance.sh '$(ARGS)'

extension: ## Run metrics-server, cert-manager, Gatekeeper and an adapter of custom metrics against Bareboat (builds them)
	@scripts/peers.sh clients kubernetes extension
	@scripts/extension.sh $(ARGS)

semver: ## Compare the public API of the library with the last tag (ARGS="v0.1.0" for another)
	@scripts/semver.sh $(ARGS)

systems: ## Run the examples behind a kube-apiserver, with virtctl, kubebuilder and clients in other languages (builds them)
	@scripts/peers.sh kubernetes servers virtctl hello kubebuilder apiserver-boot
	@scripts/python.sh --setup
	@scripts/systems.sh $(ARGS)

fleet: ## Run a fleet at full size: a kube-apiserver, 100 ghosts with a million objects, multicluster-runtime (builds them)
	@scripts/peers.sh kubernetes servers fleet
	@scripts/fleet.sh $(ARGS)

golden: ## Update the expected results of tests from the present code; then review the diff
	UPDATE_EXPECT=1 cargo test --package bareboat-server --lib -- openapi discovery
	UPDATE_EXPECT=1 cargo test --package bareboat-builtin --test it -- definitions
	UPDATE_EXPECT=1 cargo test --package bareboat-controllers --test it -- identities
	git diff --stat

reference: ## Write the pages docs/reference from the code: commands, annotations, metrics
	UPDATE_EXPECT=1 cargo test --package bareboat-cli --bin bareboat reference
	git diff --stat docs/reference

scaffolds: ## Write tests/scaffolds from the templates of `bareboat new` and `bareboat add`; then review the diff
	UPDATE_EXPECT=1 cargo test --package bareboat-scaffold --test projects
	git diff --stat tests/scaffolds

fuzz-short: ## Fuzz each target for ten seconds, without coverage (ARGS="--seconds 60 http" for more), as CI does
	cargo run --package bareboat-fuzz -- $(ARGS)

fuzz: ## Fuzz all parsers of client input, guided by coverage (ARGS="600": seconds each)
	@scripts/fuzz.sh $(ARGS)

torture: ## Test every engine under faults, with full counts, 60 s each (ARGS="postgres 600 7": engine, seconds and seed)
	@scripts/torture.sh $(ARGS)

facts: ## Regenerate the table of facts about built-in kinds from published Go modules (needs Go)
	cargo run --package xtask -- facts

clean: ## Remove build output, downloads and local data
	cargo clean
	rm -rf .cache bareboat-data
