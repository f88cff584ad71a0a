# The two commands that matter: `make demo` and `make test`. Both need only Rust, git, make and a C compiler.

CARGO ?= cargo
TARGET ?= $(or $(CARGO_TARGET_DIR),target)
# The binary without test hooks, kept aside so that tests can show that they are not in it.
PLAIN := $(abspath $(TARGET))/backstop-plain

# Each of them must be complete without the features that another one asks for.
MEMBERS = $(notdir $(patsubst %/Cargo.toml,%,$(wildcard crates/*/Cargo.toml examples/*/Cargo.toml)))

.PHONY: demo test soak lint bench loom help

help: ## Shows this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: ## Builds the binary and serves a page: one shop, twice, to be broken by hand
	$(CARGO) build --quiet --release -p backstop-cli
	$(TARGET)/release/backstop demo

test: ## Everything that must hold; installs and starts what it needs
	./scripts/test-servers
	./scripts/test-browser
	$(CARGO) build -p backstop-cli -p fallback_demo -p axum_service
	cp $(TARGET)/debug/backstop $(PLAIN)
	$(CARGO) test --quiet --workspace --doc
	BACKSTOP_PLAIN=$(PLAIN) ./scripts/run-tests --workspace --features backstop-cli/test-hooks

soak: export BACKSTOP_KILLS := 40
soak: export BACKSTOP_RANDOM_KILLS := 500
soak: export BACKSTOP_KILLS_AT_EACH := 20
soak: export BACKSTOP_SOAK := 1
soak: test ## As test, with its long versions: minutes of load, hundreds of kills

lint: ## Formatting, lints, each crate alone, documentation
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets --features backstop-cli/test-hooks -- -D warnings
	for member in $(MEMBERS); do $(CARGO) check --quiet -p $$member || exit 1; done
	$(CARGO) clippy --quiet -p backstop-store --no-default-features -- -D warnings
	$(CARGO) clippy --quiet -p backstop-gateway --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --workspace --no-deps

bench: ## CPU per request beside nginx's, 10 000 requests/s through an outage, the engine's nanoseconds
	./scripts/test-servers
	$(CARGO) build --quiet --profile dist -p backstop-cli -p backstop-lab --bins --examples
	$(CARGO) bench --quiet -p backstop-engine --bench decision
	./scripts/bench

loom: ## All interleavings of the counters that threads share
	RUSTFLAGS="--cfg loom" $(CARGO) test --release --target-dir $(TARGET)/loom -p backstop-engine \
		--test loom_admission --test loom_budget --test loom_health
