# SPDX-License-Identifier: BSD-2-Clause
# make check and the other targets that test, measure or examine what was built.

.PHONY: deps deps-check deps-lint deps-reference deps-fuzz check check-failed check-fast texts \
	verbs-programs programs traces test-binaries unit e2e cross fuzz fuzz-corpus proof sim-join \
	sim-soak tsan soak day valgrind mutate plants coverage mutate-random mutate-every interop interop-ipoib \
	interop-ib interop-opensm peers conformance conform-usrsctp bench bench-guest guard reference lint format

# The targets that everybody begins with install what is missing, the others name it.
demo check check-failed check-fast: INSTALL := --install
deps:
	$(Q)tools/deps.sh $(INSTALL) build
deps-check:
	$(Q)tools/deps.sh $(INSTALL) build check
deps-lint:
	$(Q)tools/deps.sh lint
deps-reference:
	$(Q)tools/deps.sh build reference
deps-fuzz:
	$(Q)tools/deps.sh build fuzz

check check-failed: deps-check
	$(Q)+$(SUBMAKE) all man verbs-programs build/opt/guard build/opt/guard_ipoib build/opt/guard_verbs build/opt/stress-verbs \
		$(SIM) $(LIES) build/opt/scale-ipoib build/opt/sched
	$(Q)+$(SUBMAKE) VARIANT=asan test-binaries
	$(Q)tests/run.sh build/asan build/opt $(if $(filter check-failed,$@),--failed)

# What pages, headers and lists say of each other, in seconds: what make check says of it, too
TEXTS := tests/package/docs.sh tests/package/words.sh tests/package/mutations.sh \
	tests/package/headers.sh tests/citations.sh
texts: $(TEXTS:%=texts-of/%)
texts-of/%:
	$(Q)mkdir -p build; bash $* >build/$(notdir $*).log || { grep -v '^ok' build/$(notdir $*).log; exit 1; }
# What needs neither a sanitizer nor other people's programs
BEGAN := $(shell date +%s)
check-fast:
	$(Q)tools/deps.sh $(INSTALL) build fast
	$(Q)+$(SUBMAKE) texts
	$(Q)+$(SUBMAKE) build/opt/unit build/opt/e2e
	$(Q)build/opt/unit --jobs 2
	$(Q)build/opt/e2e --jobs 2
	@echo "check-fast: $$(($$(date +%s) - $(BEGAN))) s"

verbs-programs: $(VPROGS) $(VCLOCK)
programs: all verbs-programs
	$(Q)tools/deps.sh programs
	$(Q)bash tests/programs/run.sh $(B) $(T)
# The same seed gives the same trace, N times on each wire.
traces: deps-check all
	$(Q)bash tests/verbs/traces.sh $(B) $(or $(N),1000)
test-binaries: $(TLS_SO) $(if $(filter asan,$(VARIANT)),$(BARE),$(UNIT) $(E2E) $(VTEST)) $(FAULT) $(LIES) $(LIES_IPOIB) \
	$(FUZZ_BIN) $(SESSCTL) $(EXAMPLES) $(STRESS) \
	$(SIM)

# make unit T=mpa_rx: the suites whose name begins so
unit: $(UNIT)
	$(Q)$(UNIT) --filter '$(or $(T),)*/*'
e2e: $(E2E)
	$(Q)$(E2E) --filter '$(or $(T),)*/*'

cross:
	$(Q)tests/cross/run.sh $(T)
# FUZZ=name for one target alone; fuzz-corpus then keeps what it found, in the smallest form.
FUZZ_SECONDS ?= 60
FUZZ	     ?= $(FUZZ_NAMES)
fuzz fuzz-corpus: deps-fuzz
	$(Q)+$(SUBMAKE) VARIANT=fuzz CC=clang $(FUZZ:%=build/fuzz/fuzz-%)
	$(Q)tests/fuzz/run.sh $(if $(filter fuzz-corpus,$@),--merge) build/fuzz $(FUZZ_SECONDS) $(FUZZ)

# Parsers without undefined behaviour, by Frama-C (package frama-c-base): two minutes of processor time
proof:
	$(Q)tools/deps.sh proof
	$(Q)tests/proof/run.sh

