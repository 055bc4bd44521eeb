# `make run` and `make test` are all that a newcomer needs, and `make test` is what CI runs: fmt, lint
# and doc, then every test, of which `openapi` is one.

.PHONY: run test test-deps fmt lint doc deny openapi bench soak

DATA ?= data/run

# Build and start the server on an embedded store under data/run.
run:
	cargo build --release --bin svc
	./target/release/svc serve --data $(DATA)

# Every check and every test; names the tests that it left out.
test: test-deps fmt lint doc
	cargo test --workspace --features failpoints

# Install what the tests need and start a container engine, where this is root on Debian; prints what.
test-deps:
	./tests/support/install-test-deps.sh

# Whether the sources are formatted. `cargo fmt --all` formats them.
fmt:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets --features failpoints -- -D warnings

# With the features of `lint`, so that both compile the same.
doc:
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --features failpoints --no-deps --document-private-items

# Licenses, sources and security advisories of what is linked in. Not part of `make test`: it needs
# cargo-deny (`cargo install --locked cargo-deny`, some minutes) and the network, for the advisories.
# `make deny WHAT="licenses bans sources"` needs no network.
deny:
	cargo deny check $(WHAT)

# Compare docs/openapi.json and docs/REFERENCE.md with the declarations. `UPDATE=1 make openapi`
# writes them anew; read their difference.
openapi:
	cargo test -p contract --test documents

# Figures of what is packaged against yardsticks, written to BENCHMARKS.md.
bench:
	cargo build --profile dist -p svc -p bench
	./target/dist/bench

# A thousand kills under load.
soak:
	SVC_CRASH_ROUNDS=1000 cargo test --features failpoints --test it crashes -- --nocapture
