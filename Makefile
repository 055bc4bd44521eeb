# A newcomer needs only `make run` and `make test`. CI runs `make test`: fmt, lint, doc and every test, also
# those of `openapi`.

.PHONY: run test test-engines test-postgres test-cluster test-program test-rest test-build test-build-others test-prepare test-deps fmt lint doc deny openapi book bench screenshots pictures soak soak-cluster

DATA ?= data/run
# Cargo takes all processors, and not those that make has left. What a test leaves running does not keep make from
# ending: nothing inherits its pipes.
ALONE = 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&- env -u MAKEFLAGS
# A recipe fails if any program of a pipe does.
SHELL = bash
.SHELLFLAGS = -o pipefail -c
TESTS = --workspace --features failpoints --no-fail-fast

# Build and start the server on an embedded store under data/run.
run:
	cargo build --profile quick --bin svc
	./target/quick/svc serve --data $(DATA)

# Run every check and every test, and name the tests that were left out. One that fails does not keep
# others from running. The tests of the program wait for half of their time, for containers, browsers and
# servers: twice as many as processors run at a time, and the other tests beside them, and then the checks.
test: test-deps fmt
	$(MAKE) --jobs=3 --keep-going --output-sync=target test-program test-rest

# Run the tests with containers on the Docker of later releases of Debian, each with both stores of images, as
# root. Takes two to three hours. `make test-engines ENGINES=forky+containerd` runs one.
test-engines:
	.ci/engines $(ENGINES)

# Run the tests of the program again, with the store of each service in a PostgreSQL database.
test-postgres: test-deps test-build test-prepare
	$(ALONE) TEST_ON_POSTGRES=1 cargo test $(TESTS) --test it

# Run the tests of the program again, with each service on three nodes behind a balancer, which share a database and
# a bucket. Those that are about one process are left out: its folder, its disk, its clock, its connections, and what
# its own counters let pass.
OF_ONE_PROCESS = buckets:: cascades::a_deleted_project_takes_everything checkouts::six_hundred clock:: \
	connections:: dashboard::operators::a_parked databases:: full_disk:: headers::what_is_not_counted limits:: \
	mail::a_mail_without operators:: panics:: passwords::a_reset_ends retention:: runners::foreign starts:: \
	trusted_publishers::no_attack upload_access::artifacts_of_others upload_streams::
test-cluster: test-deps test-build test-prepare
	$(ALONE) TEST_ON_NODES=3 cargo test $(TESTS) --test it -- $(addprefix --skip ,$(OF_ONE_PROCESS))

# `+` and `$(MAKE)` show the output at once; that of the others comes when they have ended. Through a pipe of
# its own: a program that a test starts can make its output non-blocking, and make cannot write to it then.
test-program: test-build test-prepare
	+$(ALONE) RUST_TEST_THREADS=$$((2 * $$(getconf _NPROCESSORS_ONLN))) cargo test $(TESTS) --test it 2>&1 | cat

# The checks compile, and no other cargo can begin meanwhile: so they come last, also after a test that fails.
test-rest: test-build-others test-prepare
	tests=0; $(ALONE) cargo test $(TESTS) || tests=$$?; $(ALONE) make lint doc && exit $$tests

# Apart, because the tests of the program take longest and begin while the others compile.
test-build:
	+$(ALONE) cargo test $(TESTS) --no-run --test it

test-build-others: test-build
	$(ALONE) cargo test $(TESTS) --no-run

test-prepare:
	./tests/support/prepare.sh

# As root on Debian: install the programs that the tests need, start a container engine, and print both.
test-deps:
	./tests/support/install-test-deps.sh

# Check the format of the sources. `cargo fmt --all` formats them.
fmt:
	cargo fmt --all --check

# Without the server, the program has neither its dependencies nor its warnings.
lint:
	cargo clippy --workspace --all-targets --features failpoints -- -D warnings
	cargo clippy --workspace --test it --features failpoints -- -D warnings
	cargo clippy --package svc --no-default-features -- -D warnings
	! cargo tree --package svc --no-default-features --edges normal | grep -E ' (actix|actors|bollard|sled) v'

# Has the features of `lint`, so that both share their compilation.
doc:
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --features failpoints --no-deps --document-private-items

# Check licenses, sources and security advisories of the dependencies. Not part of `make test`: it
# needs cargo-deny (`cargo install --locked cargo-deny`, some minutes) and the network for advisories.
# `make deny WHAT="licenses bans sources"` needs no network.
deny:
	cargo deny check $(WHAT)

# Compare the generated pages below docs with the declarations: openapi.json, REFERENCE.md, EXAMPLES.md,
# commands.md, settings.md, and the tables of WEBHOOKS.md and REPOSITORIES.md. `UPDATE=1 make openapi` writes
# them; read their difference.
openapi:
	cargo test -p contract --test main documents
	cargo test -p repository --test checks documentation
	cargo test -p svc --bin svc pages

# Build the documentation as a site in target/book. It needs mdBook (`cargo install --locked mdbook`).
# The program itself shows the same pages below /docs of its dashboard.
book:
	mdbook build docs

# Measure the packaged program against yardsticks, and write BENCHMARKS.md.
bench:
	cargo build --profile dist -p svc -p bench
	./target/dist/bench

# Make pictures of every page of the dashboard, in light and dark, for a phone and for a computer.
screenshots:
	SVC_SCREENSHOTS="$(CURDIR)/target/screenshots" cargo test --features failpoints --test it dashboard::

# Take the pictures of the README again.
pictures:
	cargo test $(TESTS) --test it pictures_of_the_readme -- --ignored

# Kill the service a thousand times under load.
soak:
	SVC_CRASH_ROUNDS=1000 cargo test --features failpoints --test it crashes -- --nocapture

# As root: let all go wrong with three nodes, their network, their databases and their engines for an hour, under load.
soak-cluster: test-deps test-build test-prepare
	SVC_TRIAL_SECONDS=3600 cargo test --features failpoints --test it trials:: -- --nocapture