# Ten thousand interfaces that join within a minute: some minutes of processor time.
sim-join: deps-check
	$(Q)+$(SUBMAKE) build/opt/scale-ipoib
	$(Q)build/opt/scale-ipoib join 10000

# Two interfaces that connect to each other, a million times, by seed; and ten million seeds of three
# starts of two connection managers, one in three against one that does as Linux does.
sim-soak: deps-check
	$(Q)+$(SUBMAKE) build/opt/unit build/opt/sim-crossed
	$(Q)DDPS_SIM_RUNS=1000000 build/opt/unit --filter 'ipoib_soak/*' --jobs 2
	$(Q)build/opt/sim-crossed $(SEED) 10000000

TSAN_BIN := build/tsan/threads build/tsan/verbs-threads
tsan: deps-check
	$(Q)+$(SUBMAKE) VARIANT=tsan $(TSAN_BIN)
	$(Q)for t in $(TSAN_BIN); do \
		TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 timeout 300 $$t || exit; \
	done
# Random calls, SOAK_SECONDS of each program under each sanitizer, whole sessions in a simulated kernel
# for as long, ten million associations, fifty changes of the code at random, and each fuzz target for as
# long, with what they find kept;
# SEED=n to go on elsewhere or to play it again.
SOAK_SECONDS ?= 300
SEED	     ?= 1
soak: deps-check
	$(Q)+$(SUBMAKE) VARIANT=asan $(STRESS:$(B)/%=build/asan/%)
	$(Q)+$(SUBMAKE) VARIANT=tsan $(STRESS:$(B)/%=build/tsan/%)
	$(Q)for t in $(notdir $(STRESS)); do \
		build/asan/$$t $(SEED) $(SOAK_SECONDS) && \
		TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 \
			build/tsan/$$t $(SEED) $(SOAK_SECONDS) || exit; \
	done
	$(Q)+$(SUBMAKE) build/opt/sim-sctp build/opt/sim-session build/opt/sim-ipoib build/opt/sim-verbs
	$(Q)build/opt/sim-session $(SEED) 1000000000 $(SOAK_SECONDS)
	$(Q)build/opt/sim-verbs $(SEED) 1000000000 $(SOAK_SECONDS)
	$(Q)build/opt/sim-ipoib $(SEED) 1000000000 $(SOAK_SECONDS)
	$(Q)build/opt/sim-sctp $(SEED) 10000000
	$(Q)+$(MAKE) mutate-random N=50 SEED=$(SEED)
	$(Q)+$(MAKE) fuzz-corpus FUZZ_SECONDS=$(SOAK_SECONDS)

# Sessions that come and go, for an hour; what the process takes is drawn into build/day.svg.  A short
# form: make day DAY_SECONDS=120 DAY_SESSIONS=1000
DAY_SECONDS  ?= 3600
DAY_SESSIONS ?= 10000
day: deps-check
	$(Q)+$(SUBMAKE) build/opt/day
	$(Q)status=0; build/opt/day $(DAY_SECONDS) $(DAY_SESSIONS) $(SEED) >build/day.tsv || status=1; \
		grep -E '^(ok|not ok|#)' build/day.tsv; \
		tests/stress/plot.py build/day.tsv build/day.svg && exit $$status
valgrind: deps-check
	$(Q)+$(SUBMAKE) build/opt/unit build/opt/sessctl
	$(Q)tests/valgrind.sh build/opt/unit build/opt/sessctl

# The tests of attacks, against a stack that has its defences taken away one by one
mutate: deps-check
	$(Q)+$(SUBMAKE) build/opt/unit build/opt/e2e build/opt/verbs-test build/opt/sched
	$(Q)tests/mutate/run.sh build/opt

# A fault for each checker of the simulations, which has to find it.  A minute or two of processor time
plants: deps-check
	$(Q)+$(SUBMAKE) $(SIM:$(B)/%=build/opt/%)
	$(Q)tests/sim/plants.sh build/opt $(if $(PLANT),'$(PLANT)')

