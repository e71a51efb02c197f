# The thin front: every target is one or two commands that can be typed by hand. `make help` lists them.
JOBS ?= $(shell nproc)
PYTHON = /usr/bin/python3

.PHONY: build demo test test-asan test-tsan stress-replay bench format lint clean help deps

build: deps             ## Build build/release/quern (the default)
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)

demo: build             ## Train a model that writes small stories, in a minute or two, and read them
	scripts/demo

test: build             ## Build and run all tests
	ctest --test-dir build/release --output-on-failure --parallel $(JOBS)

test-asan: deps         ## The same under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS)
	ctest --test-dir build/asan --output-on-failure --parallel $(JOBS)

test-tsan: deps         ## The same under ThreadSanitizer
	cmake --preset tsan
	cmake --build --preset tsan --parallel $(JOBS)
	ctest --test-dir build/tsan --output-on-failure --parallel $(JOBS)

stress-replay: build    ## Replay buffers under threads, and processes that are killed, for a minute each
	QUERN_REPLAY_STRESS_SECONDS=60 build/release/tests/replay_test --gtest_filter='ReplayStress*:Killing*'

bench: build            ## Measure kernels, queue, replay and training against limits and peers; fails when a bar is missed
	build/release/quern bench kernels
	build/release/quern bench queue
	build/release/quern bench replay
	build/release/quern bench train --preset tiny
	build/release/quern bench train --preset small
	build/release/quern bench train --preset gpt2

format:                 ## Rewrite the sources in the style of .clang-format
	scripts/install-deps --lint
	scripts/lint format

lint:                   ## clang-format, clang-tidy and the layers; changes nothing
	scripts/install-deps --lint
	cmake --preset dev
	cmake --build --preset dev --target quern_commit
	scripts/lint check $(JOBS)
	$(PYTHON) scripts/check_layers.py

clean:                  ## Remove everything that was built
	rm -rf build

deps:
	@scripts/install-deps

help:                   ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile
