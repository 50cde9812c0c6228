# SPDX-License-Identifier: BSD-2-Clause
# Programs of the tests and of the benchmarks: what they are made of.  mk/check.mk runs them.

# Parts of the drop-in that need nothing of the others
VFAULT_SRC := $(wildcard src/edge/fault/*.c src/edge/profile/*.c)
UNIT_SRC   := $(wildcard tests/unit/*.c tests/unit/*/*.c)
E2E_SRC	   := $(wildcard tests/e2e/*.c)
CHILD_SRC  := tests/support/child.c # of programs that run under Criterion
SUP_SRC	   := $(filter-out $(CHILD_SRC),$(wildcard tests/support/*.c tests/peer/*.c))
FABRIC_SRC := $(wildcard tests/fabric/*.c)
VTEST_SRC  := $(wildcard tests/verbs/v*.c) tests/support/keys.c
UNIT	   := $(B)/unit
VTEST	   := $(B)/verbs-test
E2E	   := $(B)/e2e

# Criterion's test macros define functions without a prototype and shadow by design.
$(B)/tests/%.o: CFLAGS_ALL += -Wno-missing-prototypes
$(B)/tests/%.o: CPPFLAGS += -Itests -Itools

WRAP_MALLOC := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
WRAP_MEMORY := $(WRAP_MALLOC),--wrap=free,--wrap=posix_memalign,--wrap=strdup
WRAP_SYSTEM := $(addprefix -Wl$(comma)--wrap=,socket setsockopt bind ioctl sendto sendmsg sendmmsg recvmmsg \
	recvmsg send writev flock connect listen accept4 getsockname getsockopt poll epoll_ctl epoll_wait read write close fstat \
	fallocate fchmod mkdir access link eventfd getrandom madvise pthread_create pthread_atfork getaddrinfo freeaddrinfo \
	getifaddrs mmap dlopen dlsym dlclose)
# Unit tests also cover the pure parts of sessctl.  Some let an allocation or a call of the system fail.
UNIT_SIM   := $(addprefix tests/sim/,crossed_world.c crossed_linux.c dtls_stub.c sim_random.c sim_shrink.c)
UNIT_TESTS := $(UNIT_SRC) $(SUP_SRC) $(FABRIC_SRC) $(UNIT_SIM)
UNIT_REST  := $(call objs,$(filter-out src/secure/vault.c src/common/%,$(TLS_SRC)) $(VFAULT_SRC) src/view/view_path.c $(filter-out src/common/%,$(UMAD_SRC)) $(filter-out tools/sessctl/main.c,$(TOOL_SRC))) \
	$(CONFORM_A) $(LIB_A) $(IPOIB_A)
$(UNIT): $(call objs,$(UNIT_TESTS)) $(UNIT_REST)
$(E2E): $(call objs,$(E2E_SRC) $(SUP_SRC)) $(LIB_A)
# Some of the drop-in's tests let a call of the system's fail: tests/verbs/vfail.c.
$(VTEST): $(call objs,$(VTEST_SRC) $(filter-out src/verbs/vd_socket.c,$(VERBS_SRC))) $(LIB_A)
$(VTEST) $(B)/verbs-bare: LDFLAGS += $(WRAP_MALLOC) $(addprefix -Wl$(comma)--wrap=,reallocarray aligned_alloc free eventfd \
	socket socketpair bind connect getsockname setsockopt fstat getifaddrs freeifaddrs epoll_create1 epoll_ctl \
	getrandom getrlimit setrlimit write read send sendmsg recvmmsg madvise poll sem_clockwait pthread_create _exit)
$(UNIT) $(E2E) $(VTEST): $(call objs,$(CHILD_SRC))
$(UNIT) $(E2E) $(VTEST): private LDFLAGS += -Wl,--wrap=criterion_send_assert
# view_test loads it; it is linked without what is wrapped for the tests.
$(UNIT) $(B)/unit-bare: | $(VIEW_SO)
$(UNIT) $(B)/unit-bare $(B)/unit-cross $(B)/unit-every: private LDFLAGS += $(WRAP_MEMORY) $(WRAP_SYSTEM)
# tests/peer: an SCTP that is not ours
# what judges TLS: both libraries' own records
TLS_LIBS   := -lgnutls -lssl -lcrypto
$(UNIT): private LINK_LIBS = -lcriterion -lusrsctp $(LIB_LIBS) $(TOOL_LIBS) $(TLS_LIBS)
$(E2E): private LINK_LIBS = -lcriterion -lusrsctp $(LIB_LIBS) $(TOOL_LIBS)
$(VTEST): private LINK_LIBS = -lcriterion $(LIB_LIBS)
# Thousands of processes begin: by exec those of Criterion and sessctl, by fork those of unit-bare.  Of what that takes
# under ASan a fifth are relocations, and the pages that these change.
$(UNIT) $(E2E) $(VTEST) $(B)/unit-bare $(SESSCTL): private LDFLAGS += $(if $(filter asan,$(VARIANT)),-no-pie)
$(UNIT) $(E2E) $(VTEST):
	$(link)

VPROGS := $(B)/verbs-dlopen $(B)/verbs-plain $(B)/verbs-wrong $(B)/verbs-siw_peer
$(B)/verbs-siw_peer: tests/interop/guest/src/siw_peer.c
$(VPROGS): private LINK_LIBS = -ldl
$(B)/verbs-siw_peer $(B)/verbs-wrong: private LINK_LIBS = -ldl -lrdmacm -libverbs
$(B)/verbs-dlopen $(B)/verbs-plain $(B)/verbs-wrong: $(B)/verbs-%: tests/verbs/%.c
ifeq ($(VARIANT),cov)
$(VPROGS): CFLAGS_ALL += -Wno-enum-enum-conversion
endif
VCLOCK := $(B)/verbs-clock.so
$(VCLOCK): tests/verbs/quick_clock.c
$(VCLOCK): private LINK_FLAGS = -shared
$(VCLOCK): private LINK_LIBS =
$(VPROGS) $(VCLOCK):
	$(link)

# Criterion does not run under ThreadSanitizer: tests/tsan stands in for it.
THREAD_SRC := $(addprefix tests/,e2e/thread_test.c e2e/wait_test.c support/e2e.c support/e2e_tls.c \
	support/keys.c support/two.c tsan/main.c) $(wildcard tests/peer/*.c)
$(B)/threads: $(THREAD_SRC) $(wildcard tests/tsan/criterion/*.h) $(LIB_A)
$(B)/threads: private LINK_LIBS = -lusrsctp $(LIB_LIBS)
THREAD_VERBS := $(addprefix tests/,verbs/verbs_threads_test.c verbs/verbs_waits_test.c verbs/vt.c \
	verbs/verbs_ud_threads_test.c verbs/verbs_plain_test.c verbs/vud.c tsan/main.c)
$(B)/verbs-threads: $(THREAD_VERBS) tests/verbs/vt.h tests/verbs/vud.h $(wildcard tests/tsan/criterion/*.h) \
		$(call objs,$(VERBS_SRC)) $(LIB_A)
$(B)/threads $(B)/verbs-threads: private LINK_FLAGS = -Itests/tsan -Itests -Wno-missing-prototypes
$(B)/threads $(B)/verbs-threads:
	$(link)

# The same tests without Criterion (tests/cross): they begin by fork, in a few milliseconds under ASan; and
# other C libraries and processors have no Criterion.  There, only the unit tests: those of sessctl's parts
# (tests/unit/tools: tests/layers.sh), and those beside usrsctp, would need more libraries.
BARE	   := $(B)/unit-bare $(B)/e2e-bare $(B)/verbs-bare
CROSS_UNIT := $(filter-out tests/unit/tools/% $(shell grep -lE '#include "(verbs|view)/|sd_pair_fixture|peer_usrsctp|support/(e2e|two)[.]h|view_fixture|include <(gnutls|openssl)/|secure/(aead|creds)|creds_fixture' \
	$(UNIT_SRC)),$(UNIT_SRC))
CROSS_SUP  := $(filter-out $(addprefix tests/support/,child.c e2e.c e2e_tls.c keys.c two.c),$(wildcard tests/support/*.c))
bare	    = $(patsubst %.c,$(B)/bare/%.o,$(1))
$(B)/bare/%.o: CFLAGS_ALL += -Wno-missing-prototypes
$(B)/bare/%.o: CPPFLAGS += -Itests/cross -Itests -Itools
$(B)/bare/%.o: %.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC   $<")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
$(B)/unit-bare: $(call bare,$(UNIT_TESTS)) $(UNIT_REST)
$(B)/e2e-bare: $(call bare,$(E2E_SRC) $(SUP_SRC)) $(LIB_A)
$(B)/verbs-bare: $(call bare,$(VTEST_SRC)) $(call objs,$(filter-out src/verbs/vd_socket.c,$(VERBS_SRC))) $(LIB_A)
$(BARE): $(call bare,tests/cross/main.c tests/cross/checks.c)
$(B)/unit-cross: $(call bare,$(CROSS_UNIT) $(FABRIC_SRC) $(CROSS_SUP) $(UNIT_SIM) tests/cross/main.c tests/cross/checks.c) \
		$(CONFORM_A) $(LIB_A) $(IPOIB_A)
# All mutations in one program: tests/mutate/every.py makes a tree of such sources, for VARIANT=every.
$(B)/e2e-every: $(call bare,$(E2E_SRC) $(SUP_SRC) tests/mutate/every.c tests/cross/checks.c) $(LIB_A)
$(B)/unit-every: $(call bare,$(UNIT_TESTS) tests/mutate/every.c tests/cross/checks.c) $(UNIT_REST)
$(BARE) $(B)/e2e-every $(B)/unit-every: private LINK_LIBS = -lusrsctp $(TOOL_LIBS) $(LIB_LIBS) $(TLS_LIBS) -lm
$(B)/unit-cross: private LINK_LIBS = $(LIB_LIBS) -lm
$(BARE) $(B)/unit-cross $(B)/e2e-every $(B)/unit-every:
	$(link)

# Random calls from several threads, by seed.
STRESS := $(B)/stress-session $(B)/stress-verbs $(B)/stress-ends
$(B)/stress-verbs: $(call objs,$(VERBS_SRC))
# A day in an hour.
$(B)/day: $(B)/tests/stress/day.o $(LIB_A)
	$(link)
$(B)/stress-%: $(B)/tests/stress/%.o $(B)/tests/stress/run.o $(LIB_A)
	$(link)

# Worlds by seed: the SCTP engine on a hostile network; whole sessions in a kernel made of that.
# In place of the plug-in for TLS and of its thread.
TLS_STUB := tests/sim/tls_stub.c tests/sim/dtls_stub.c tests/support/aead_stub.c
SIM := $(B)/sim-sctp $(B)/sim-session $(B)/sim-crossed $(B)/sim-ipoib $(B)/sim-verbs
WRAPPED := epoll_create1 epoll_ctl epoll_wait poll timerfd_create timerfd_settime eventfd read write \
	close clock_gettime getrandom socket bind listen accept4 connect getsockname getsockopt \
	setsockopt ioctl shutdown readv recv send recvmmsg recvmsg sendmsg sendmmsg mmap free \
	preadv2 getifaddrs freeifaddrs if_nametoindex socketpair fopen memfd_create fallocate munmap fcntl fstat fstatfs \
	madvise lstat unlink open flock __recv_chk
WRAP_THREADS := $(addprefix -Wl$(comma)--wrap=,pthread_create pthread_join pthread_mutex_lock \
	pthread_mutex_trylock pthread_mutex_clocklock pthread_mutex_unlock pthread_cond_timedwait \
	pthread_cond_clockwait pthread_cond_signal pthread_cond_wait pthread_cond_broadcast sched_yield pause syscall)
WRAP := $(WRAPPED:%=-Wl,--wrap=%) $(WRAP_MALLOC),--wrap=reallocarray,--wrap=strdup
$(B)/sim-session: $(call objs,$(wildcard tests/sim/kern*.c tests/sim/session_*.c) tests/sim/closer_stub.c $(TLS_STUB))
$(B)/sim-session: LDFLAGS += $(WRAP) -Wl,--wrap=pthread_create -Wl,--wrap=ddps_sctp_send,--wrap=sched_yield
$(B)/sim-sctp: LDFLAGS += $(WRAP_MALLOC)
$(B)/sim-sctp: $(call objs,$(wildcard tests/sim/sctp_*.c) tests/unit/sctp/sctp_net_fixture.c)
$(B)/sim-crossed: $(call objs,$(wildcard tests/sim/crossed_*.c)) $(IPOIB_A)
$(B)/sim-ipoib: $(call objs,$(wildcard tests/sim/kern*.c) \
	$(addprefix tests/sim/ipoib_,worlds.c net.c calm.c again.c)) $(IPOIB_A)
$(B)/sim-ipoib: LDFLAGS += $(WRAP)
# The drop-in, with its threads
$(B)/sim-verbs: $(call objs,$(wildcard tests/sim/verbs_*.c tests/sim/kern*.c) tests/sched/sched.c \
	tests/sched/sched_calls.c \
	$(filter-out src/verbs/vd_socket.c,$(VERBS_SRC)))
$(B)/sim-verbs: LDFLAGS += $(WRAP) $(WRAP_THREADS)
$(B)/sim-%: $(B)/tests/sim/sim_main.o $(B)/tests/sim/sim_random.o $(B)/tests/sim/sim_shrink.o $(LIB_A)
	$(link)

# Many neighbours, connections and nodes in the fabric in memory.
$(B)/scale-ipoib: $(call objs,tests/sim/ipoib_scale.c) $(IPOIB_A)
$(B)/scale-ipoib: private LINK_LIBS =

# Each allocation and each system call is made to fail.
FAULT := $(B)/fault
$(FAULT): $(call objs,$(wildcard tests/fault/*.c tests/sim/kern*.c) tests/sim/sim_random.c tests/sim/closer_stub.c $(TLS_STUB)) $(LIB_A)
$(FAULT): private LINK_FLAGS = $(WRAP) -Wl,--wrap=pthread_create

# The tester is lied to.
LIES := $(B)/lies
LIED := cf_fpdu_recv cf_app_mr cf_recv cf_ping cf_answer cf_expect_term cf_app_recv_data cf_tcp_read \
	cf_sctp_read cf_sctp_read_ctrl cf_sctp_in_order cf_relay_new ddps_cq_wait ddps_cq_poll \
	ddps_event_wait ddps_ep_info ddps_accept ddps_reject ddps_connect ddps_disconnect ddps_post_send \
	ddps_post_recv ddps_mr_dereg ddps_ctx_new ddps_pd_new ddps_cq_new ddps_ep_new ddps_listen recvfrom \
	socket bind listen accept4 connect getsockname getpeername pipe2 fork poll recv send \
	sendto getaddrinfo getnameinfo pthread_create malloc calloc cf_shared_open cf_shared_send \
	cf_shared_recv memfd_create fallocate mmap fcntl fstat recvmsg sendmsg
$(LIES): $(call objs,$(wildcard tests/lies/*.c)) $(CONFORM_A) $(LIB_A)
$(LIES): private LINK_FLAGS = $(LIED:%=-Wl,--wrap=%)

# So is the one for IPoIB, on a network and with a clock of its own.
LIES_IPOIB := $(B)/lies-ipoib
$(LIES_IPOIB): $(call objs,$(wildcard tests/lies/ipoib/*.c)) $(CONFORM_A) $(IPOIB_A) $(LIB_A)
$(LIES_IPOIB): private LINK_FLAGS = $(addprefix -Wl$(comma)--wrap=,cf_now ci_forget socket \
	setsockopt bind close poll sendto recvfrom malloc calloc)

# Threads in that kernel, one at a time, in every order.
SCHED := $(B)/sched
$(SCHED): $(call objs,$(wildcard tests/sched/*.c tests/sim/kern*.c) tests/sim/sim_random.c \
	$(filter-out src/verbs/vd_socket.c,$(VERBS_SRC)) $(TLS_STUB)) $(LIB_A)
$(SCHED): private LINK_FLAGS = $(WRAP) $(WRAP_THREADS)
$(B)/scale-ipoib $(FAULT) $(LIES) $(LIES_IPOIB) $(SCHED):
	$(link)

# Fuzz targets: with libFuzzer in VARIANT=fuzz, else with a main that replays files.  Only the
# members of the archive that a target needs are linked.
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_A	   := $(B)/fuzz.a
FUZZ_BIN   := $(FUZZ_NAMES:%=$(B)/fuzz-%)
FUZZ_ALONE := tests/fuzz/replay.c
FUZZ_MAIN  := $(if $(filter fuzz,$(VARIANT)),,$(call objs,tests/fuzz/replay.c))
$(FUZZ_A): $(call objs,$(filter-out tests/fuzz/fuzz_% $(FUZZ_ALONE),$(wildcard tests/fuzz/*.c)) \
		tests/support/fake_sctp.c tests/support/aead_stub.c $(FABRIC_SRC) src/verbs/vd_settings.c $(VFAULT_SRC) \
		src/verbs/ud/vd_ud_wire.c src/verbs/ud/vd_ud_peer.c \
		$(filter-out tools/sessctl/main.c,$(TOOL_SRC)))
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(B)/fuzz-%: $(B)/tests/fuzz/fuzz_%.o $(FUZZ_MAIN) $(FUZZ_A) $(CONFORM_A) $(IPOIB_A) $(LIB_A)
	$(link)
$(B)/fuzz-%: private LINK_FLAGS = $(if $(FUZZ_MAIN),,-fsanitize=fuzzer) -Wl,--wrap=getrandom,--wrap=clock_gettime
$(B)/fuzz-%: private LINK_LIBS = $(FUZZ_A) $(LIB_LIBS) $(TOOL_LIBS) # its clock is needed by libraries, too

# Whole sessions in the simulated kernel, whose clock and numbers these are.
$(B)/fuzz-wires $(B)/fuzz-shm: $(call objs,$(wildcard tests/sim/kern*.c) tests/sim/sim_random.c tests/sim/closer_stub.c)
$(B)/fuzz-wires $(B)/fuzz-shm: LDFLAGS += $(filter-out %=getrandom %=clock_gettime,$(WRAP)) -Wl,--wrap=pthread_create

# The tester's sockets are the target's.
$(B)/fuzz-conform_ipoib: LDFLAGS += -Wl,--wrap=socket,--wrap=poll,--wrap=sendto,--wrap=recvfrom

# Of the interop suites: an interface that starts again and again, a device of ibsim, a sessctl whose SCTP
# is usrsctp.
$(B)/ipoib-starts: $(B)/tests/interop-ipoib/src/starts.o $(IPOIB_A)
$(B)/ipoib-starts: private LINK_LIBS =
$(B)/ib-preload.so: tests/ib/preload.c
$(B)/ib-preload.so: private LINK_FLAGS = -Wno-missing-prototypes -shared
$(B)/ib-preload.so: private LINK_LIBS = -ldl
# A port of ibsim as libibverbs and libibumad, and what stands before the manager of its fabric.
OPENSM_PORT := $(B)/opensm-port/libibverbs.so.1 $(B)/opensm-port/libibumad.so.3 $(B)/opensm-port/watch.so
$(B)/opensm-port/libibverbs.so.1: $(wildcard tests/interop-ipoib/opensm/port*.[ch]) src/umad/um_mad.c
$(B)/opensm-port/libibverbs.so.1: private LINK_LIBS =
$(B)/opensm-port/libibumad.so.3: $(B)/opensm-port/libibverbs.so.1
	$(Q)ln -sf $(<F) $@
$(B)/opensm-port/watch.so: tests/interop-ipoib/opensm/watch.c
$(B)/opensm-port/watch.so: private LINK_LIBS = -libumad -ldl
$(B)/opensm-port/libibverbs.so.1 $(B)/opensm-port/watch.so: private LINK_FLAGS = -Wno-missing-prototypes -shared \
	-Wl,-z,nodelete
$(B)/sessctl-usrsctp: $(call objs,$(TOOL_SRC) tests/conformance/usrsctp.c $(wildcard tests/peer/*.c)) \
		$(CONFORM_A) $(LIB_A) $(IPOIB_A)
$(B)/sessctl-usrsctp: private LINK_FLAGS = -Wl,--wrap=ddps_ctx_new
$(B)/sessctl-usrsctp: private LINK_LIBS = -lusrsctp $(LIB_LIBS) $(TOOL_LIBS)
$(B)/ipoib-starts $(B)/ib-preload.so $(B)/opensm-port/libibverbs.so.1 $(B)/opensm-port/watch.so $(B)/sessctl-usrsctp:
	$(link)

# What the stack is compared with; none of it is linked with the library.
BENCH_BIN := $(B)/peer_tcp $(B)/peer_many $(B)/peer_beside $(B)/peer_gso $(B)/peer_file $(B)/peer_tls $(B)/peer_dtls $(B)/relay $(B)/peer_fi $(B)/peer_fi_many $(B)/peer_usrsctp $(B)/bench-speed \
	$(B)/sessions $(B)/contexts $(B)/growth $(B)/usage
$(B)/bench/%.o: CPPFLAGS += -Ibench -Itests
$(B)/peer_% $(B)/bench-% $(B)/relay $(B)/usage: private LINK_LIBS =
$(B)/peer_%: $(B)/bench/peer_%.o
	$(link)
$(B)/bench-%: $(B)/bench/%.o
	$(link)
$(B)/relay $(B)/usage $(B)/sessions $(B)/contexts $(B)/growth $(B)/guard $(B)/guard_ipoib $(B)/guard_verbs: \
		$(B)/%: $(B)/bench/%.o
	$(link)
$(B)/sessions $(B)/contexts $(B)/growth $(B)/guard $(B)/guard_verbs: $(LIB_A)
$(B)/guard_ipoib: $(IPOIB_A)
$(B)/guard_verbs: $(call objs,$(VERBS_SRC))
$(B)/guard_verbs: private LINK_LIBS = $(LIB_LIBS) -ldl
# It counts what the library allocates and locks, and its calls of the system; time and chance are its own.
$(B)/guard: private LINK_FLAGS = $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc pthread_mutex_lock send sendmsg sendmmsg \
	recv readv recvmsg recvmmsg read write poll epoll_wait epoll_ctl timerfd_settime getsockopt setsockopt sched_yield \
	socket connect accept4 getsockname shutdown close fstat clock_gettime getrandom)
$(B)/peer_fi $(B)/peer_fi_many: private LINK_LIBS = -lfabric
$(B)/bench-speed $(B)/peer_gso $(B)/peer_many: private LINK_LIBS = -lisal
$(B)/peer_file: private LINK_LIBS = -lnettle
$(B)/peer_usrsctp: private LINK_LIBS = -lusrsctp
$(B)/peer_dtls: private LINK_LIBS = -lssl -lcrypto
# and records of ours, without the rest of the stack
$(B)/peer_tls: $(call objs,$(wildcard bench/peer_tls_*.c src/secure/aead/*.c)) $(LIB_A)
$(B)/peer_tls: private LINK_LIBS = $(LIB_LIBS) $(TLS_LIBS)
