# A thin front end: every target is one or a few commands that can be typed by hand. `make help` lists them.
JOBS ?= $(shell nproc)
PYTHON = /usr/bin/python3

.PHONY: build demo test test-asan test-tsan check-asan check-tsan check-package check-style stress-replay bench format lint \
  clean help deps

build: deps             ## Build everything: the program, the library, Python, tests (the default)
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)

demo: deps              ## Build only the program, train a model that writes short stories, and print some
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target quern_program
	scripts/demo

test: build             ## Build and run all tests
	ctest --test-dir build/release --output-on-failure --parallel $(JOBS)

test-asan: deps         ## Run all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS)
	ctest --test-dir build/asan --output-on-failure --parallel $(JOBS)

test-tsan: deps         ## Run all tests under ThreadSanitizer
	cmake --preset tsan
	cmake --build --preset tsan --parallel $(JOBS)
	ctest --test-dir build/tsan --output-on-failure --parallel $(JOBS)

check-asan: deps        ## Run the tests of parsers, files and shared memory under AddressSanitizer and UBSan
	scripts/check_sanitizer asan $(JOBS)

check-tsan: deps        ## Run the tests of threads and shared memory under ThreadSanitizer
	scripts/check_sanitizer tsan $(JOBS)

check-package: build    ## Test Quern from outside the tree: installed, as a subdirectory, with pip
	scripts/check_consumer build/release
	scripts/check_pip build/release

stress-replay: build    ## Stress replay buffers with threads, and with processes that are killed, for a minute each
	QUERN_REPLAY_STRESS_SECONDS=60 build/release/tests/replay_test --gtest_filter='ReplayStress*:Killing*'

bench: build            ## Benchmark kernels, queue, replay and training against limits and peers; fail on a missed bar
	build/release/quern bench kernels
	build/release/quern bench queue
	build/release/quern bench replay
	build/release/quern bench train --preset tiny
	build/release/quern bench train --preset small
	build/release/quern bench train --preset gpt2

format:                 ## Format the sources with clang-format
	scripts/install-deps --format
	scripts/lint format

check-style: deps       ## Fail if clang-format would change a file, or an #include violates the layers
	scripts/install-deps --format
	scripts/lint style
	$(PYTHON) scripts/check_layers.py

lint:                   ## Check clang-format, clang-tidy and the layers; changes nothing
	scripts/install-deps --lint
	cmake --preset dev
	cmake --build --preset dev --target quern_commit
	scripts/lint check $(JOBS)
	$(PYTHON) scripts/check_layers.py

clean:                  ## Remove all build output
	rm -rf build

deps:
	@scripts/install-deps

help:                   ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile
