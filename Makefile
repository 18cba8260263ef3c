# Everything runs in .venv; afterwards the command line is .venv/bin/sojourn.
# Needed: Python 3.11 or later with venv, a C compiler, network for the first run. Rust is fetched into .toolchain if the
# machine's is missing or too old.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST := tools/with-rust
PYTHON_FOLDERS := python tests docs validation benches web
# Files of tests at once: what a file sets up is set up once. Two for each processor, since tests often wait for clocks,
# disks and other processes.
AT_ONCE = -n $(shell $(PYTHON) -c 'import os; print(min(8, 2 * (os.cpu_count() or 1)))') --dist loadscope --no-loadscope-reorder
AGENT := python/sojourn/linux/sojourn-agent
SOURCES := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find crates python studies suites -type f -not -name '*.pyc' -not -path '*/target/*' -not -name '*.so' \
	-not -name sojourn-agent)

# For a build that knows from a profile what runs often. The profile is for a named target.
WITH_PROFILE = RUSTFLAGS="-Cprofile-use=$(CURDIR)/target/profile/sojourn.profdata" \
	CARGO_BUILD_TARGET=$$($(RUST) rustc -vV | sed -n 's/^host: //p')

.PHONY: help demo test lint bench bench-tools instructions validate studies docs site web web-check web-test install \
	profiled agent
help:
	@echo "make demo      one home line behind four queues: a table, a picture, what to try next"
	@echo "make test      all tests, Rust and Python"
	@echo "make lint      formatters and linters, nothing is changed"
	@echo "make bench     speed of the simulator beside ns-3, and of the disciplines: docs/results/speed.md, wifi-speed.md, aqm-speed.md"
	@echo "make instructions  what a packet costs in each scenario against benches/instructions.toml"
	@echo "make validate  the simulator against measurements of Linux, Wi-Fi against ns-3: docs/results/fidelity.md, wifi-ns3.md;"
	@echo "               with KERNEL=6.12 also that kernel, built here, by distribution: distributions.md (WITHIN=40: minutes)"
	@echo "make studies   every study in full: published against measured"
	@echo "make install   into .venv, with the agent, the program that the Linux backend runs"
	@echo "make profiled  as make install, compiled for what runs often: longer to build, fewer instructions per packet"
	@echo "make docs      write what is generated: pages of keys, the types of results, the schema of recipes"
	@echo "make web       the simulator as a page that opens from disk: target/web/sojourn.html"
	@echo "make web-test  the page in a browser, the same bytes as natively; make web-check: only the bytes, sooner"
	@echo "make site      the documentation as a site, in target/site; a broken link is an error"

# Without the agent, which takes as long again to compile; the Linux backend says that it wants make install.
demo: $(VENV)/.bindings
	$(BIN)/sojourn run examples/home.toml --out demo --figures png
	@echo
	@echo "The picture: demo/overview.png. Next:"
	@echo "  $(BIN)/sojourn run examples/home.toml --set 'link.rate=\"50 Mbit/s\"'   # another line; the file is yours to change"
	@echo "  $(BIN)/sojourn report demo                                         # one page with all figures: demo/report.html"
	@echo "  $(BIN)/sojourn study run khademi2013 --quick                       # a paper, published against measured"

test: install $(VENV)/.test
	$(RUST) cargo test --workspace
	$(RUST) cargo test --locked --manifest-path examples/my-aqm/Cargo.toml --target-dir target
	$(RUST) cargo test --locked --manifest-path examples/my-cc/Cargo.toml --target-dir target
	$(RUST) cargo build --locked --manifest-path validation/qlog/Cargo.toml --target-dir target/qlog
	$(BIN)/python -m pytest $(AT_ONCE)

