# Atoll's entry points; `make` alone lists them. Everything else is `cargo xtask`.

PREFIX ?= $(HOME)/.local
# Outside of the checkout, so that a fresh clone finds what another has built; scripts/mirror says how.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/atoll/target
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin
atoll = $(CARGO_TARGET_DIR)/release/atoll
root = $(DESTDIR)$(PREFIX)
share = $(root)/share

.DEFAULT_GOAL := help
.PHONY: help tools run test test-deep build install clean setup

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

tools: ## set up, and build atoll-tools and the lab's counter, without the SQL engine: some three minutes
	@scripts/setup.sh tools
	@scripts/mirror cargo build --locked --release -p atoll-tools -p atoll-plugin
	@echo "built $(atoll)-tools"

run: build ## set up, build, and run the demo (ARGS= goes to it, such as ARGS=--json)
	@$(atoll) demo $(ARGS)

test: ## set up, and run all checks; MAY_SKIP=lab,… accepts tests skipped for want of it
	@scripts/setup.sh tests
	@ATOLL_SHARE=$$(git rev-parse HEAD 2>/dev/null) scripts/mirror cargo --locked xtask ci $(addprefix --may-skip ,$(MAY_SKIP))

test-deep: ## set up, and run all of what `make test` takes a share of: some two hours (PARTS= some of it)
	@scripts/setup.sh tests
	@ATOLL_REVISION=$$(git describe --always --dirty 2>/dev/null) scripts/mirror cargo --locked xtask deep $(PARTS)

build: setup ## set up, and build everything in release mode
	@scripts/mirror cargo build --locked --release --workspace

install: build ## put the binaries, man pages and shell completions under PREFIX (default: $HOME/.local)
	@install -D -m 755 $(atoll) $(root)/bin/atoll
	@install -D -m 755 $(atoll)-bench $(root)/bin/atoll-bench
	@install -D -m 755 $(atoll)-tools $(root)/bin/atoll-tools
	@$(atoll) man $(share)/man/man1
	@$(atoll)-bench man $(share)/man/man1
	@mkdir -p $(share)/bash-completion/completions $(share)/zsh/site-functions \
		$(share)/fish/vendor_completions.d
	@$(atoll) completions bash > $(share)/bash-completion/completions/atoll
	@$(atoll) completions zsh > $(share)/zsh/site-functions/_atoll
	@$(atoll) completions fish > $(share)/fish/vendor_completions.d/atoll.fish
	@echo "installed into $(root): bin/atoll, bin/atoll-bench, bin/atoll-tools, share/man, completions"

clean: ## remove everything built
	@cargo clean

setup: ## install what a build needs, or say what is missing
	@scripts/setup.sh
