# Atoll's entry points; `make` alone lists them. Everything else is `cargo xtask`.

PREFIX ?= $(HOME)/.local
# Outside of the checkout, so that a fresh clone finds what another has built.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/atoll/target
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin
atoll = $(CARGO_TARGET_DIR)/release/atoll

.DEFAULT_GOAL := help
.PHONY: help run test build install clean setup

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

run: build ## set up, build, and run the demo (ARGS= goes to it, such as ARGS=--json)
	@$(atoll) demo $(ARGS)

test: setup ## set up, and run all checks: format, tidy, licences, clippy, tests
	@cargo --locked xtask ci

build: setup ## set up, and build everything in release mode
	@cargo build --locked --release --workspace

install: build ## put the binary into PREFIX/bin (default: $HOME/.local)
	@install -D -m 755 $(atoll) $(DESTDIR)$(PREFIX)/bin/atoll

clean: ## remove everything built
	@cargo clean

setup: ## install what a build needs, or say what is missing
	@scripts/setup.sh
