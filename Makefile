# SPDX-License-Identifier: BSD-2-Clause
#
#   make            libraries and sessctl in build/opt
#   make demo       the main job over TCP and over SCTP
#   make check      everything that needs no guest, under ASan and UBSan
#   make help       the other targets
#
# What is installed is made here; mk/ has the programs of the tests, what runs them, and the rest.

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

# -Werror for those who work on it, as in .ci/run: a compiler of tomorrow may warn of more
WERROR	   ?=
WARN	   := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
OPT_opt	   := -O2 -g
OPT_asan   := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
OPT_tsan   := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
OPT_cov	   := -O1 -g
OPT_cross  := -O1 -g
OPT_every  := -O1
OPT_everyasan := $(OPT_asan)
OPT_fuzz   := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all
CPPFLAGS   += -D_GNU_SOURCE -Iinclude -Isrc $(if $(filter asan tsan fuzz,$(VARIANT)),-DDDPS_ASSERTS)
# What hardens a program and can be had here, where nothing was said of it; sanitizers see more themselves.
taken	    = $(if $(shell $(CC) -Werror $(1) -xc -c -o /dev/null /dev/null 2>&1),,$(1))
# A Flush is a fence for other processors and processes; between our threads locks are what counts.
ifeq ($(VARIANT),tsan)
OPT_tsan   += $(call taken,-Wno-tsan)
endif
ifeq ($(VARIANT),opt)
HARDEN	   := -fstack-protector-strong $(foreach f,-fstack-clash-protection -mbranch-protection=standard,$(call taken,$(f)))
LDFLAGS	   := -Wl,-z,relro -Wl,-z,now $(LDFLAGS)
FORTIFY	   := $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif
CFLAGS_ALL := -std=gnu11 -pthread -fPIC -fvisibility=hidden $(WARN) $(OPT_$(VARIANT)) $(HARDEN) $(CFLAGS)
LIB_LIBS   := -lisal -lnettle -pthread
TOOL_LIBS  := -ljansson
comma	   := ,
# sanitizers bring their own undefined symbols, so -z defs is for the real thing only
DEFS	   := $(if $(filter opt,$(VARIANT)),-Wl$(comma)-z$(comma)defs)

LIB_DIRS   := common common/loop common/system ddp rdmap negotiate mpa_tcp mpa_tcp/shm sctp/parts sctp/send sctp/path sctp sctp_ddp \
	sctp_ddp/backend $(addprefix sctp_ddp/backend/,native kernel) secure secure/record secure/dtls session watch
