# What a person types here. Everything longer than a line or two is a script or a task of xtask.

.DEFAULT_GOAL := help
.PHONY: help run demo test test-long check leaks fuzz package bench clean rust cargo components

# rustup puts cargo here, and a fresh shell does not always know.
export PATH := $(PATH):$(HOME)/.cargo/bin

# How long each fuzz target runs.
SECS ?= 60

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

run: cargo ## build the release binary and serve: accounts for anyone in ./plimsoll-data, docs/ to anyone, on loopback
	@exec cargo run --release --locked -p plimsoll -- serve --site /=docs --signup open

demo: cargo ## all ten requests with two accounts and real files, each as it is typed; leaves nothing behind
	@cargo build --release --locked -p plimsoll
	@exec demo/run "$${CARGO_TARGET_DIR:-target}/release/plimsoll"

test: rust ## install what the tests need, then run every test
	tests/install
	@cargo xtask test

test-long: rust ## the same with many more seeds, under process and pool too; takes an hour
	tests/install
	@cargo xtask test --long

check: components ## format, house rules, lints, docs, licences, types of the page's scripts, and lints of builds without databases
	@tests/tools/install packages.sha512
	@cargo xtask check
	@cargo xtask lean

leaks: rust ## the conformance suite under LeakSanitizer
	tests/install
	@cargo xtask leaks

fuzz: rust ## every fuzz target, SECS seconds each (60)
	tests/install
	@set -e; for target in fuzz/fuzz_targets/*.rs; do fuzz/run "$$(basename "$$target" .rs)" $(SECS); done

package: cargo ## a .deb, a tarball and an OCI image in target/package, each tried in a root of its own
	packaging/package "$${CARGO_TARGET_DIR:-target}/package"

# QUICK=1: fewer contenders, cases and repetitions. LOGS=on: every server logs requests. OUT=DIR: where results go.
# ARGS: more flags of `plimsoll lab run`, such as '--at files=1K,10K --only plimsoll-epoll,nginx-tuned'.
QUICK_BENCH = --only plimsoll-epoll,plimsoll-uring,nginx-tuned,lighttpd-tuned --set repetitions=3

bench: cargo ## measure plimsoll beside nginx, lighttpd, h2o and caddy; tables and plots in bench/results
	crates/lab/contenders/install
	@cargo build --release --locked -p plimsoll
	@exec "$${CARGO_TARGET_DIR:-target}/release/plimsoll" lab run peers \
	  --out "$(or $(OUT),bench/results/$(shell date -u +%Y-%m-%dT%H-%M-%SZ))" \
	  $(if $(QUICK),$(QUICK_BENCH)) $(if $(LOGS),--set logs=$(LOGS)) $(ARGS)

clean: cargo ## remove what was built, never what was stored
	cargo clean

rust:
	@command -v cargo >/dev/null || { \
	  echo "make: Rust is missing. Install it from https://rustup.rs:" >&2; \
	  echo "        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2; \
	  echo "      then run make again." >&2; exit 1; }

cargo: rust
	@command -v cc >/dev/null || { \
	  echo "make: a C linker is missing. On Debian or Ubuntu: apt-get install gcc libc6-dev" >&2; exit 1; }

# A minimal toolchain has neither.
components: cargo
	@{ cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
