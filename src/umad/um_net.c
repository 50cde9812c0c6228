/* SPDX-License-Identifier: BSD-2-Clause */
/* MADs of a program, out and in; the port is opened in um_life.c. */
#include "umad/um.h"
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include "ipoib_cm/sa/sa_mad.h"

#define OFF_CLASS    1
#define OFF_METHOD   3
#define OFF_TID	     8
#define OFF_OUI	     37
#define OFF_DR_HOPS  7
#define OFF_STRIDE   44 /* of a table's records, in units of 8 octets */
#define NODES_MS     500
#define NODES_NS     (1000 * MS) /* so long it is known which nodes there are */
#define RESPONSE     0x80
#define TRAP_REPRESS 0x07
#define PERMISSIVE   0xffff
#define MS	     UINT64_C(1000000)
#define READS	     16
#define WINDOW	     16 /* segments that may be on their way */
#define HEAD	     (DDPS_CM_MAD_LEN - DDPS_SA_RECORD_LEN)
#define RMPP_NS	     (2000 * MS) /* between two segments */

uint64_t um_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t u32_at(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* ---- for the program ---- */

static void take_nodes(struct um *u, const uint8_t *table, size_t len);

/* The answer to what was asked here; @mad: the question, if there was none. */
static void take_own(struct um *u, bool failed, const uint8_t *mad, size_t len)
{
	struct ddps_sa_head h;

	if (ddps_sa_mad_head(&h, mad))
		return;
	if (h.attr == DDPS_SA_NODE_RECORD) {
		take_nodes(u, failed ? NULL : mad, len);
		return;
	}
	u->path_told = true;
	if (!failed && !h.status)
		ddps_sa_pr_get(&u->path, mad);
}

static void queue_message(struct um *u, const struct ib_user_mad *head, const void *mad, size_t len)
{
	struct um_message *m;

	if (head->agent_id == UM_OWN) {
		take_own(u, head->status, mad, len);
		return;
	}
	m = u->queued < UM_QUEUE ? malloc(sizeof(*m) + len) : NULL;
	if (!m)
		return; /* as a packet that finds no buffer */
	m->head = *head;
	m->len = len;
	memcpy(m->mad, mad, len);
	TAILQ_INSERT_TAIL(&u->queue, m, of_queue);
	u->queued++;
}

static struct ib_user_mad from_lid(unsigned agent, uint16_t slid)
{
	struct ib_user_mad h = { .agent_id = agent };

	h.addr.lid = htobe16(slid);
	h.addr.qpn = htobe32(UM_GSI);
	h.addr.qkey = htobe32(DDPS_CM_QKEY);
	return h;
}

static void end_pending(struct um_pending *p)
{
	free(p->table);
	*p = (struct um_pending){ 0 };
}

static void fail_pending(struct um *u, struct um_pending *p, int err)
{
	p->head.status = (uint32_t)err;
	queue_message(u, &p->head, p->mad, sizeof(p->mad));
	end_pending(p);
}

/* ---- out ---- */

static bool send_um_mad(struct um *u, uint16_t lid, const uint8_t *mad)
{
	struct ddps_ib_pkt p = { .opcode = DDPS_IB_UD | DDPS_IB_SEND_ONLY,
				 .migrated = true,
				 .pkey = UM_PKEY,
				 .qpn = UM_GSI,
				 .psn = u->psn++ & DDPS_IB_PSN_MASK,
				 .qkey = DDPS_CM_QKEY,
				 .src_qpn = UM_GSI,
				 .data = mad,
				 .len = DDPS_CM_MAD_LEN };

	if (!ddps_ib_wire_send(&u->wire, lid, 0, &p))
		return false;
	u->counted.tx++;
	u->counted.tx_data += DDPS_IB_COUNTED(p.len);
	return ddps_ib_wire_flush(&u->wire);
}

static struct um_pending *new_pending(struct um *u)
{
	for (unsigned i = 0; i < UM_PENDING; i++)
		if (!u->pending[i].used)
			return &u->pending[i];
	return NULL;
}

/* Of a node or the switch: answered here, or on its way. */
static void send_directed(struct um *u, struct um_pending *p)
{
	const struct um_route r = um_follow(u, p->mad);
	struct ib_user_mad h = from_lid(p->agent, PERMISSIVE);
	uint8_t mad[DDPS_CM_MAD_LEN];
	bool done;

	memcpy(mad, p->mad, sizeof(mad));
	p->held = false;
	if (!r.nowhere && !r.is_switch && r.lid != u->self.lid) {
		p->lid = r.lid;
		p->due = um_clock() + p->wait_ns; /* it may have been held */
		if (!send_um_mad(u, r.lid, mad))
			fail_pending(u, p, ETIMEDOUT);
		return;
	}
	done = !r.nowhere && (r.is_switch ? um_switch_answer(u, r.lid, mad)
					  : ddps_ib_agents_answer(mad, &u->self, &u->counted));
	if (done) {
		queue_message(u, &h, mad, sizeof(mad));
		end_pending(p);
	} else {
		fail_pending(u, p, ETIMEDOUT);
	}
}

/* By its LID: it is here, or rather nowhere. */
static void ask_switch(struct um *u, struct um_pending *p)
{
	struct ib_user_mad h = from_lid(p->agent, UM_SWITCH);
	uint8_t mad[DDPS_CM_MAD_LEN];

	memcpy(mad, p->mad, sizeof(mad));
	if (!um_switch_answer(u, 0, mad)) {
		fail_pending(u, p, ETIMEDOUT);
		return;
	}
	queue_message(u, &h, mad, sizeof(mad));
	end_pending(p);
}

/* Which nodes there are: a table of NodeRecords. */
static void ask_nodes(struct um *u)
{
	const struct ddps_sa_head h = { .method = DDPS_SA_GET_TABLE, .attr = DDPS_SA_NODE_RECORD };
	struct ib_user_mad to = { .addr.lid = htobe16(u->self.sm_lid) };
	uint8_t mad[DDPS_CM_MAD_LEN];

	u->asking = true;
	ddps_sa_mad_begin(mad, &h);
	if (um_send(u, UM_OWN, &to, mad, sizeof(mad), NODES_MS, 2))
		take_nodes(u, NULL, 0);
}

/* @table: its answer, or NULL: there was none, and this port is the only one known. */
static void take_nodes(struct um *u, const uint8_t *table, size_t len)
{
	const size_t stride =
		table ? 8 * (size_t)(table[OFF_STRIDE] << 8 | table[OFF_STRIDE + 1]) : 0;

	u->asking = false;
	u->told_at = um_clock();
	memset(u->there, 0, sizeof(u->there));
	u->there[u->self.lid] = true;
	for (size_t at = HEAD; stride && at + stride <= len; at += stride)
		if (!table[at])
			u->there[table[at + 1]] = true;
	for (unsigned i = 0; i < UM_PENDING; i++)
		if (u->pending[i].used && u->pending[i].held)
			send_directed(u, &u->pending[i]);
}

int um_send(struct um *u, unsigned agent, const struct ib_user_mad *head, const void *mad,
	    size_t len, int timeout_ms, int retries)
{
	const uint16_t lid = be16toh(head->addr.lid);
	struct um_pending *p = new_pending(u);
	const uint32_t mine = htobe32(u->key | agent);
	uint8_t out[DDPS_CM_MAD_LEN] = { 0 };

	if (len > sizeof(out)) /* several segments go only one way here: in */
		return -EMSGSIZE;
	if (!p)
		return -ENOBUFS;
	memcpy(out, mad, len);
	if (out[OFF_CLASS] != DDPS_SMP_DR_CLASS && (!lid || lid >= IB_WIRE_LIDS))
		return -EHOSTUNREACH;
	if (out[OFF_METHOD] & RESPONSE || out[OFF_METHOD] == TRAP_REPRESS)
		return send_um_mad(u, lid, out) ? 0 : -EAGAIN;
	memcpy(out + OFF_TID, &mine, sizeof(mine));
	*p = (struct um_pending){ .used = true,
				  .agent = agent,
				  .lid = lid,
				  .tid = u32_at(out + OFF_TID + 4),
				  .wait_ns = (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * MS,
				  .left = retries,
				  .head = *head,
				  .next = 1 };
	p->head.agent_id = agent;
	memcpy(p->mad, out, sizeof(out));
	p->due = um_clock() + p->wait_ns;
	if (out[OFF_CLASS] == DDPS_SMP_DR_CLASS) {
		/* nodes come and go: not known for longer than a moment */
		p->held = out[OFF_DR_HOPS] && (!u->told_at || um_clock() - u->told_at > NODES_NS);
		if (!p->held)
			send_directed(u, p);
		else if (!u->asking)
			ask_nodes(u);
		return 0;
	}
	if (lid == UM_SWITCH) {
		ask_switch(u, p);
		return 0;
	}
	if (!send_um_mad(u, lid, out)) {
		end_pending(p);
		return -EAGAIN;
	}
	if (!p->wait_ns) /* nobody waits for an answer */
		end_pending(p);
	return 0;
}

/* ---- in ---- */

static struct um_pending *find_pending(struct um *u, uint16_t slid, const uint8_t *mad)
{
	const uint32_t upper = u32_at(mad + OFF_TID), tid = u32_at(mad + OFF_TID + 4);

	for (unsigned i = 0; i < UM_PENDING; i++) {
		struct um_pending *p = &u->pending[i];

		if (p->used && p->lid == slid && p->tid == tid && (u->key | p->agent) == upper &&
		    p->mad[OFF_CLASS] == mad[OFF_CLASS])
			return p;
	}
	return NULL;
}

static void acknowledge_segment(struct um *u, const struct um_pending *p, const uint8_t *segment)
{
	const struct ddps_rmpp r = { .type = DDPS_RMPP_ACK,
				     .flags = DDPS_RMPP_ACTIVE,
				     .segment = p->next - 1,
				     .length = p->next - 1 + WINDOW };
	uint8_t out[DDPS_CM_MAD_LEN] = { 0 };

	memcpy(out, segment, HEAD);
	out[OFF_METHOD] &= (uint8_t)~RESPONSE;
	ddps_sa_rmpp_put(out, &r);
	(void)send_um_mad(u, p->lid, out);
}

/* A segment of an answer: the header of the first, and the data of all, one behind the other. */
static void take_rmpp_segment(struct um *u, struct um_pending *p, const struct ddps_rmpp *r,
			      const uint8_t *mad)
{
	const bool last = r->flags & DDPS_RMPP_LAST;
	size_t part = DDPS_SA_RECORD_LEN;
	struct ib_user_mad h = from_lid(p->agent, p->lid);
	uint8_t *table;

	if (r->type != DDPS_RMPP_DATA) { /* STOP, ABORT */
		fail_pending(u, p, EPROTO);
		return;
	}
	if (r->segment != p->next) { /* again, or one is missing */
		acknowledge_segment(u, p, mad);
		return;
	}
	if (last && r->length >= DDPS_RMPP_EXTRA && r->length - DDPS_RMPP_EXTRA < part)
		part = r->length - DDPS_RMPP_EXTRA;
	table = p->len + HEAD + part <= UM_TABLE ? realloc(p->table, p->len + HEAD + part) : NULL;
	if (!table) {
		fail_pending(u, p, ENOMEM);
		return;
	}
	p->table = table;
	if (!p->len) {
		memcpy(table, mad, HEAD);
		p->len = HEAD;
	}
	memcpy(table + p->len, mad + HEAD, part);
	p->len += part;
	p->next++;
	p->left = 0; /* the question has been heard */
	p->due = um_clock() + (p->wait_ns > RMPP_NS ? p->wait_ns : RMPP_NS);
	acknowledge_segment(u, p, mad);
	if (last) {
		queue_message(u, &h, p->table, p->len);
		end_pending(p);
	}
}

static void take_um_answer(struct um *u, uint16_t slid, const uint8_t *mad)
{
	struct um_pending *p = find_pending(u, slid, mad);
	struct ib_user_mad h;
	struct ddps_rmpp r;

	if (!p)
		return;
	if (u->agent[p->agent].rmpp && ddps_sa_rmpp_get(&r, mad)) {
		take_rmpp_segment(u, p, &r, mad);
		return;
	}
	h = from_lid(p->agent, slid);
	queue_message(u, &h, mad, DDPS_CM_MAD_LEN);
	end_pending(p);
}

static bool wants(const struct um_agent *a, const uint8_t *mad)
{
	const uint8_t method = mad[OFF_METHOD];

	return a->used && a->mgmt_class == mad[OFF_CLASS] &&
	       a->methods[method / 64] >> method % 64 & 1 &&
	       (!a->has_oui || !memcmp(a->oui, mad + OFF_OUI, sizeof(a->oui)));
}

static void take_question(struct um *u, uint16_t slid, const uint8_t *mad)
{
	uint8_t out[DDPS_CM_MAD_LEN];
	struct ib_user_mad h;

	for (unsigned i = 0; i < UM_AGENTS; i++)
		if (wants(&u->agent[i], mad)) {
			h = from_lid(i, slid);
			queue_message(u, &h, mad, DDPS_CM_MAD_LEN);
			return;
		}
	memcpy(out, mad, sizeof(out));
	if (ddps_ib_agents_answer(out, &u->self, &u->counted))
		(void)send_um_mad(u, slid, out);
}

void um_take_packet(void *user, uint16_t slid, uint16_t mlid, const struct ddps_ib_pkt *p,
		    uint64_t now)
{
	struct um *u = user;

	(void)now;
	u->counted.rx++;
	u->counted.rx_data += DDPS_IB_COUNTED(p->len);
	if (mlid || (p->opcode & DDPS_IB_TRANSPORT) != DDPS_IB_UD || p->qpn != UM_GSI ||
	    p->qkey != DDPS_CM_QKEY || p->len != DDPS_CM_MAD_LEN ||
	    !ddps_ib_pkey_match(p->pkey, UM_PKEY)) {
		u->counted.rx_errors += !mlid;
		return;
	}
	if (p->data[OFF_METHOD] & RESPONSE)
		take_um_answer(u, slid, p->data);
	else
		take_question(u, slid, p->data);
}

static void set_um_timer(struct um *u)
{
	struct itimerspec t = { .it_value = { 0 } };
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < UM_PENDING; i++)
		if (u->pending[i].used && !u->pending[i].held && u->pending[i].due < due)
			due = u->pending[i].due;
	if (due != UINT64_MAX) {
		t.it_value.tv_sec = (time_t)(due / 1000000000u);
		t.it_value.tv_nsec = (long)(due % 1000000000u);
	}
	(void)timerfd_settime(u->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

void um_run(struct um *u)
{
	uint64_t now = um_clock();

	/* Not all, however much comes: who waits here has a time. */
	for (int i = 0; i < READS && ddps_ib_wire_read(&u->wire, now); i++)
		continue;
	for (unsigned i = 0; i < UM_PENDING; i++) {
		struct um_pending *p = &u->pending[i];

		if (!p->used || p->held || p->due > now)
			continue;
		if (p->left-- > 0 && send_um_mad(u, p->lid, p->mad))
			p->due = now + p->wait_ns;
		else
			fail_pending(u, p, ETIMEDOUT);
	}
	set_um_timer(u);
}

static void forget_messages(struct um *u, unsigned agent)
{
	struct um_message *m, *next;

	for (m = TAILQ_FIRST(&u->queue); m; m = next) {
		next = TAILQ_NEXT(m, of_queue);
		if (m->head.agent_id != agent)
			continue;
		TAILQ_REMOVE(&u->queue, m, of_queue);
		u->queued--;
		free(m);
	}
}

void um_forget(struct um *u, unsigned agent)
{
	u->agent[agent] = (struct um_agent){ 0 };
	forget_messages(u, agent); /* the next one may have its number */
	for (unsigned i = 0; i < UM_PENDING; i++)
		if (u->pending[i].used && u->pending[i].agent == agent)
			end_pending(&u->pending[i]);
}