lint: install $(VENV)/.test $(VENV)/.lint
	$(RUST) cargo fmt --all --check
	$(RUST) cargo clippy --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check $(PYTHON_FOLDERS)
	$(BIN)/ruff check $(PYTHON_FOLDERS)
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --follow-imports silent $(filter-out python/sojourn/linux/ python/sojourn/_%,$(wildcard python/sojourn/*/))
	$(BIN)/python -m mypy.stubtest sojourn._core

bench: bench-tools
	$(RUST) cargo build --release -p sojourn-sim --example run_file
	$(RUST) tools/profile
	$(WITH_PROFILE) $(RUST) cargo build --release -p sojourn-sim -p sojourn-python --example run_file \
		--target-dir target/profile/use
	$(PYTHON) benches/speed.py
	$(PYTHON) benches/wifi.py
	$(PYTHON) benches/aqm.py

instructions: bench-tools
	$(RUST) cargo build --release -p sojourn-sim --example run_file
	$(PYTHON) benches/instructions.py

# What peers are built from and instructions counted with; speed.py does without what is missing, and says so.
bench-tools:
	@if [ ! -e /usr/include/ns3/core-module.h ] || ! command -v g++ >/dev/null || ! command -v valgrind >/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -q && apt-get install -qy g++ libns3-dev valgrind || true; fi; fi

validate: install
	$(BIN)/python validation/fidelity.py
	$(BIN)/python validation/wifi_ns3.py
	if [ -n "$(KERNEL)" ]; then $(BIN)/sojourn kernel build $(KERNEL) \
		&& $(BIN)/python validation/distributions.py --measure $(KERNEL) $(if $(WITHIN),--within $(WITHIN)) \
		&& $(BIN)/python validation/distributions.py; fi

studies: install
	$(BIN)/sojourn study run --all

docs: install
	$(BIN)/python docs/result_keys.py
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/labs/make.py

# The pages need nothing compiled; the crates' documentation goes beside them, and the page of make web if it is there.
site: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	rm -rf target/doc
	RUSTDOCFLAGS="-D warnings" $(RUST) cargo doc --quiet --locked --workspace --exclude sojourn-python --no-deps
	cp -r target/doc target/site/rust
	if [ -e target/web/sojourn.html ]; then mkdir -p target/site/lab && cp target/web/sojourn.html target/site/lab/index.html; fi

# The simulator compiled to WebAssembly, inside of a page that loads nothing.
web: $(VENV)/.web
	module=$$($(RUST) tools/build-wasm) && $(BIN)/python web/build.py $$module target/web/sojourn.html

# Without a browser.
web-check: install $(VENV)/.test
	SOJOURN_WEB_TESTS=1 $(BIN)/python -m pytest tests/web/test_same_bytes.py tests/web/test_scripts.py

web-test: install $(VENV)/.test
	SOJOURN_WEB_TESTS=1 $(BIN)/python -m pytest tests/web

install: $(VENV)/.installed

# The bindings and the agent are compiled beside each other: each ends in a long step that keeps one processor busy.
$(VENV)/.installed: $(BIN)/python $(SOURCES)
	@$(RUST) true
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.bindings $(AGENT)
	install -m 755 $(AGENT) $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/sojourn/linux/
	@touch $@

$(VENV)/.bindings: $(BIN)/python $(SOURCES)
	$(RUST) $(BIN)/python -m pip install --quiet '.[plots,report,store]'
	@touch $@

# As the bindings of make install, compiled twice: the first build counts what runs often.
profiled: install
	$(RUST) tools/profile
	$(WITH_PROFILE) $(RUST) $(BIN)/python -m pip install --quiet --force-reinstall --no-deps .
	install -m 755 $(AGENT) $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/sojourn/linux/

# The agent of the Linux backend: static, as a virtual machine has no libraries for it. Naming the target keeps the flags
# from what only the build runs. A folder of its own, so that it need not wait for the bindings.
agent: $(AGENT)

$(AGENT): $(BIN)/python $(SOURCES)
	set -e; target=$$($(RUST) rustc -vV | sed -n 's/host: //p'); \
		RUSTFLAGS="-C target-feature=+crt-static -C strip=symbols" \
			$(RUST) cargo build --quiet --release --locked --package sojourn-agent --target $$target --target-dir target/agent; \
		install -m 755 target/agent/$$target/release/sojourn-agent $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.docs $(VENV)/.web: $(VENV)/.%: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --group $*
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is missing or older than 3.11; name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment; on Debian: apt install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
