# Front door. The work is done by meson and ninja under build/; see `make help`.
#
# BUILD   where the builds go                         (build)
# prefix  where `make install` puts things            (/usr/local)
# DESTDIR staging root for `make install`
# SCALE   how much work `make torture` does           (20 times `make check`)
# TIME    seconds per target for `make fuzz`          (60)
# LAYER   the layer for `make unit`                   (all)

BUILD ?= build
SCALE ?= 20
TIME ?= 60
LAYER ?=
export BUILD
ifdef prefix
export prefix
endif

MAKEFLAGS += --no-print-directory

.PHONY: all setup setup-build demo check unit bench install asan tsan models fuzz torture programs format clean help

all:
	@scripts/build gcc

setup:
	@scripts/setup-packages

setup-build:
	@scripts/setup-packages build

demo: setup-build
	@scripts/demo $(BUILD)/demo

check: setup
	@scripts/run-tests

unit: setup
	@scripts/run-tests --only gcc --suite unit$(if $(LAYER),-$(LAYER))

bench: setup-build
	@scripts/bench $(BUILD)

# The loader looks for a new library in its cache only.
install: all
	@meson install -C $(BUILD)/gcc --no-rebuild
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig

asan: setup
	@scripts/run-tests --only asan

tsan: setup
	@scripts/run-tests --only tsan

models: setup
	@model/run

fuzz: setup
	@scripts/fuzz $(BUILD)/fuzz $(TIME)

torture: setup
	@scripts/run-tests --only gcc,tsan --suite torture --scale $(SCALE)

programs: setup
	@scripts/setup-packages programs
	@scripts/run-tests --only gcc --suite programs --suite programs-long

format:
	@scripts/list-files '*.[ch]' include src tests bench examples | xargs -r clang-format -i

clean:
	rm -rf $(BUILD)

help:
	@echo 'make            build the library and the shelf command in $(BUILD)/gcc'
	@echo 'make setup      install the Debian packages that are missing; make setup-build: those of the build alone'
	@echo 'make demo       install what is missing, build, show what shelf does'
	@echo 'make check      install what is missing, build, run all tests (gcc, ASan+UBSan, TSan, clang, models)'
	@echo 'make unit       unit tests only; LAYER=fd for one layer'
	@echo 'make bench      run the benchmarks: $(BUILD)/bench.json, $(BUILD)/report.html'
	@echo 'make install    library, headers, shelf.pc, command and man pages; DESTDIR= prefix='
	@echo 'make asan       the tests of the ASan+UBSan build only'
	@echo 'make tsan       the tests of the ThreadSanitizer build only'
	@echo 'make models     check the models of locks, epochs, descriptors and names'
	@echo 'make torture    torture tests, SCALE=$(SCALE) times as long as in make check'
	@echo 'make programs   real programs of Debian on a shelf and on tmpfs, compared; an hour'
	@echo 'make fuzz       libFuzzer on each target, TIME=$(TIME) seconds each'
	@echo 'make format     clang-format over all C files'
	@echo 'make clean      remove $(BUILD)'
