# SPDX-License-Identifier: BSD-2-Clause
#
#   make            libraries and sessctl in build/opt
#   make demo       the main job over TCP and over SCTP
#   make check      everything that needs no guest, under ASan and UBSan
#   make help       the other targets

PREFIX	   ?= /usr/local
LIBDIR	   ?= $(PREFIX)/lib
# Python looks here for packages if the distribution says so, or PYTHONPATH
PYTHONDIR  ?= $(PREFIX)/share/ddpsess/python
DESTDIR	   ?=
VARIANT	   ?= opt
CC	   ?= gcc
B	   := build/$(VARIANT)
VERSION	   := $(shell sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' include/ddpsess/version.h)
# raised when a program of an earlier release would not run: docs/abi.md
SOVERSION  := 1
Q	   := $(if $(V),,@)
# as many jobs as make -jN says, else two
SUBMAKE	    = $(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j2)

# for those who work on it: a compiler of tomorrow may warn of more, which is no fault in a package
WERROR	   ?= $(if $(wildcard .git),-Werror)
WARN	   := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
OPT_opt	   := -O2 -g
OPT_asan   := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
OPT_tsan   := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
OPT_cov	   := -O1 -g
OPT_cross  := -O1 -g
OPT_fuzz   := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all
CPPFLAGS   += -D_GNU_SOURCE -Iinclude -Isrc
CFLAGS_ALL := -std=gnu11 -pthread -fPIC -fvisibility=hidden $(WARN) $(OPT_$(VARIANT)) $(CFLAGS)
LIB_LIBS   := -lisal -lnettle -pthread
TOOL_LIBS  := -ljansson
comma	   := ,
# sanitizers bring their own undefined symbols, so -z defs is for the real thing only
DEFS	   := $(if $(filter opt,$(VARIANT)),-Wl$(comma)-z$(comma)defs)

LIB_DIRS   := common ddp rdmap negotiate mpa_tcp sctp/parts sctp/send sctp sctp_ddp \
	sctp_ddp/backend $(addprefix sctp_ddp/backend/,native kernel) session watch
LIB_SRC	   := $(wildcard $(LIB_DIRS:%=src/%/*.c))
VERBS_SRC  := $(wildcard src/verbs/*.c src/verbs/*/*.c)
# its parts that need nothing of the others
VFAULT_SRC := $(wildcard src/verbs/fault/*.c src/verbs/profile/*.c)
# ports load the libraries that they need at run time, so nothing is linked for them
IPOIB_SRC  := $(wildcard src/ipoib_cm/*/*.c) src/common/sized.c src/common/siphash.c
CONF_SRC   := $(wildcard src/conform/*.c src/conform/*/*.c)
TOOL_DIRS  := cli report xfer watch ipoib ipoib/bridge ipoib/conform ipoib/show sessctl
TOOL_SRC   := $(wildcard $(TOOL_DIRS:%=tools/%/*.c))
UNIT_SRC   := $(wildcard tests/unit/*.c)
E2E_SRC	   := $(wildcard tests/e2e/*.c)
SUP_SRC	   := $(wildcard tests/support/*.c tests/peer/*.c)
EX_SRC	   := $(wildcard examples/*.c)
objs	    = $(patsubst %.c,$(B)/%.o,$(1))

LIB_A	   := $(B)/libddpsess.a
LIB_SO	   := $(B)/libddpsess.so.$(SOVERSION)
IPOIB_A	   := $(B)/libddpsess-ipoib.a
IPOIB_SO   := $(B)/libddpsess-ipoib.so.$(SOVERSION)
CONFORM_A  := $(B)/libddpsess-conform.a
CONFORM_SO := $(B)/libddpsess-conform.so.$(SOVERSION)
VERBS_SO   := $(B)/libddpsess-verbs.so
SONAME_DIR := $(B)/ddpsess/verbs
SONAME_SO  := $(SONAME_DIR)/libibverbs.so.1 $(SONAME_DIR)/librdmacm.so.1
SESSCTL	   := $(B)/sessctl
VIEW_SRC   := $(wildcard src/view/*.c)
VIEW_SO    := $(B)/ddpsess/libddpsess-view.so
VTEST_SRC  := $(wildcard tests/verbs/v*.c)
UNIT	   := $(B)/unit
VTEST	   := $(B)/verbs-test
E2E	   := $(B)/e2e
EXAMPLES   := $(patsubst examples/%.c,$(B)/example-%,$(EX_SRC))
MAN	   := $(patsubst man/%.scd,$(B)/man/%,$(wildcard man/*.scd))

.PHONY: all lib man demo cross check check-failed check-fast dist deb rpm release-check unit e2e sim-soak sim-join soak proof tsan day valgrind mutate mutate-random coverage interop interop-ib interop-ipoib \
	conformance peers bench fuzz fuzz-corpus guard lint format install uninstall clean help deps deps-check \
	deps-lint deps-fuzz deps-reference reference test-binaries verbs-programs programs
.DELETE_ON_ERROR:
.SECONDARY:

all: lib $(SESSCTL) $(VERBS_SO) $(SONAME_SO) $(VIEW_SO) $(EXAMPLES)
lib: $(LIB_A) $(LIB_SO) $(B)/libddpsess.so $(IPOIB_A) $(IPOIB_SO) $(B)/libddpsess-ipoib.so \
	$(CONFORM_A) $(CONFORM_SO) $(B)/libddpsess-conform.so

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC   $<")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# make coverage: what is measured is the library's, by clang
ifeq ($(VARIANT),cov)
$(B)/src/%.o: CFLAGS_ALL += -fprofile-instr-generate -fprofile-update=atomic \
	-fcoverage-mapping -fcoverage-mcdc
$(B)/tests/%.o: CFLAGS_ALL += -Wno-enum-enum-conversion
LDFLAGS += -fprofile-instr-generate
endif

# Criterion's test macros define functions without a prototype and shadow by design.
$(B)/tests/%.o: CFLAGS_ALL += -Wno-missing-prototypes
$(B)/tests/%.o: CPPFLAGS += -Itests -DVD_OUTER
$(B)/tests/%.o $(B)/tools/%.o: CPPFLAGS += -Itools

$(LIB_A): $(call objs,$(LIB_SRC))
$(IPOIB_A): $(call objs,$(IPOIB_SRC))
$(CONFORM_A): $(call objs,$(CONF_SRC))
$(LIB_A) $(IPOIB_A) $(CONFORM_A):
	$(if $(Q),@echo "  AR   $@")
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(LIB_SO): $(call objs,$(LIB_SRC)) src/libddpsess.map
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared -Wl,-soname,libddpsess.so.$(SOVERSION) \
		-Wl,--version-script=src/libddpsess.map $(DEFS) -o $@ $(filter %.o,$^) $(LIB_LIBS)
$(IPOIB_SO): $(call objs,$(IPOIB_SRC)) src/ipoib_cm/libddpsess-ipoib.map
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared -Wl,-soname,libddpsess-ipoib.so.$(SOVERSION) \
		-Wl,--version-script=src/ipoib_cm/libddpsess-ipoib.map $(DEFS) -o $@ $(filter %.o,$^)
$(B)/libddpsess.so: $(LIB_SO)
# It uses the library's sessions like any program.
$(CONFORM_SO): $(call objs,$(CONF_SRC)) src/conform/libddpsess-conform.map $(LIB_SO)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared -Wl,-soname,libddpsess-conform.so.$(SOVERSION) \
		-Wl,--version-script=src/conform/libddpsess-conform.map $(DEFS) -o $@ \
		$(filter %.o,$^) $(LIB_SO)
$(B)/libddpsess-ipoib.so: $(IPOIB_SO)
$(B)/libddpsess-conform.so: $(CONFORM_SO)
$(B)/libddpsess.so $(B)/libddpsess-ipoib.so $(B)/libddpsess-conform.so:
	$(Q)ln -sf $(notdir $<) $@

$(B)/tools/sessctl/run_find.o: CPPFLAGS += -DSESSCTL_LIBDIR='"$(LIBDIR)"'

# The drop-in brings its own copy of the library, so that one file is all a preload needs.  Its
# sockets are the system's, whoever else is preloaded: src/verbs/vd_socket.c.
$(VERBS_SO): $(call objs,$(VERBS_SRC)) $(LIB_A) src/verbs/libddpsess-verbs.map
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared -Wl,--exclude-libs,ALL -Wl,--wrap=socket $(DEFS) \
		-Wl,--version-script=src/verbs/libddpsess-verbs.map \
		-o $@ $(filter %.o,$^) $(LIB_A) $(LIB_LIBS)

# It takes the place of functions of libc, which headers must not turn into others.
$(call objs,$(VIEW_SRC)): CPPFLAGS += -U_FORTIFY_SOURCE
$(VIEW_SO): $(call objs,$(VIEW_SRC))
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared $(DEFS) -o $@ $^ -ldl

# The same under the libraries' own names.  librdmacm.so.1 has the version nodes that programs ask
# it for and leads to libibverbs.so.1, which has all symbols: there is one copy of the state.
REAL_LIB    = $(shell $(CC) -print-file-name=$(1).so.1)
$(B)/verbs-map/verbs.map: tools/verbs-map.sh $(VERBS_SO)
	$(if $(Q),@echo "  GEN  $@")
	$(Q)tools/verbs-map.sh $(VERBS_SO) $(call REAL_LIB,libibverbs) \
		$(call REAL_LIB,librdmacm) $(@D)
$(SONAME_DIR)/libibverbs.so.1: $(B)/verbs-map/verbs.map $(call objs,$(VERBS_SRC)) $(LIB_A)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -Wno-missing-prototypes -Wno-strict-prototypes $(LDFLAGS) \
		-shared -Wl,-soname,$(@F) -Wl,--exclude-libs,ALL -Wl,--wrap=socket \
		-Wl,--version-script=$< $(DEFS) -o $@ $(B)/verbs-map/missing.c \
		$(filter %.o,$^) $(LIB_A) $(LIB_LIBS)
$(SONAME_DIR)/librdmacm.so.1: $(SONAME_DIR)/libibverbs.so.1
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--no-as-needed \
		-Wl,--version-script=$(B)/verbs-map/rdmacm.map -Wl,-rpath,'$$ORIGIN' -o $@ $<

$(SESSCTL): $(call objs,$(TOOL_SRC)) $(CONFORM_A) $(LIB_A) $(IPOIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIB_LIBS) $(TOOL_LIBS)

$(B)/example-ipoib_pair $(B)/example-ib_accept: $(IPOIB_A)
$(B)/example-conform: $(CONFORM_A)
$(B)/example-%: $(B)/examples/%.o $(LIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(filter-out $(LIB_A),$(filter %.a,$^)) $(LIB_A) $(LIB_LIBS)

# Unit tests also cover the pure parts of sessctl.
$(UNIT): $(call objs,$(UNIT_SRC) $(SUP_SRC) tests/sim/crossed_world.c tests/sim/sim_random.c \
		tests/sim/sim_shrink.c $(VFAULT_SRC) src/view/view_path.c \
		$(filter-out tools/sessctl/main.c,$(TOOL_SRC))) \
		$(CONFORM_A) $(LIB_A) $(IPOIB_A)
$(E2E): $(call objs,$(E2E_SRC) $(SUP_SRC)) $(LIB_A)
$(VTEST): $(call objs,$(VTEST_SRC) $(VERBS_SRC)) $(LIB_A)
# tests/peer: an SCTP that is not ours
$(UNIT) $(E2E): PEER_LIBS := -lusrsctp
$(UNIT) $(E2E) $(VTEST):
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ -lcriterion $(PEER_LIBS) $(LIB_LIBS) $(TOOL_LIBS)

VPROGS := $(B)/verbs-dlopen $(B)/verbs-plain $(B)/verbs-wrong $(B)/verbs-siw_peer
$(B)/verbs-siw_peer: tests/interop/guest/src/siw_peer.c
$(B)/verbs-siw_peer $(B)/verbs-wrong: VPROG_LIBS := -lrdmacm -libverbs
$(B)/verbs-dlopen $(B)/verbs-plain $(B)/verbs-wrong: $(B)/verbs-%: tests/verbs/%.c
$(VPROGS):
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $< -ldl $(VPROG_LIBS)
VCLOCK := $(B)/verbs-clock.so
$(VCLOCK): tests/verbs/quick_clock.c
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(LDFLAGS) -shared -fPIC -o $@ $<

# Criterion does not run under ThreadSanitizer: tests/tsan stands in for it.
THREAD_SRC := $(addprefix tests/,e2e/thread_test.c e2e/wait_test.c support/e2e.c support/two.c \
	tsan/main.c) $(wildcard tests/peer/*.c)
$(B)/threads: $(THREAD_SRC) $(wildcard tests/tsan/criterion/*.h) $(LIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CPPFLAGS) -Itests/tsan -Itests $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS) \
		-o $@ $(filter %.c %.a,$^) -lusrsctp $(LIB_LIBS)

THREAD_VERBS := $(addprefix tests/,verbs/verbs_threads_test.c verbs/verbs_waits_test.c verbs/vt.c \
	verbs/verbs_ud_threads_test.c verbs/vud.c tsan/main.c)
$(B)/verbs-threads: $(THREAD_VERBS) tests/verbs/vt.h tests/verbs/vud.h $(wildcard tests/tsan/criterion/*.h) \
		$(call objs,$(VERBS_SRC)) $(LIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CPPFLAGS) -Itests/tsan -Itests $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS) \
		-o $@ $(filter %.c %.o %.a,$^) $(LIB_LIBS)

# Where there is no Criterion: other C libraries and processors (tests/cross).  Tests of sessctl's parts, and
# those beside usrsctp, need more libraries.
CROSS_UNIT := $(filter-out $(shell grep -lE '#include "(cli|xfer|report|sessctl|ipoib|watch|verbs|view|bridge|show)/|sd_pair_fixture|peer_usrsctp' \
	tests/unit/*.c),$(UNIT_SRC))
$(B)/unit-cross: CPPFLAGS += -Itests/cross
$(B)/unit-cross: $(call objs,$(CROSS_UNIT) $(filter-out tests/support/e2e.c tests/support/two.c,$(wildcard tests/support/*.c)) \
		tests/sim/crossed_world.c tests/cross/main.c) \
		$(CONFORM_A) $(LIB_A) $(IPOIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIB_LIBS) -lm
cross:
	$(Q)tests/cross/run.sh $(T)

# Random calls from several threads, by seed.
STRESS := $(B)/stress-session $(B)/stress-verbs
$(B)/stress-verbs: $(call objs,$(VERBS_SRC))
# A day in an hour.
$(B)/day: $(B)/tests/stress/day.o $(LIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIB_LIBS)
$(B)/stress-%: $(B)/tests/stress/%.o $(B)/tests/stress/run.o $(LIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB_A) $(LIB_LIBS)

# Worlds by seed: the SCTP engine on a hostile network; whole sessions in a kernel made of that.
SIM := $(B)/sim-sctp $(B)/sim-session $(B)/sim-crossed $(B)/sim-ipoib
WRAPPED := epoll_create1 epoll_ctl epoll_wait poll timerfd_create timerfd_settime eventfd read write \
	close clock_gettime getrandom socket bind listen accept4 connect getsockname getsockopt \
	setsockopt ioctl shutdown readv recv send recvmmsg recvmsg sendmsg sendmmsg mmap free \
	preadv2 getifaddrs freeifaddrs if_nametoindex
WRAP_MALLOC := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
WRAP_THREADS := $(addprefix -Wl$(comma)--wrap=,pthread_create pthread_join pthread_mutex_lock \
	pthread_mutex_trylock pthread_mutex_clocklock pthread_mutex_unlock pthread_cond_timedwait \
	pthread_cond_signal pthread_cond_wait pthread_cond_broadcast sched_yield pause syscall)
WRAP := $(WRAPPED:%=-Wl,--wrap=%) $(WRAP_MALLOC)
$(B)/sim-session: $(call objs,$(wildcard tests/sim/kern*.c tests/sim/session_*.c))
$(B)/sim-session: LDFLAGS += $(WRAP) -Wl,--wrap=ddps_sctp_send
$(B)/sim-sctp: LDFLAGS += $(WRAP_MALLOC)
$(B)/sim-sctp: $(call objs,tests/sim/sctp_worlds.c tests/sim/sctp_user.c tests/sim/sctp_sound.c \
	tests/unit/sctp_net_fixture.c)
$(B)/sim-crossed: $(call objs,tests/sim/crossed_worlds.c tests/sim/crossed_world.c) $(IPOIB_A)
$(B)/sim-ipoib: $(call objs,$(wildcard tests/sim/kern*.c) tests/sim/ipoib_worlds.c) $(IPOIB_A)
$(B)/sim-ipoib: LDFLAGS += $(WRAP)
$(B)/sim-%: $(B)/tests/sim/sim_main.o $(B)/tests/sim/sim_random.o $(B)/tests/sim/sim_shrink.o $(LIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(filter-out $(LIB_A),$(filter %.a,$^)) $(LIB_A) $(LIB_LIBS)

# Many neighbours, connections and nodes in the fabric in memory.
$(B)/scale-ipoib: $(call objs,tests/sim/ipoib_scale.c) $(IPOIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^

# Each allocation and each system call is made to fail.
FAULT := $(B)/fault
$(FAULT): $(call objs,$(wildcard tests/fault/*.c tests/sim/kern*.c) tests/sim/sim_random.c) $(LIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $(WRAP) -o $@ $(filter %.o,$^) $(LIB_A) $(LIB_LIBS)

# Threads in that kernel, one at a time, in every order.
SCHED := $(B)/sched
$(SCHED): $(call objs,$(wildcard tests/sched/*.c tests/sim/kern*.c) tests/sim/sim_random.c \
	$(filter-out src/verbs/vd_socket.c,$(VERBS_SRC))) $(LIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $(WRAP) $(WRAP_THREADS) -o $@ $(filter %.o,$^) $(LIB_A) \
		$(LIB_LIBS)

# Fuzz targets: with libFuzzer in VARIANT=fuzz, else with a main that replays files.  Only the
# members of the archive that a target needs are linked.
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_A	   := $(B)/fuzz.a
FUZZ_BIN   := $(FUZZ_NAMES:%=$(B)/fuzz-%)
FUZZ_ALONE := tests/fuzz/replay.c
FUZZ_MAIN  := $(if $(filter fuzz,$(VARIANT)),,$(call objs,tests/fuzz/replay.c))
$(FUZZ_A): $(call objs,$(filter-out tests/fuzz/fuzz_% $(FUZZ_ALONE),$(wildcard tests/fuzz/*.c)) \
		tests/support/fake_sctp.c src/verbs/vd_settings.c $(VFAULT_SRC) \
		src/verbs/ud/vd_ud_wire.c src/verbs/ud/vd_ud_peer.c \
		$(filter-out tools/sessctl/main.c,$(TOOL_SRC)))
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(B)/fuzz-%: $(B)/tests/fuzz/fuzz_%.o $(FUZZ_MAIN) $(FUZZ_A) $(CONFORM_A) $(IPOIB_A) $(LIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $(if $(FUZZ_MAIN),,-fsanitize=fuzzer) \
		-Wl,--wrap=getrandom,--wrap=clock_gettime -o $@ $(filter %.o,$^) \
		$(filter %.a,$^) $(LIB_LIBS) $(TOOL_LIBS)

# The tester's sockets are the target's.
$(B)/fuzz-conform_ipoib: LDFLAGS += -Wl,--wrap=socket,--wrap=poll,--wrap=sendto,--wrap=recvfrom

# What the stack is compared with; none of it is linked with the library.
BENCH_BIN := $(B)/peer_tcp $(B)/peer_many $(B)/peer_gso $(B)/relay $(B)/peer_fi $(B)/peer_usrsctp $(B)/bench-speed \
	$(B)/sessions
$(B)/bench/%.o: CPPFLAGS += -Ibench
$(B)/peer_%: $(B)/bench/peer_%.o
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(BENCH_LIBS) -pthread
$(B)/bench-%: $(B)/bench/%.o
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ -lisal
$(B)/relay: $(B)/bench/relay.o
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^
$(B)/sessions: $(B)/bench/sessions.o $(LIB_A)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIB_LIBS)
# It counts what the library allocates and locks, and its calls of the system.
GUARDED := recv readv recvmsg recvmmsg read write poll epoll_wait epoll_ctl timerfd_settime getsockopt \
	setsockopt sched_yield
$(B)/guard: $(B)/bench/guard.o $(LIB_A)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) \
		-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=pthread_mutex_lock \
		-Wl,--wrap=send,--wrap=sendmsg,--wrap=sendmmsg $(GUARDED:%=-Wl,--wrap=%) -o $@ $^ \
		$(LIB_LIBS)
$(B)/peer_fi: BENCH_LIBS := -lfabric
$(B)/peer_gso: BENCH_LIBS := -lisal
$(B)/peer_usrsctp: BENCH_LIBS := -lusrsctp

man: $(MAN) $(B)/man/ddpsess_wr.3
$(B)/man/%: man/%.scd
	@mkdir -p $(@D)
	$(Q)scdoc <$< >$@
# One stands for all that are made of the headers
$(B)/man/ddpsess_wr.3: $(wildcard include/ddpsess/*.h) $(wildcard tools/reference/man.*)
	$(Q)tools/reference/man.sh $(@D)

-include $(shell find $(B) -name '*.d' 2>/dev/null)

# ---- running things ----

deps:
	$(Q)tools/deps.sh build
deps-check:
	$(Q)tools/deps.sh build check
deps-lint:
	$(Q)tools/deps.sh lint
deps-reference:
	$(Q)tools/deps.sh build reference
deps-fuzz:
	$(Q)tools/deps.sh build fuzz

demo: deps
	$(Q)+$(SUBMAKE) all
	$(Q)tools/demo.sh build/opt/sessctl

check check-failed: deps-check
	$(Q)+$(SUBMAKE) all man verbs-programs build/opt/guard \
		$(SIM) build/opt/scale-ipoib build/opt/sched
	$(Q)+$(SUBMAKE) VARIANT=asan test-binaries
	$(Q)tests/run.sh build/asan build/opt $(if $(filter check-failed,$@),--failed)

# What needs neither a sanitizer nor other people's programs, in a minute or so.
check-fast:
	$(Q)tools/deps.sh build fast
	$(Q)+$(SUBMAKE) build/opt/unit build/opt/e2e
	$(Q)build/opt/unit --jobs 2
	$(Q)build/opt/e2e --jobs 2

verbs-programs: $(VPROGS) $(VCLOCK)
programs: all verbs-programs
	$(Q)tools/deps.sh programs
	$(Q)bash tests/programs/run.sh $(B) $(T)
test-binaries: $(UNIT) $(E2E) $(FAULT) $(FUZZ_BIN) $(SESSCTL) $(EXAMPLES) $(VTEST) $(STRESS) \
	$(SIM)

# make unit T=mpa_rx: the suites whose name begins so
unit: $(UNIT)
	$(Q)$(UNIT) --filter '$(or $(T),)*/*'
e2e: $(E2E)
	$(Q)$(E2E) --filter '$(or $(T),)*/*'

# FUZZ=name for one target alone; fuzz-corpus then keeps what it found, in the smallest form.
FUZZ_SECONDS ?= 60
FUZZ	     ?= $(FUZZ_NAMES)
fuzz fuzz-corpus: deps-fuzz
	$(Q)+$(SUBMAKE) VARIANT=fuzz CC=clang $(FUZZ:%=build/fuzz/fuzz-%)
	$(Q)tests/fuzz/run.sh $(if $(filter fuzz-corpus,$@),--merge) build/fuzz $(FUZZ_SECONDS) $(FUZZ)

# Parsers without undefined behaviour, by Frama-C (package frama-c-base): two minutes of processor time
proof:
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
# for as long, ten million associations, and each fuzz target for as long, with what they find kept;
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
	$(Q)+$(SUBMAKE) build/opt/sim-sctp build/opt/sim-session build/opt/sim-ipoib
	$(Q)build/opt/sim-session $(SEED) 1000000000 $(SOAK_SECONDS)
	$(Q)build/opt/sim-ipoib $(SEED) 1000000000 $(SOAK_SECONDS)
	$(Q)build/opt/sim-sctp $(SEED) 10000000
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
	$(Q)+$(SUBMAKE) build/opt/unit build/opt/e2e build/opt/verbs-test build/opt/sched build/opt/sim-session build/opt/sim-ipoib
	$(Q)tests/mutate/run.sh build/opt

# Branches and conditions that the tests of the library take and show to decide, by clang: some minutes.
# LIST=1 prints what has no reason in tests/coverage/reasons.tsv, of the run before.
COV_BIN := $(UNIT) $(E2E) $(VTEST) $(SESSCTL) $(FAULT) $(SIM)
coverage:
	$(Q)tools/deps.sh build check coverage
	$(Q)+$(SUBMAKE) VARIANT=cov CC=$(if $(findstring ccache,$(CC)),"ccache clang-19",clang-19) \
		$(COV_BIN:$(B)/%=build/cov/%)
	$(Q)tests/coverage/run.sh build/cov $(if $(LIST),--list)

# One operator, constant or statement after another changed at random: N of them, SEED=n, FILES=part of
# a name.  About 20 seconds of processor time each.
N ?= 100
mutate-random: deps-check
	$(Q)+$(SUBMAKE) build/opt/unit build/opt/e2e build/opt/sessctl build/opt/sim-sctp build/opt/sim-session
	$(Q)nice tests/mutate/at_random.py build/opt $(N) $(SEED) $(FILES)

interop: all $(UNIT) $(E2E)
	$(Q)tests/interop/run.sh
# Linux's ib_ipoib and ib_cm in the same kind of guest
$(B)/ipoib-starts: $(B)/tests/interop-ipoib/src/starts.o $(IPOIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^
# TIMES=10: so often, with one guest
interop-ipoib: $(SESSCTL) $(B)/ipoib-starts
	$(Q)tests/interop-ipoib/run.sh $(TIMES:%=--times=%)

# CM over a simulated InfiniBand fabric
$(B)/ib-preload.so: tests/ib/preload.c
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS) -shared -o $@ $< -ldl
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
$(B)/sessctl-usrsctp: $(call objs,$(TOOL_SRC) tests/conformance/usrsctp.c $(wildcard tests/peer/*.c)) \
		$(CONFORM_A) $(LIB_A) $(IPOIB_A)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -Wl,--wrap=ddps_ctx_new -o $@ $^ -lusrsctp $(LIB_LIBS) \
		$(TOOL_LIBS)
conform-usrsctp: $(SESSCTL) $(B)/sessctl-usrsctp
	$(Q)tests/conformance/usrsctp.sh $(B)

# Results in build/bench and docs/performance.md; BENCH=quick for a short run, not into docs
bench:
	$(Q)tools/deps.sh build bench
	$(Q)+$(SUBMAKE) all $(BENCH_BIN)
	$(Q)bench/run.sh build/opt build/bench
	$(Q)[ "$(BENCH)" = quick ] || bench/report.sh build/bench --docs >/dev/null

# Instructions of the data path against bench/guard.txt; part of check
guard: deps-check
	$(Q)+$(SUBMAKE) build/opt/guard
	$(Q)bench/guard.sh build/opt

# The public headers as HTML
reference: deps-reference
	$(Q)tools/reference/html.sh build/reference

lint: deps-lint
	$(Q)+$(SUBMAKE) -k -O -f tools/lint.mk
format: deps-lint
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h' ':!tests/abi')

install: all man
	install -d $(DESTDIR)$(PREFIX)/include/ddpsess $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(DESTDIR)$(LIBDIR)/ddpsess/verbs $(DESTDIR)$(PREFIX)/bin \
		$(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5 \
		$(DESTDIR)$(PREFIX)/share/man/man3 $(DESTDIR)$(PREFIX)/share/man/man7 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/ddpsess/wireshark $(DESTDIR)$(LIBDIR)/cmake/ddpsess \
		$(DESTDIR)$(PYTHONDIR)/ddpsess $(DESTDIR)$(PREFIX)/share/ddpsess/profiles
	install -m 644 profiles/*.profile $(DESTDIR)$(PREFIX)/share/ddpsess/profiles
	install -m 644 include/ddpsess/*.h $(DESTDIR)$(PREFIX)/include/ddpsess
	install -m 644 $(LIB_A) $(IPOIB_A) $(CONFORM_A) $(DESTDIR)$(LIBDIR)
	for l in libddpsess libddpsess-ipoib libddpsess-conform; do \
		install -m 755 $(B)/$$l.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/$$l.so.$(VERSION) && \
		ln -sf $$l.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$$l.so.$(SOVERSION) && \
		ln -sf $$l.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/$$l.so && \
		sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' \
			src/$$l.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/$$l.pc || exit 1; done
	install -m 755 $(VERBS_SO) $(DESTDIR)$(LIBDIR)
	install -m 755 $(SONAME_SO) $(DESTDIR)$(LIBDIR)/ddpsess/verbs
	install -m 755 $(VIEW_SO) $(DESTDIR)$(LIBDIR)/ddpsess
	install -m 755 $(SESSCTL) $(DESTDIR)$(PREFIX)/bin
	install -m 644 tools/sessctl/completion.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/sessctl
	install -d $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 644 tools/sessctl/completion.zsh \
		$(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_sessctl
	install -m 644 tools/sessctl/completion.fish \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/sessctl.fish
	for f in ddpsess-config.cmake ddpsess-config-version.cmake; do \
		sed -e 's|@VERSION@|$(VERSION)|; s|@SOVERSION@|$(SOVERSION)|' -e "s|@INCLUDE@|$$(realpath \
			-ms --relative-to=$(LIBDIR)/cmake/ddpsess $(PREFIX)/include)|" src/$$f.in \
			>$(DESTDIR)$(LIBDIR)/cmake/ddpsess/$$f || exit 1; done
	install -m 644 python/ddpsess/*.py python/ddpsess/py.typed $(DESTDIR)$(PYTHONDIR)/ddpsess
	install -m 644 tools/wireshark/ddpsess.lua $(DESTDIR)$(PREFIX)/share/ddpsess/wireshark
	for m in $(MAN) $(B)/man/ddps_*.3 $(B)/man/ddpsess_*.3; do install -m 644 $$m \
		$(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/ || exit 1; done
	ln -sf sessctl-put.1 $(DESTDIR)$(PREFIX)/share/man/man1/sessctl-get.1

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/include/ddpsess $(DESTDIR)$(LIBDIR)/ddpsess \
		$(DESTDIR)$(PREFIX)/share/ddpsess $(DESTDIR)$(LIBDIR)/cmake/ddpsess \
		$(DESTDIR)$(PYTHONDIR)/ddpsess
	rm -f $(DESTDIR)$(LIBDIR)/libddpsess.* $(DESTDIR)$(LIBDIR)/libddpsess-ipoib.* \
		$(DESTDIR)$(LIBDIR)/libddpsess-conform.* \
		$(DESTDIR)$(LIBDIR)/libddpsess-verbs.so \
		$(DESTDIR)$(LIBDIR)/pkgconfig/libddpsess.pc \
		$(DESTDIR)$(LIBDIR)/pkgconfig/libddpsess-ipoib.pc \
		$(DESTDIR)$(LIBDIR)/pkgconfig/libddpsess-conform.pc \
		$(DESTDIR)$(PREFIX)/bin/sessctl \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/sessctl \
		$(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_sessctl \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/sessctl.fish \
		$(foreach m,$(MAN),$(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(m)))/$(notdir $(m))) \
		$(DESTDIR)$(PREFIX)/share/man/man1/sessctl-get.1 \
		$(DESTDIR)$(PREFIX)/share/man/man3/ddps_*.3 $(DESTDIR)$(PREFIX)/share/man/man3/ddpsess_*.3

# ---- releases ----

# Of what is committed, without debian/: the same octets each time
DIST := build/dist/ddpsess-$(VERSION).tar.gz
dist:
	$(Q)mkdir -p $(dir $(DIST))
	$(Q)git archive --format=tar --prefix=ddpsess-$(VERSION)/ HEAD . ':!debian' | gzip -9n >$(DIST)
	$(Q)cd $(dir $(DIST)) && sha256sum $(notdir $(DIST)) >$(notdir $(DIST)).sha256
	@echo $(DIST)
# into build/deb and build/rpm
deb: dist
	$(Q)tools/deps.sh build deb
	$(Q)tests/release/deb.sh $(DIST) build/deb
rpm: dist
	$(Q)tools/deps.sh build rpm
	$(Q)tests/release/rpm.sh $(DIST) build/rpm
# The packages alone in a new Debian: needs root, and the mirror that apt has here
release-check: deb
	$(Q)tests/release/check.sh build/deb build/release-check

clean:
	rm -rf build

help:
	@echo 'all        libraries, sessctl, examples       demo      the main job, TCP then SCTP'
	@echo 'check      all tests but the guest (ASan)     unit      unit tests, T=prefix of a suite'
	@echo 'e2e        end-to-end tests, T=prefix         tsan      threaded tests under TSan'
	@echo 'check-failed   the suites of it that failed the last time'
	@echo 'check-fast unit and end-to-end tests alone   dist      the tarball and its checksum'
	@echo 'deb, rpm   packages, in build/                release-check  the packages in a new Debian'
	@echo 'valgrind   unit tests, cases under memcheck   interop   Linux siw and SCTP in a guest'
	@echo 'conformance  every rule and its case: docs/conformance.md; deliberate faults are caught'
	@echo 'sim-join   ten thousand IPoIB interfaces join'
	@echo 'day        sessions come and go for an hour, drawn into build/day.svg'
	@echo 'sim-soak   a million crossed connects, seeded soak      random calls of threads, 20 minutes'
	@echo 'programs   QEMU, Gloo and others over the drop-in: docs/programs.md, T=pattern'
	@echo 'mutate     tests of attacks against a stack without the defence: each has to fail'
	@echo 'mutate-random  N=100 SEED=1: anything at all changed, and the tests run: each has to be noticed'
	@echo 'coverage   branches and conditions that the tests take, against tests/coverage/reasons.tsv'
	@echo 'fuzz       libFuzzer, FUZZ_SECONDS=60 each, FUZZ=name for one; fuzz-corpus keeps the finds'
	@echo 'cross      musl, i386, aarch64, s390x: unit tests under qemu-user, T=NAME for one'
	@echo 'interop-ipoib  IPoIB with Linux in a guest; TIMES=10 for ten runs in a row'
	@echo 'conform-usrsctp  cases of SCTP itself against usrsctp, both roles'
	@echo 'peers      each peer that can be had, rule by rule: docs/peers.md'
	@echo 'interop-ib CM over ibsim and opensm'
	@echo 'bench      against TCP, libfabric, ...        guard     instruction counts'
	@echo 'lint       format, tidy, cppcheck, shellcheck format    clang-format in place'
	@echo 'reference  the public headers as HTML: build/reference/html'
	@echo 'install    DESTDIR, PREFIX, LIBDIR            uninstall, clean, man'
