# SPDX-License-Identifier: Apache-2.0
# A thin front door: meson and ninja build, scripts/ does the rest.
#
#   make                     build/firebreak
#   make demo                what Firebreak does, in half a minute
#   make test                unit tests, virtual time, end to end
#   make check               layers, purity, headers, sizes, format
#   make fuzz                every fuzz target for FUZZ_SECONDS (30)
#   make bench               what detection costs; against HAProxy and nginx, as ratios
#   make proof               docs/proof/detectors.md: what the judge reaches, made anew
#   make proof-days          docs/proof/days.md: eleven bad days on this machine, in eleven minutes
#   scripts/proof-arena      docs/proof/arena.md: in the protection arena, beside its best peers
#   make bench-instructions  instructions and allocations per request
#   make install             into DESTDIR and PREFIX (/usr/local)
#   make clean
#
# scripts/bootstrap [--test] installs what these need.

BUILD        ?= build
FUZZ_SECONDS ?= 30
DESTDIR      ?=
PREFIX       ?= /usr/local
SYSCONFDIR   ?= /etc
ifeq ($(origin CC),default)
CC := gcc
endif
export CC

.PHONY: all configure demo test unit e2e check fuzz bench proof proof-days bench-instructions install clean

all: configure
	@ninja -C $(BUILD) firebreak

configure:
	@scripts/configure $(BUILD)

demo: all
	@$(BUILD)/firebreak demo

test: unit e2e

unit: configure
	@ninja -C $(BUILD)
	@meson test -C $(BUILD) --no-rebuild --print-errorlogs

e2e: all
	@BUILD=$(BUILD) scripts/e2e

check: configure
	@BUILD=$(BUILD) scripts/check

fuzz:
	@scripts/fuzz $(FUZZ_SECONDS)

bench: all
	@BUILD=$(BUILD) scripts/bench

proof: configure
	@BUILD=$(BUILD) scripts/proof-detectors

proof-days: all
	@FIREBREAK=$(abspath $(BUILD)/firebreak) scripts/proof-days

bench-instructions: configure
	@BUILD=$(BUILD) scripts/bench-instructions

install: all
	install -D -m 755 $(BUILD)/firebreak $(DESTDIR)$(PREFIX)/bin/firebreak
	install -D -m 644 deploy/firebreak.1 $(DESTDIR)$(PREFIX)/share/man/man1/firebreak.1
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' deploy/firebreak.service \
	    > $(DESTDIR)$(PREFIX)/lib/systemd/system/firebreak.service
	chmod 644 $(DESTDIR)$(PREFIX)/lib/systemd/system/firebreak.service
	install -D -m 644 examples/firebreak.yaml $(DESTDIR)$(PREFIX)/share/doc/firebreak/firebreak.yaml
	@# An administrator's configuration is never overwritten.
	test -e $(DESTDIR)$(SYSCONFDIR)/firebreak/firebreak.yaml || \
	    install -D -m 644 examples/firebreak.yaml $(DESTDIR)$(SYSCONFDIR)/firebreak/firebreak.yaml

clean:
	rm -rf $(BUILD)
