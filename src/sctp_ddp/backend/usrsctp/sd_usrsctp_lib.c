/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The usrsctp library is one per process.  All that is global about it is in this file: its
 * lock, its life, its clock, the SCTP ports and the handles that it knows peers by.
 *
 * Every call of usrsctp is made with the lock held, so its upcalls and its output run in
 * whatever thread called it, locked too.  They only note what happened and wake the owner.
 */
/* uthash would else end the process when memory runs out. */
#define HASH_NONFATAL_OOM 1
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_MSEC  1000000u
#define PORT_FIRST     49152u
#define PORT_COUNT     16384u
#define PORT_TRIES     1000
#define FINISH_TRIES   100
#define FINISH_STEP_MS 1000
/* A sender that waits until all is acknowledged, as one does now and then to keep its DDP-SSNs
 * apart [5043-10-d1], would wait the 200 ms that RFC 9260 6.2 allows for a single last packet. */
#define SACK_DELAY_MS 10
#define MAX_CHUNKS    16384 /* messages queued per association, besides the octets */

static struct {
	pthread_mutex_t lock;
	unsigned users; /* contexts */
	bool running;
	struct ddps_us_env *current; /* the context whose thread holds the lock */
	unsigned tickers;
	uint64_t clock; /* ddps_now() up to which usrsctp's timers have run */
	uint64_t serial;
	uint64_t key[4]; /* of the handles' ids */
	struct ddps_siphash_key seal;
	struct ddps_us_handle *handles;
	struct ddps_us_port *ports;
} lib = { .lock = PTHREAD_MUTEX_INITIALIZER };

void ddps_us_lock(struct ddps_us_env *ue)
{
	pthread_mutex_lock(&lib.lock);
	lib.current = ue;
}

void ddps_us_unlock(void)
{
	int keep = errno;

	if (lib.current)
		ddps_us_flush(lib.current);
	lib.current = NULL;
	pthread_mutex_unlock(&lib.lock);
	errno = keep;
}

void ddps_us_unlock_later(void)
{
	int keep = errno;

	if (!ddps_loop_running(lib.current->env->loop)) /* a post: nothing else will come */
		ddps_us_flush(lib.current);
	else if (lib.current->out.n)
		ddps_task_post(lib.current->env->loop, &lib.current->flush);
	lib.current = NULL;
	pthread_mutex_unlock(&lib.lock);
	errno = keep;
}

/* usrsctp's way out.  A loss here is a loss on the network to it: it will send again. */
static int output(void *addr, void *pkt, size_t len, uint8_t tos, uint8_t set_df)
{
	struct ddps_us_handle *h = ddps_us_handle_find((uintptr_t)addr);

	(void)tos;
	(void)set_df;
	if (h)
		ddps_us_transmit(h, pkt, len, h->carrier->ue == lib.current);
	return 0;
}

/* RFC 5043 forbids or has no use for every extension but the adaptation indication
 * [5043-5.1-d2]; partial reliability and stream reset would even do harm. */
static void set_up_library(void)
{
	usrsctp_sysctl_set_sctp_ecn_enable(0);
	usrsctp_sysctl_set_sctp_pr_enable(0);
	usrsctp_sysctl_set_sctp_asconf_enable(0);
	usrsctp_sysctl_set_sctp_auth_enable(0);
	usrsctp_sysctl_set_sctp_reconfig_enable(0);
	usrsctp_sysctl_set_sctp_nrsack_enable(0);
	usrsctp_sysctl_set_sctp_pktdrop_enable(0);
	usrsctp_sysctl_set_sctp_max_chunks_on_queue(MAX_CHUNKS);
	usrsctp_sysctl_set_sctp_delayed_sack_time_default(SACK_DELAY_MS);
	usrsctp_enable_crc32c_offload();
}

