# `make demo` and `make test` are all a newcomer needs; both install what they need into .venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
LEAN := .venv/.lean
# Leaves are the unit of parallelism; one BLAS thread makes timings and bits repeatable.
PIN := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: setup demo test browser lint types format unit coverage test-oldest sanitize soak bench bench-accuracy clean

setup: $(STAMP)

$(STAMP): pyproject.toml setup.py src/spngp/_linalg/native.c
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# What the demo needs and nothing for developers: about 280 MB.
$(LEAN): pyproject.toml setup.py src/spngp/_linalg/native.c
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[report]'
	touch $@

demo: $(if $(wildcard $(STAMP)),$(STAMP),$(LEAN))
	$(PIN) $(BIN)/python examples/first_steps.py

test: lint types browser unit

# The report's tests drive the system's Chromium; where there is none and none can be had, they are skipped.
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable
browser:
	@for name in $(BROWSERS); do command -v $$name >/dev/null && exit 0; done; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "installing chromium for the tests of the report"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } >/dev/null 2>&1 \
		|| echo "no chromium: the report will not be tested in a browser"; \
	else echo "no chromium: the report will not be tested in a browser"; fi

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# Tests run on two processes, file by file; `make unit WORKERS=` runs them one by one.
WORKERS := --numprocesses 2 --dist loadfile
unit: $(STAMP)
	$(PIN) $(BIN)/python -m pytest -q $(WORKERS)

# The same tests with branch coverage, for which Python 3.11 takes about a third longer; `.venv/bin/coverage report -m` then
# shows what is not covered.
coverage: $(STAMP)
	$(PIN) $(BIN)/python -m pytest -q $(WORKERS) --cov --cov-report=
	@echo "branch coverage: $$($(BIN)/coverage report --format=total) %"

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The lower bounds of pyproject.toml, held to the same tests.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --editable '.[all,skpro,dask,test]' pre-commit --constraint constraints-oldest.txt
	$(PIN) .venv-oldest/bin/python -m pytest -q $(WORKERS) --doctest-ignore-import-errors

# The C loops under AddressSanitizer and UndefinedBehaviorSanitizer, in a copy of the package; the first error ends a test.
SANITIZED := build/sanitize
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
sanitize: $(STAMP)
	rm -rf $(SANITIZED)
	mkdir -p $(SANITIZED)
	cp -r src/spngp $(SANITIZED)/spngp
	rm -f $(SANITIZED)/spngp/_linalg/_native*.so
	gcc -shared -fPIC -O1 -g -fno-math-errno -fopenmp-simd $(SANITIZERS) \
		-I$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
		src/spngp/_linalg/native.c -o $(SANITIZED)/spngp/_linalg/_native.abi3.so
	$(PIN) PYTHONPATH=$(SANITIZED) PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		sh -c '$(BIN)/python -c "import spngp._linalg.compiled as c; assert c.library and \"$(SANITIZED)\" in c.__file__" && \
		$(BIN)/python -m pytest -q -p no:cacheprovider $(SANITIZED_TESTS)'
SANITIZED_TESTS := tests/linalg tests/kernels tests/gp

# Long tests, at most 40 minutes on two cores; writes docs/trust.md. `make soak SECTIONS=load,torture` runs some of them.
SECTIONS :=
soak: $(STAMP)
	$(PIN) PYTHONPATH=benchmarks:tests $(BIN)/python -m soak $(if $(SECTIONS),--sections $(SECTIONS))

bench: $(STAMP)
	$(PIN) $(BIN)/python benchmarks/leaf.py
	$(PIN) $(BIN)/python benchmarks/scale.py

# Against LightGBM, NGBoost and scikit-learn (and GPBoost, GPyTorch where installed); needs $$SPNGP_DATA.
bench-accuracy: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench]'
	$(PIN) $(BIN)/python benchmarks/accuracy.py

clean:
	rm -rf .venv .venv-oldest .mypy_cache .ruff_cache .pytest_cache .coverage demo screenshots