LIB_SRC	   := $(wildcard $(LIB_DIRS:%=src/%/*.c))
VERBS_SRC  := $(wildcard src/verbs/*.c src/verbs/*/*.c src/edge/*.c src/edge/*/*.c)
# ports load the libraries that they need at run time, so nothing is linked for them
IPOIB_SRC  := $(wildcard src/ipoib_cm/*/*.c) $(addprefix src/common/,sized.c siphash.c system/assert.c)
CONF_SRC   := $(filter-out src/conform/tls/%,$(wildcard src/conform/*.c src/conform/*/*.c))
TOOL_DIRS  := cli cli/out report xfer xfer/serve watch keys ipoib ipoib/bridge ipoib/conform ipoib/show sessctl sessctl/run
TOOL_SRC   := $(wildcard $(TOOL_DIRS:%=tools/%/*.c))
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
UMAD_SRC   := $(wildcard src/umad/*.c) src/common/system/lock.c
UMAD_SO    := $(B)/ddpsess/libddpsess-umad.so
# GnuTLS is its alone; it is loaded when a secured URI is first used
TLS_SRC    := $(wildcard $(addprefix src/secure/,creds/*.c hs/*.c aead/*.c table/*.c)) src/secure/vault.c src/conform/tls/tls.c src/conform/tls/dtls.c \
	$(addprefix src/common/system/,lock.c assert.c user.c)
TLS_SO	   := $(B)/ddpsess/libddpsess-tls.so
EXAMPLES   := $(patsubst examples/%.c,$(B)/example-%,$(EX_SRC))
MAN	   := $(patsubst man/%.scd,$(B)/man/%,$(wildcard man/*.scd))

.PHONY: all lib man demo clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: lib $(SESSCTL) $(VERBS_SO) $(SONAME_SO) $(VIEW_SO) $(UMAD_SO) $(TLS_SO) $(EXAMPLES)
lib: $(LIB_A) $(LIB_SO) $(B)/libddpsess.so $(IPOIB_A) $(IPOIB_SO) $(B)/libddpsess-ipoib.so \
	$(CONFORM_A) $(CONFORM_SO) $(B)/libddpsess-conform.so

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC   $<")
	$(Q)$(CC) $(CPPFLAGS) $(FORTIFY) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# make coverage: what is measured is the library's, by clang
ifeq ($(VARIANT),cov)
$(B)/src/%.o: CFLAGS_ALL += -fprofile-instr-generate=$(CURDIR)/$(B)/default.profraw -fprofile-update=atomic \
	-fcoverage-mapping -fcoverage-mcdc
$(B)/tests/%.o: CFLAGS_ALL += -Wno-enum-enum-conversion
LDFLAGS += -fprofile-instr-generate
endif

$(B)/tools/%.o: CPPFLAGS += -Itools

# The one way to link: objects, archives (which may need the library's), libraries.  A target's own flags and
# libraries are LINK_FLAGS and LINK_LIBS.
LINK_FLAGS :=
LINK_LIBS   = $(LIB_LIBS)
define link
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(LDFLAGS) $(LINK_FLAGS) -o $@ $(filter %.c %.o,$^) \
		$(filter-out %.c %.o %.a %.h %.map,$^) $(filter-out $(LIB_A),$(filter %.a,$^)) $(filter $(LIB_A),$^) $(LINK_LIBS)
endef

$(LIB_A): $(call objs,$(LIB_SRC))
$(IPOIB_A): $(call objs,$(IPOIB_SRC))
$(CONFORM_A): $(call objs,$(CONF_SRC))
$(LIB_A) $(IPOIB_A) $(CONFORM_A):
	$(if $(Q),@echo "  AR   $@")
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# A library has a name, and exports what its map says.
shared	    = -shared -Wl,-soname,$(@F) -Wl,--version-script=$(filter %.map,$^) $(DEFS)
$(LIB_SO): $(call objs,$(LIB_SRC)) src/libddpsess.map
$(IPOIB_SO): $(call objs,$(IPOIB_SRC)) src/ipoib_cm/libddpsess-ipoib.map
# It uses the library's sessions like any program.
$(CONFORM_SO): $(call objs,$(CONF_SRC)) src/conform/libddpsess-conform.map $(LIB_SO)
$(CONFORM_SO): private LINK_LIBS =
$(IPOIB_SO): private LINK_LIBS = -lisal
$(LIB_SO) $(IPOIB_SO) $(CONFORM_SO): private LINK_FLAGS = $(shared)
$(LIB_SO) $(IPOIB_SO) $(CONFORM_SO):
	$(link)
$(B)/libddpsess.so: $(LIB_SO)
$(B)/libddpsess-ipoib.so: $(IPOIB_SO)
$(B)/libddpsess-conform.so: $(CONFORM_SO)
$(B)/libddpsess.so $(B)/libddpsess-ipoib.so $(B)/libddpsess-conform.so:
	$(Q)ln -sf $(notdir $<) $@

# The rules of the conformance reports are those of the tests.
RULES_TSV := $(wildcard tests/conformance/reqs/*.tsv)
$(B)/tools/report/rules.inc: tools/report/rules.awk $(RULES_TSV)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  GEN  $@")
	$(Q)awk -f $^ >$@
$(B)/tools/report/rules.o: $(B)/tools/report/rules.inc
$(B)/tools/report/rules.o: CPPFLAGS += -I$(B)/tools/report

$(B)/tools/sessctl/run/run_find.o: CPPFLAGS += -DSESSCTL_LIBDIR='"$(LIBDIR)"'

# The drop-in brings its own copy of the library, so that one file is all a preload needs.  Its
# sockets are the system's, whoever else is preloaded: src/verbs/vd_socket.c.  Its threads live as long as
# the process, so that it is never unloaded (nodelete).
$(VERBS_SO): $(call objs,$(VERBS_SRC)) $(LIB_A)
IN_PROCESS := -Wl,-z,nodelete -Wl,--exclude-libs,ALL -Wl,--wrap=socket
$(VERBS_SO): private LINK_FLAGS = -shared $(IN_PROCESS) $(DEFS)

# It takes the place of functions of libc, which headers must not turn into others.
$(call objs,$(VIEW_SRC)): FORTIFY := -U_FORTIFY_SOURCE
$(VIEW_SO): $(call objs,$(VIEW_SRC))
$(VIEW_SO): private LINK_FLAGS = -shared $(DEFS)
$(VIEW_SO): private LINK_LIBS = -ldl
$(UMAD_SO): $(call objs,$(UMAD_SRC)) $(IPOIB_A)
$(UMAD_SO): private LINK_FLAGS = -shared -Wl,--exclude-libs,ALL $(DEFS)
$(UMAD_SO): private LINK_LIBS = -lisal

$(TLS_SO): $(call objs,$(TLS_SRC))
$(TLS_SO): private LINK_FLAGS = -shared -Wl,-soname,$(@F) $(DEFS)
$(TLS_SO): private LINK_LIBS = -lgnutls -ldl -pthread
$(B)/src/secure/plugin.o: CPPFLAGS += -DDDPS_LIBDIR='"$(LIBDIR)"'

# The same under the libraries' own names.  librdmacm.so.1 has the version nodes that programs ask
# it for and leads to libibverbs.so.1, which has all symbols: there is one copy of the state.
REAL_LIB    = $(shell $(CC) -print-file-name=$(1).so.1)
$(B)/verbs-map/verbs.map: tools/verbs-map.sh $(VERBS_SO)
	$(if $(Q),@echo "  GEN  $@")
	$(Q)tools/verbs-map.sh $(VERBS_SO) $(call REAL_LIB,libibverbs) \
		$(call REAL_LIB,librdmacm) $(@D)
$(SONAME_DIR)/libibverbs.so.1: $(B)/verbs-map/verbs.map $(call objs,$(VERBS_SRC)) $(LIB_A)
$(SONAME_DIR)/libibverbs.so.1: private LINK_FLAGS = $(shared) $(IN_PROCESS) -Wno-missing-prototypes \
	-Wno-strict-prototypes $(B)/verbs-map/missing.c
$(SONAME_DIR)/librdmacm.so.1: $(SONAME_DIR)/libibverbs.so.1
$(SONAME_DIR)/librdmacm.so.1: private LINK_FLAGS = -shared -Wl,-soname,$(@F) -Wl,--no-as-needed \
	-Wl,--version-script=$(B)/verbs-map/rdmacm.map -Wl,-rpath,'$$ORIGIN'
$(SONAME_DIR)/librdmacm.so.1: private LINK_LIBS =

$(SESSCTL): $(call objs,$(TOOL_SRC)) $(CONFORM_A) $(LIB_A) $(IPOIB_A)
$(SESSCTL): private LINK_LIBS = $(LIB_LIBS) $(TOOL_LIBS)
$(VERBS_SO) $(VIEW_SO) $(UMAD_SO) $(TLS_SO) $(SONAME_SO) $(SESSCTL):
	$(link)

$(B)/example-ipoib_pair $(B)/example-ib_accept: $(IPOIB_A)
$(B)/example-conform: $(CONFORM_A)
$(B)/example-%: $(B)/examples/%.o $(LIB_A)
	$(link)

man: $(MAN) $(B)/man/ddpsess_wr.3
$(B)/man/%: man/%.scd
	@mkdir -p $(@D)
	$(Q)tools/reference/page.sh <$< >$@
# One stands for all that are made of the headers
$(B)/man/ddpsess_wr.3: $(wildcard include/ddpsess/*.h) $(wildcard tools/reference/man.*)
	$(Q)tools/reference/man.sh $(@D)

# The structs, constants and functions of the headers, for Python
PYTHON_H := $(addprefix include/ddpsess/,err_codes.h err.h ctx.h wr.h session.h secure.h version.h)
.PHONY: python
python:
	$(Q)python3 tools/reference/python.py $(PYTHON_H) >python/ddpsess/_headers.py

include mk/programs.mk mk/check.mk mk/install.mk mk/release.mk mk/bundle.mk
-include $(shell find $(B) -name '*.d' 2>/dev/null)

demo: deps
	$(Q)+$(SUBMAKE) all
	$(Q)tools/demo.sh build/opt/sessctl

clean:
	rm -rf build

help:
	@echo 'all        libraries, sessctl, examples       demo      the main job, TCP then SCTP'
	@echo 'check      all tests but the guest (ASan)     unit      unit tests, T=prefix of a suite'
	@echo 'e2e        end-to-end tests, T=prefix         tsan      threaded tests under TSan'
	@echo 'check-failed   the suites of it that failed the last time'
	@echo 'check-fast unit and end-to-end tests alone   dist      the tarball and its checksum'
	@echo 'deb, rpm   packages, in build/                release-check  the packages in a new Debian'
	@echo 'bundle     a tarball that runs anywhere   bundle-check  tries it'
	@echo 'firsthour  what newcomers do, in new roots of Debian 12 and 13'
	@echo 'release    the record of the ABI, before the tag: docs/abi.md'
	@echo 'autopkgtest  tests of the Debian packages, as Debian runs them'
	@echo 'valgrind   unit tests, cases under memcheck   interop   Linux siw and SCTP in a guest'
	@echo 'conformance  every rule and its case: docs/conformance.md; deliberate faults are caught'
	@echo 'sim-join   ten thousand IPoIB interfaces join'
	@echo 'day        sessions come and go for an hour, drawn into build/day.svg'
	@echo 'sim-soak   a million crossed connects, seeded soak      random calls of threads, 20 minutes'
	@echo 'programs   QEMU, Gloo and others over the drop-in: docs/programs.md, T=pattern'
	@echo 'traces     a seed is a trace: N=1000 runs of each program'
	@echo 'plants     a fault for each checker of the simulations, which has to find it; PLANT=pattern for some'
	@echo 'mutate     tests of attacks against a stack without the defence: each has to fail'
	@echo 'mutate-every   anything at all changed, a sample of each folder: what share do unit tests and simulations notice?'
	@echo 'mutate-random  N=200 SEED=1: so many of them at random, and all tests'
	@echo 'coverage   branches and conditions that the tests take, against tests/coverage/reasons.tsv'
	@echo 'fuzz       libFuzzer, FUZZ_SECONDS=60 each, FUZZ=name for one; fuzz-corpus keeps the finds'
	@echo 'cross      musl, i386, aarch64, s390x: unit tests under qemu-user, T=NAME for one'
	@echo 'interop-ipoib  IPoIB with Linux in a virtual machine; TIMES=10 for ten runs in a row'
	@echo 'conform-usrsctp  cases of SCTP itself against usrsctp, both roles'
	@echo 'peers      each peer that can be had, rule by rule: docs/peers.md'
	@echo 'interop-ib CM over ibsim and opensm     interop-opensm  its judge of the bridge'
	@echo 'bench      against TCP, libfabric, ...        guard     instruction counts'
	@echo 'lint       format, tidy, cppcheck, shellcheck format    clang-format in place'
	@echo 'reference  the public headers as HTML: build/reference/html'
	@echo 'python     what Python knows of the public headers: python/ddpsess/_headers.py'
	@echo 'install    DESTDIR, PREFIX, LIBDIR            uninstall, clean, man'
