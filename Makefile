# Entry points for users without cargo. `make run` and `make test` install missing packages;
# everything else is in xtask (`cargo xtask`).

PREFIX ?= /usr/local
DESTDIR ?=

# The first cargo on PATH that is new enough. MAKEFLAGS is unset, because cargo cannot use
# make's jobserver. scripts/target names another target directory if libbpf cannot be built in
# this one.
CARGO = env -u MAKEFLAGS PATH="$$(scripts/toolchain):$$PATH" $$(scripts/target) cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
BINARY = $(TARGET)/release/noisefloor
LAB = $(TARGET)/lab
LIBRARIES_FROM = $(TARGET)/release
# The program that writes the man pages and completions, and strip(1): another one in a cross build.
GENERATOR = $(BINARY)
STRIP = strip

BIN = $(DESTDIR)$(PREFIX)/bin
LIB = $(DESTDIR)$(PREFIX)/lib/noisefloor
# The folder of C libraries, which packages of some distributions name.
LIBDIR = $(PREFIX)/lib
CLIB = $(DESTDIR)$(LIBDIR)
INCLUDE = $(DESTDIR)$(PREFIX)/include
SHARE = $(DESTDIR)$(PREFIX)/share
BASH = $(SHARE)/bash-completion/completions
ZSH = $(SHARE)/zsh/site-functions
FISH = $(SHARE)/fish/vendor_completions.d
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system

