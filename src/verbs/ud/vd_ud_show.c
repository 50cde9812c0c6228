/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of datagrams: at the end of the process, and for sessctl stat while it runs. */
#include "verbs/ud/vd_ud_in.h"
#include "common/system/say.h"
#include <inttypes.h>
#include <stdio.h>

#define LOCK_S 1 /* to wait for the lock: a signal handler may have left it taken for good */

void ud_stats_add(struct vd_ud_stats *to, const struct vd_ud_stats *st)
{
	to->sent += st->sent;
	to->sent_octets += st->sent_octets;
	to->received += st->received;
	to->received_octets += st->received_octets;
	to->no_recv += st->no_recv;
	to->bad_qkey += st->bad_qkey;
	to->malformed += st->malformed;
	to->unreachable += st->unreachable;
	to->cq_full += st->cq_full;
}

struct vd_ud_stats ud_stats_all(const struct vd_ud *ud)
{
	struct vd_ud_stats st = ud->stats;
	const struct vd_ud_qp *u;

	ddps_assert_held(&ud->lock);
	LIST_FOREACH(u, &ud->qps, link)
		ud_stats_add(&st, &u->stats);
	return st;
}

void vd_ud_stats_tell(struct vd_process *p)
{
	struct vd_ud *ud = __atomic_load_n(&p->ud, __ATOMIC_ACQUIRE);
	struct vd_ud_stats st;

	if (!ud)
		return;
	ddps_lock(&ud->lock);
	st = ud_stats_all(ud);
	ddps_unlock(&ud->lock);
	ddps_say("ddpsess: datagrams sent: %" PRIu64 "\n"
		 "ddpsess: datagrams received: %" PRIu64 "\n"
		 "ddpsess: datagrams without a receive: %" PRIu64 "\n"
		 "ddpsess: datagrams with a wrong Q_Key: %" PRIu64 "\n"
		 "ddpsess: datagrams malformed or misdirected: %" PRIu64 "\n"
		 "ddpsess: datagrams to nobody: %" PRIu64 "\n"
		 "ddpsess: completions of datagrams lost: %" PRIu64 "\n",
		 st.sent, st.received, st.no_recv, st.bad_qkey, st.malformed, st.unreachable,
		 st.cq_full);
}

struct vd_ud_count vd_ud_count(struct vd_process *p)
{
	struct vd_ud *ud = __atomic_load_n(&p->ud, __ATOMIC_ACQUIRE);
	struct vd_ud_stats st = { 0 };

	if (ud) {
		ddps_lock(&ud->lock);
		st = ud_stats_all(ud);
		ddps_unlock(&ud->lock);
	}
	return (struct vd_ud_count){ st.sent, st.sent_octets, st.received, st.received_octets };
}

static const char *get_ud_state_name(enum ibv_qp_state state)
{
	static const char *const names[] = {
		[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
		[IBV_QPS_RTS] = "RTS",	   [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
		[IBV_QPS_ERR] = "ERR",
	};

	return state < sizeof names / sizeof *names ? names[state] : "UNKNOWN";
}

static int put_ud_stats(const struct vd_ud_qp *u, char *to, size_t size)
{
	const struct vd_ud_stats *st = &u->stats;

	return snprintf(to, size,
			"{\"qp_num\":%" PRIu32 ",\"state\":\"%s\",\"port\":%u,\"groups\":%u"
			",\"sent\":{\"messages\":%" PRIu64 ",\"octets\":%" PRIu64 "}"
			",\"received\":{\"messages\":%" PRIu64 ",\"octets\":%" PRIu64 "}"
			",\"sends_posted\":%" PRIu32 ",\"recvs_posted\":%" PRIu32
			",\"no_buffer\":%" PRIu64 ",\"bad_qkey\":%" PRIu64 ",\"malformed\":%" PRIu64
			",\"unreachable\":%" PRIu64 ",\"cq_overflow\":%" PRIu64 "}",
			u->qp->qp.qp_base.qp_num, get_ud_state_name(ud_state(u)), u->port,
			u->ngroups, st->sent, st->sent_octets, st->received, st->received_octets,
			u->nsq, u->rq_count, st->no_recv, st->bad_qkey, st->malformed,
			st->unreachable, st->cq_full);
}

int vd_ud_show(void *process, uint32_t n, char *to, size_t size)
{
	struct vd_process *p = process;
	struct vd_ud *ud = __atomic_load_n(&p->ud, __ATOMIC_ACQUIRE);
	const struct vd_ud_qp *u;
	struct timespec until;
	int len;

	if (!ud)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOCK_S;
	if (ddps_lock_until(&ud->lock, &until))
		return -1;
	LIST_FOREACH(u, &ud->qps, link)
		if (!n--)
			break;
	len = u ? put_ud_stats(u, to, size) : 0;
	ddps_unlock(&ud->lock);
	return len;
}