# Branches and conditions that the tests of the library take and show to decide, by clang: some minutes.
# GUEST=1 measures what only a kernel with SCTP runs, too.  LIST=1 prints what has no reason in tests/coverage/reasons.tsv, of the run before.
COV_CC = $(if $(findstring ccache,$(CC)),"ccache clang-19",clang-19)
coverage:
	$(Q)tools/deps.sh build check coverage
	$(Q)+$(SUBMAKE) VARIANT=cov CC=$(COV_CC) all test-binaries verbs-programs build/cov/sched
	$(Q)CC=$(COV_CC) tests/coverage/run.sh build/cov $(if $(LIST),--list)

# One operator, constant or statement after another changed: EACH=300 of each folder by SEED, 0: all of them; or N
# of them at random, which everything is shown to.  FILES=part of a name, a function or an id.
N ?= 200
EACH ?= 300
mutate-every: deps-check
	$(Q)nice tests/mutate/every.py build/every $(if $(filter-out 0,$(EACH)),--each $(EACH) --seed $(SEED)) $(FILES)
mutate-random: deps-check
	$(Q)nice tests/mutate/every.py build/every --all --number $(N) --seed $(SEED) $(FILES)

interop: all $(UNIT) $(E2E)
	$(Q)tests/interop/run.sh
# Linux's ib_ipoib and ib_cm in the same kind of guest; TIMES=10: so often, with one guest
interop-ipoib: interop-opensm $(SESSCTL) $(B)/ipoib-starts $(B)/example-ib_accept
	$(Q)tests/interop-ipoib/run.sh $(TIMES:%=--times=%)
	$(Q)SESSCTL=$(SESSCTL) tests/netns/conform.sh 20 2

# The bridge by an adapter, on a simulated fabric that OpenSM manages; infiniband-diags on a subnet in UDP
interop-opensm: $(SESSCTL) $(UMAD_SO) $(B)/ib-preload.so $(OPENSM_PORT)
	$(Q)tests/interop-ipoib/opensm/run.sh $(B)
	$(Q)tests/interop-ipoib/opensm/diags.sh $(B)

# CM over a simulated InfiniBand fabric
interop-ib: $(SESSCTL) $(B)/ib-preload.so
	$(Q)tests/ib/run.sh $(B)

# Every peer that can be had here, asked again: docs/peers.md.  A peer whose guest cannot run stays as it was.
peers: all $(B)/sessctl-usrsctp $(B)/ipoib-starts
	$(Q)tests/conformance/peers_ask.sh $(B)

# Runs the cases on both wires and writes docs/conformance.md; then breaks the stack on purpose.
conformance: deps-check
	$(Q)+$(SUBMAKE) build/opt/sessctl
	$(Q)+$(SUBMAKE) VARIANT=asan build/asan/sessctl
	$(Q)tests/conformance/run.sh build/asan/sessctl build/conformance --write
	$(Q)tests/conformance/mutate.sh build/opt

# The cases of SCTP itself against usrsctp, in both roles: a sessctl whose SCTP that is.
conform-usrsctp: $(SESSCTL) $(B)/sessctl-usrsctp
	$(Q)tests/conformance/usrsctp.sh $(B)

# Results in build/bench and two pages of docs; BENCH=quick for a short run, not into docs
bench:
	$(Q)tools/deps.sh build bench
	$(Q)+$(SUBMAKE) all $(BENCH_BIN)
	$(Q)bench/run.sh build/opt build/bench
	$(Q)[ "$(BENCH)" = quick ] || bench/report.sh build/bench --docs >/dev/null

# Soft-iWARP and soft RoCE in the guest of make interop; BENCH=quick for a short run, not into docs
bench-guest: all
	$(Q)tools/deps.sh interop
	$(Q)bench/guest.sh build/bench $(if $(filter quick,$(BENCH)),,--docs)

# Instructions of the data path against bench/guard.txt; part of check
guard: deps-check
	$(Q)+$(SUBMAKE) build/opt/guard build/opt/guard_ipoib build/opt/guard_verbs
	$(Q)bench/guard.sh build/opt

# The public headers as HTML
reference: deps-reference
	$(Q)tools/reference/html.sh build/reference

lint: deps-lint
	$(Q)+$(SUBMAKE) -k -O -f mk/lint.mk
format: deps-lint
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h' ':!tests/abi')
