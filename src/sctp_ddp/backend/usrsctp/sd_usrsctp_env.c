/* SPDX-License-Identifier: BSD-2-Clause */
/* What one context has of usrsctp: its clock tick and the associations that are ready. */
#include "common/own.h"
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_MS	     10
#define TICK_IDLE_MS 100
#define IDLE_NS	     1000000000u
#define SERVES	     256 /* associations per turn */

static void drain(void *user)
{
	struct ddps_us_env *ue = user;
	struct ddps_sd_assoc *a;

	for (int i = 0; i < SERVES; i++) {
		ddps_us_lock(ue);
		a = ue->ready;
		if (a) {
			DL_DELETE2(ue->ready, a, ready_prev, ready_next);
			a->queued = false;
		}
		ddps_us_unlock();
		if (!a)
			return;
		ddps_us_serve(a);
	}
	ddps_task_post(ue->env->loop, &ue->drain);
}

static void woken(void *user, uint32_t events)
{
	struct ddps_us_env *ue = user;
	uint64_t n;

	(void)events;
	if (read(ue->wake.fd, &n, sizeof n) > 0)
		drain(ue);
}

/* usrsctp calls up for packets and for some timers only: look after the rest. */
static void look(struct ddps_sd_assoc *a)
{
	int ev;

	if (!a->so || a->queued)
		return;
	if (a->h->mtu_stale)
		ddps_us_handle_probe(a->h);
	if (a->h->payload != a->payload)
		ddps_us_assoc_payload(a, a->h->payload);
	ev = usrsctp_get_events(a->so);
	if ((ev & SCTP_EVENT_ERROR) || ((ev & SCTP_EVENT_READ) && !a->life.paused) ||
	    ((ev & SCTP_EVENT_WRITE) && a->life.want_write))
		ddps_us_mark(a);
}

static void tick(void *user)
{
	struct ddps_us_env *ue = user;
	struct ddps_sd_assoc *a;
	bool idle, done;

	ddps_us_lock(ue);
	idle = ddps_now() - ue->busy > IDLE_NS;
	ddps_us_advance();
	for (a = ue->assocs; a; a = a->next)
		look(a);
	/* usrsctp clears up behind an association by timers: go on a little. */
	done = idle && !ue->assocs;
	if (done)
		ddps_us_set_ticking(ue, false);
	ddps_us_unlock();
	if (!done)
		ddps_timer_after(ue->env->loop, &ue->tick, idle ? TICK_IDLE_MS : TICK_MS);
}

void ddps_us_start_ticking(struct ddps_us_env *ue)
{
	if (ue->ticking)
		return;
	ddps_us_set_ticking(ue, true);
	ddps_timer_after(ue->env->loop, &ue->tick, TICK_MS);
}

static void flush(void *user)
{
	struct ddps_us_env *ue = user;

	ddps_us_lock(ue);
	ddps_us_unlock();
}

static int env_new(struct ddps_env *env, struct ddps_us_env **out)
{
	struct ddps_us_env *ue = calloc(1, sizeof *ue);

	if (!ue)
		return DDPS_E_NOMEM;
	ue->env = env;
	ue->drain = (struct ddps_task){ .fn = drain, .user = ue };
	ue->flush = (struct ddps_task){ .fn = flush, .user = ue };
	ue->tick = (struct ddps_timer){ .fn = tick, .user = ue };
	ue->wake = (struct ddps_io){ .fn = woken, .user = ue };
	ue->rx_buf = malloc(DDPS_SD_MSG_MAX);
	ue->tx_buf = malloc(DDPS_SD_MSG_MAX);
	ue->out.buf = malloc(DDPS_US_OUT_LEN);
	ue->wake.fd = ddps_own(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	if (ue->rx_buf && ue->tx_buf && ue->out.buf && ue->wake.fd >= 0 &&
	    ddps_io_set(env->loop, &ue->wake, EPOLLIN) == 0 && ddps_us_lib_get() == 0) {
		*out = ue;
		return 0;
	}
	ddps_io_del(env->loop, &ue->wake);
	if (ue->wake.fd >= 0)
		ddps_own_close(ue->wake.fd);
	free(ue->rx_buf);
	free(ue->tx_buf);
	free(ue->out.buf);
	free(ue);
	return DDPS_E_SYSTEM;
}

int ddps_us_env_get(struct ddps_env *env, void **ctx, struct ddps_us_env **out)
{
	int err = 0;

	if (!*ctx) {
		err = env_new(env, out);
		if (!err)
			*ctx = *out;
	}
	*out = *ctx;
	return err;
}

void ddps_us_env_free(struct ddps_us_env *ue)
{
	ddps_us_lock(ue);
	ddps_us_set_ticking(ue, false);
	ddps_us_unlock();
	ddps_timer_stop(ue->env->loop, &ue->tick);
	ddps_task_cancel(ue->env->loop, &ue->drain);
	ddps_task_cancel(ue->env->loop, &ue->flush);
	ddps_io_del(ue->env->loop, &ue->wake);
	ddps_own_close(ue->wake.fd);
	ddps_us_lib_put();
	free(ue->rx_buf);
	free(ue->tx_buf);
	free(ue->out.buf);
	free(ue);
}
