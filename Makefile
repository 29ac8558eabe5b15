# What there is to do here. `make` alone lists it.

# Further flags for the program behind a target: make run ARGS="--in-memory"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test check fmt clippy docs deny bench parity conformance golden facts fuzz torture clients clean

help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build (release) and serve on 127.0.0.1:6443, data in ./bareboat-data
	cargo run --release --package bareboat-cli -- serve $(ARGS)

test: ## Everything CI runs: unit, integration and end-to-end tests with real clients
	@scripts/test.sh

clients: ## Only the end-to-end tests: every real client (ARGS=kubectl for one of them)
	@scripts/peers.sh
	@scripts/python.sh --setup
	@scripts/java.sh --setup
	@scripts/javascript.sh --setup
	cargo test --package bareboat-cli --test e2e $(ARGS)

check: fmt clippy docs deny ## Formatting, lints, documentation, dependencies

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets -- --deny warnings

docs:
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps

deny:
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; \
	elif [ "$${CI:-}" = true ]; then echo "cargo-deny is needed: cargo install cargo-deny" >&2; exit 1; \
	else echo "deny: left out, cargo-deny is not installed"; fi

bench: ## Measure against kube-apiserver + etcd (builds both; ARGS="--quick" for a try)
	@scripts/peers.sh kubernetes servers
	cargo run --release --package bareboat-bench -- $(ARGS)

parity: ## Record afresh what a kube-apiserver 1.36 answers to every kind of object, and compare (builds it)
	@scripts/peers.sh kubernetes servers
	@scripts/parity.sh $(ARGS)

conformance: ## Conformance specs of Kubernetes, with its controllers, scheduler and hollow nodes (builds them)
	@scripts/peers.sh kubernetes conformance
	@scripts/conformance.sh '$(ARGS)'

golden: ## Rewrite the expected results of tests from what the code gives now; then read the diff
	UPDATE_EXPECT=1 cargo test --package bareboat-server --lib -- openapi discovery
	git diff --stat

fuzz: ## Fuzz the readers of expressions, schemas and definitions (ARGS="600" for ten minutes each; nightly, cargo-fuzz)
	@scripts/fuzz.sh $(ARGS)

torture: ## Crashes, power cuts, failing and full disks, 60 s of each (ARGS="600 7": seconds and seed; needs a C compiler)
	@scripts/torture.sh $(ARGS)

facts: ## Rewrite the table of facts about built-in kinds from published Go modules (needs Go)
	cargo run --package xtask -- facts

clean: ## Remove what was built, fetched and served here
	cargo clean
	rm -rf .cache bareboat-data
