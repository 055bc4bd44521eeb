# What CI runs, step by step. `make run` and `make test` are all that a newcomer needs.

.PHONY: run test lint fmt doc deny openapi bench soak

DATA ?= data/run

# Build and start the server on an embedded store under data/run.
run:
	cargo build --release --bin svc
	./target/release/svc serve --data $(DATA)

# Every test. Installs what it needs where it can, and names what it left out.
test:
	./tests/support/install-test-deps.sh
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features sabotage -- -D warnings
	cargo test --workspace --features sabotage

fmt:
	cargo fmt --all

lint:
	cargo clippy --workspace --all-targets --features sabotage -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --no-deps --document-private-items

deny:
	cargo deny check

# Write docs/openapi.json and docs/REFERENCE.md anew; read their difference.
openapi:
	UPDATE=1 cargo test -p contract --test documents

# Figures against yardsticks, written to BENCHMARKS.md.
bench:
	cargo build --release -p svc -p bench
	./target/release/bench

# A thousand kills under load.
soak:
	SVC_CRASH_ROUNDS=1000 cargo test --features sabotage --test it crashes -- --nocapture