# The C libraries, as NAME:CRATE. A crate's build.rs has the number of its ABI.
LIBRARIES = noisefloor:capi tif:tif
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# For each of them: its name and its crate as variables of the shell.
EACH_LIBRARY = for library in $(LIBRARIES); do \
	name=$${library%:*} crate=crates/$${library\#*:} so=$(CLIB)/lib$${library%:*}.so; \
	abi=$$(sed -n 's/^const ABI: u32 = \(.*\);/\1/p' $$crate/build.rs);

help:
	@echo 'make run        build, and check this machine (noisefloor check)'
	@echo 'make test       run all checks and tests (with CI=1 also those that build twice)'
	@echo 'make test-all   make test, and the tests that build several kernels'
	@echo 'make bench      run the benchmarks'
	@echo 'make build      build $(BINARY)'
	@echo 'make lab        build what `noisefloor lab` needs: the programs of guests; and install QEMU'
	@echo 'make all        build everything that is installed: also the C libraries'
	@echo 'make install    install it, its man pages and the C libraries in PREFIX=$(PREFIX)'
	@echo 'make uninstall  remove them'
	@echo 'make packages   build a .deb, a .rpm and an archive, in $(TARGET)/packages'
	@echo
	@echo 'All but uninstall install missing packages with apt.'

run: build
	@"$(BINARY)" check
	@command -v noisefloor >/dev/null || \
	    echo "The program is $(BINARY); make install installs it on your PATH."

build: setup-build
	@$(CARGO) build --release --locked --package cli

# Guests are x86-64's: elsewhere, the lab reports that.
lab: setup-lab
	@[ "$$(uname -m)" != x86_64 ] || $(CARGO) xtask guest

all: build lab
	@$(CARGO) build --release --locked --package capi --package tif

# Most crates are built once for the tests, so that incremental compilation has no use.
test: setup-test
	@CARGO_INCREMENTAL=0 $(CARGO) xtask ci

# With the tests that build several kernels: about three hours on two CPUs, of which the 22 kernels
# of the experiment `trim` take two.
test-all: setup-test
	@CARGO_INCREMENTAL=0 NOISEFLOOR_TEST_ALL=1 $(CARGO) xtask ci

bench: lab
	@$(CARGO) bench --locked --package measure
	@$(CARGO) bench --locked --package cli

# ARCH=arm64: for another architecture; PACKAGE_VERSION: another version than that of Cargo.toml.
packages: setup-packages
	@env -u MAKEFLAGS PATH="$$(scripts/toolchain $(ARCH)):$$PATH" $$(scripts/target) \
	    cargo xtask packages $(ARCH:%=--arch %) $(PACKAGE_VERSION:%=--version %)

setup-build setup-lab setup-test setup-packages: setup-%:
	@scripts/setup $* $(ARCH)

# Under sudo nothing is built, so that no file in the tree is owned by root.
install:
	@if [ -z "$$SUDO_USER" ]; then $(MAKE) --no-print-directory all; fi
	@for file in "$(BINARY)" "$(LIBRARIES_FROM)/libtif.a"; do \
	    test -e "$$file" || { echo 'first, without sudo: make all' >&2; exit 1; }; \
	done
	@$(MAKE) --no-print-directory install-tool install-libraries
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig
	@echo 'installed $(BIN)/noisefloor, its man pages, completions and the files of its lab,'
	@echo 'and libnoisefloor and libtif with their headers for C; a daily check and an exporter'
	@echo 'for Prometheus are not enabled: systemctl enable --now noisefloor-check.timer,'
	@echo 'noisefloor-exporter.service'

# Both install what is built; packages are made of them.
install-tool:
	@set -e; made=$$(mktemp -d); trap 'rm -rf "$$made"' EXIT; \
	"$(GENERATOR)" generate man "$$made"; \
	"$(GENERATOR)" generate completions "$$made"; \
	install -D -m 755 "$(BINARY)" $(BIN)/noisefloor; \
	if [ -e "$(LAB)/noisefloor-agent" ]; then \
	    install -D -m 755 "$(LAB)/noisefloor-agent" $(LIB)/noisefloor-agent; \
	    install -m 644 "$(LAB)/noisefloor-counter.so" $(LIB); \
	fi; \
	install -d -m 755 $(SHARE)/man/man1; \
	install -m 644 "$$made"/*.1 $(SHARE)/man/man1; \
	install -D -m 644 "$$made"/noisefloor.bash $(BASH)/noisefloor; \
	install -D -m 644 "$$made"/_noisefloor $(ZSH)/_noisefloor; \
	install -D -m 644 "$$made"/noisefloor.fish $(FISH)/noisefloor.fish; \
	install -D -m 644 crates/cli/systemd/noisefloor-check.timer \
	    $(UNITS)/noisefloor-check.timer; \
	sed 's|@PREFIX@|$(PREFIX)|' crates/cli/systemd/noisefloor-check.service.in \
	    >$(UNITS)/noisefloor-check.service; \
	sed 's|@PREFIX@|$(PREFIX)|' crates/cli/systemd/noisefloor-exporter.service.in \
	    >$(UNITS)/noisefloor-exporter.service; \
	install -D -m 644 deploy/prometheus/noisefloor.rules.yml \
	    $(SHARE)/noisefloor/noisefloor.rules.yml; \
	install -m 644 deploy/grafana/noisefloor.json $(SHARE)/noisefloor/grafana.json

install-libraries:
	@set -e; install -d -m 755 $(INCLUDE) $(CLIB)/pkgconfig; \
	$(EACH_LIBRARY) \
	    install -m 644 $$crate/include/*.h $(INCLUDE); \
	    install -m 755 "$(LIBRARIES_FROM)/lib$$name.so" $$so.$(VERSION); \
	    ln -sf lib$$name.so.$(VERSION) $$so.$$abi; \
	    ln -sf lib$$name.so.$$abi $$so; \
	    install -m 644 "$(LIBRARIES_FROM)/lib$$name.a" $(CLIB); \
	    $(STRIP) -g -R .llvmbc -R .llvmcmd $(CLIB)/lib$$name.a 2>/dev/null || :; \
	    sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' \
	        $$crate/$$name.pc.in >$(CLIB)/pkgconfig/$$name.pc; \
	done

uninstall:
	rm -f $(BIN)/noisefloor $(SHARE)/man/man1/noisefloor.1 \
	    $(SHARE)/man/man1/noisefloor-*.1 $(BASH)/noisefloor \
	    $(ZSH)/_noisefloor $(FISH)/noisefloor.fish \
	    $(LIB)/noisefloor-agent $(LIB)/noisefloor-counter.so \
	    $(UNITS)/noisefloor-check.timer $(UNITS)/noisefloor-check.service \
	    $(UNITS)/noisefloor-exporter.service \
	    $(SHARE)/noisefloor/noisefloor.rules.yml $(SHARE)/noisefloor/grafana.json
	@$(EACH_LIBRARY) \
	    (cd $$crate/include && for header in *.h; do rm -f $(INCLUDE)/$$header; done); \
	    rm -f $$so $$so.$$abi $$so.$(VERSION) $(CLIB)/lib$$name.a \
	        $(CLIB)/pkgconfig/$$name.pc; \
	done
	[ ! -d $(LIB) ] || rmdir --ignore-fail-on-non-empty $(LIB)
	[ ! -d $(SHARE)/noisefloor ] || rmdir --ignore-fail-on-non-empty $(SHARE)/noisefloor

.PHONY: help run build lab all test test-all bench setup-build setup-lab setup-test setup-packages \
	install install-tool install-libraries uninstall packages