int ddps_us_lib_get(void)
{
	sigset_t all, old;

	pthread_mutex_lock(&lib.lock);
	if (!lib.running) {
		if (getrandom(lib.key, sizeof lib.key, 0) != sizeof lib.key ||
		    getrandom(&lib.seal, sizeof lib.seal, 0) != sizeof lib.seal) {
			pthread_mutex_unlock(&lib.lock);
			return DDPS_E_SYSTEM;
		}
		/* usrsctp starts one helper thread of its own even so: no signals there. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		usrsctp_init_nothreads(0, output, NULL);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		set_up_library();
		lib.running = true;
	}
	lib.users++;
	pthread_mutex_unlock(&lib.lock);
	return 0;
}

/* The library cannot go while an association lingers, and such ones are ended by timers.
 * Nobody waits for them, so time is made up. */
static void try_to_finish(void)
{
	const struct timespec a_moment = { .tv_nsec = NSEC_PER_MSEC };

	for (int i = 0; i < FINISH_TRIES; i++) {
		if (usrsctp_finish() == 0) {
			lib.running = false;
			return;
		}
		usrsctp_handle_timers(FINISH_STEP_MS);
		nanosleep(&a_moment, NULL); /* for usrsctp's helper thread */
	}
}

void ddps_us_lib_put(void)
{
	pthread_mutex_lock(&lib.lock);
	if (--lib.users == 0)
		try_to_finish();
	pthread_mutex_unlock(&lib.lock);
}

/* ---- the clock ---- */

void ddps_us_advance(void)
{
	uint64_t now = ddps_now();
	uint32_t ms = (uint32_t)((now - lib.clock) / NSEC_PER_MSEC);

	if (!ms)
		return;
	lib.clock += (uint64_t)ms * NSEC_PER_MSEC;
	usrsctp_handle_timers(ms);
}

void ddps_us_set_ticking(struct ddps_us_env *ue, bool on)
{
	if (ue->ticking == on)
		return;
	ue->ticking = on;
	/* While nobody had an association there was nothing to time. */
	if (on && lib.tickers == 0)
		lib.clock = ddps_now();
	lib.tickers += on ? 1u : -1u;
}

void ddps_us_mark(struct ddps_sd_assoc *a)
{
	struct ddps_us_env *ue = a->ue;
	uint64_t one = 1;

	if (a->queued)
		return;
	a->queued = true;
	DL_APPEND2(ue->ready, a, ready_prev, ready_next);
	if (ue == lib.current)
		ddps_task_post(ue->env->loop, &ue->drain);
	else if (write(ue->wake.fd, &one, sizeof one) < 0)
		ue->drops++; /* cannot happen: the counter would have to be full */
}

/* ---- handles ---- */

uint64_t ddps_us_serial(void)
{
	return ++lib.serial;
}

const struct ddps_siphash_key *ddps_us_seal_key(void)
{
	return &lib.seal;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Who does not know the key cannot find two addresses of one id. */
uintptr_t ddps_us_handle_id(const struct ddps_us_carrier *c, const struct ddps_us_addr *addr)
{
	uint64_t w[3], id;

	_Static_assert(sizeof w == sizeof *addr, "an address has octets that are not hashed");
	memcpy(w, addr, sizeof w);
	id = fold(w[0] ^ lib.key[0], w[1] ^ lib.key[1]);
	id = fold(id ^ w[2] ^ lib.key[2], c->serial ^ lib.key[3]);
	return (uintptr_t)id | 1; /* NULL has a meaning of its own */
}

int ddps_us_handle_enter(struct ddps_us_handle *h)
{
	HASH_ADD(hh, lib.handles, id, sizeof h->id, h);
	return h->hh.tbl ? 0 : DDPS_E_NOMEM;
}

void ddps_us_handle_leave(struct ddps_us_handle *h)
{
	HASH_DELETE(hh, lib.handles, h);
}

struct ddps_us_handle *ddps_us_handle_find(uintptr_t id)
{
	struct ddps_us_handle *h;

	HASH_FIND(hh, lib.handles, &id, sizeof id, h);
	return h;
}

struct sockaddr_conn ddps_us_sconn(const struct ddps_us_handle *h, uint16_t port)
{
	return (struct sockaddr_conn){
		.sconn_family = AF_CONN,
		.sconn_port = htons(port),
		.sconn_addr = h ? (void *)h->id : NULL,
	};
}

/* ---- ports ---- */

struct ddps_us_port *ddps_us_port_find(uint16_t num)
{
	struct ddps_us_port *p;

	HASH_FIND(hh, lib.ports, &num, sizeof num, p);
	return p;
}

static uint16_t free_port(void)
{
	for (int i = 0; i < PORT_TRIES; i++) {
		uint16_t r, num;

		if (getrandom(&r, sizeof r, 0) != sizeof r)
			return 0;
		num = (uint16_t)(PORT_FIRST + r % PORT_COUNT);
		if (!ddps_us_port_find(num))
			return num;
	}
	return 0;
}

int ddps_us_port_get(struct ddps_us_carrier *c, uint16_t num, struct ddps_us_port **out)
{
	struct ddps_us_port *p = NULL;

	if (!num)
		num = free_port();
	else
		p = ddps_us_port_find(num);
	if (!num || (p && p->carrier != c)) {
		errno = EADDRINUSE;
		return DDPS_E_SYSTEM;
	}
	if (!p) {
		p = calloc(1, sizeof *p);
		if (!p)
			return DDPS_E_NOMEM;
		p->num = num;
		p->carrier = c;
		HASH_ADD(hh, lib.ports, num, sizeof p->num, p);
		if (!p->hh.tbl) {
			free(p);
			return DDPS_E_NOMEM;
		}
	}
	p->refs++;
	*out = p;
	return 0;
}

void ddps_us_port_put(struct ddps_us_port *p)
{
	if (--p->refs)
		return;
	HASH_DELETE(hh, lib.ports, p);
	free(p);
}
