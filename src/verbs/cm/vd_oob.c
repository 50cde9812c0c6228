/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that programs connect themselves: they exchange QP number and GID on a way of their
 * own and call ibv_modify_qp.  The GID is the host's address, and so is the LID on InfiniBand's face.  The number leads to a listener: its
 * low 16 bits are the port, the high 8 say which of the queue pairs that share it.  Of two, the one
 * whose (GID, number) is lower connects, from the address of its GID; its private data names both
 * numbers.  No call waits for the other side, which may not know this one's number yet: requests to
 * send are kept until then (vd_later.c).  One that is its own peer has a second endpoint, which it sends through.
 *
 * Whoever guesses a number can ask for it.  So several may wait until the program says who the peer
 * is, and both address and number are compared then.
 */
#include "verbs/cm/vd_oob.h"
#include "verbs/cm/vd_event.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/vd_lid.h"
#include "verbs/vd_secure.h"
#include "verbs/vd_why.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHARE	 240 /* queue pairs behind one port; higher octets are of datagrams */
#define BACKLOG	 128
#define PATIENCE 60000 /* ms until the other side is ready too */
#define HELLO	 16

static const char magic[8] = "ddpsQP1";

struct vd_oob_port {
	LIST_ENTRY(vd_oob_port) link;
	struct rdma_cm_id *listener;
	uint16_t number;
	union ibv_gid gid;
	struct vd_qp *qp[SHARE];
};

struct vd_oob {
	struct vd_oob_port *port;
	unsigned index;	   /* in port->qp */
	bool known;	   /* who the peer is: in RTR or beyond */
	bool active;	   /* connects */
	uint32_t dest;	   /* the peer's number */
	struct in_addr at; /* and address */
	uint8_t ird;
	/* In strict mode: the requests of its session, and which of them were the last Reads and atomics. */
	uint32_t posts, reads, read_at[VD_MAX_RD];
	struct vd_callers callers;
	uint64_t *held; /* receives that came back when the peer left in order */
	unsigned nheld;
	bool release;
};

static struct vd_process *get_oob_process(const struct vd_qp *qp)
{
	return vd_of(qp->qp.qp_base.context, struct vd_context, v.context)->p;
}

/* ---- numbers ---- */

static struct vd_oob_port *port_new(struct vd_process *p, const struct sockaddr_in *a4)
{
	struct vd_oob_port *port = calloc(1, sizeof *port);
	int err;

	if (!port)
		return NULL;
	vd_gid_of(a4, &port->gid);
	if (vdi_rdma_create_id(NULL, &port->listener, NULL, RDMA_PS_TCP)) {
		free(port);
		return NULL;
	}
	vd_of(port->listener, struct vd_id, id)->oob = port;
	if (vdi_rdma_bind_addr(port->listener, (struct sockaddr *)(uintptr_t)a4) ||
	    /* over a secured wire nobody may come: the number is all that it is for */
	    (!p->cfg.secured && vdi_rdma_listen(port->listener, BACKLOG))) {
		err = errno;
		vdi_rdma_destroy_id(port->listener);
		free(port);
		errno = err;
		return NULL;
	}
	port->number = ntohs(rdma_get_src_port(port->listener));
	ddps_lock(&p->lock);
	LIST_INSERT_HEAD(&p->oob_ports, port, link);
	ddps_unlock(&p->lock);
	return port;
}

static bool place_at(struct vd_oob_port *port, struct vd_qp *qp, struct vd_oob *o)
{
	for (unsigned i = 0; i < SHARE; i++)
		if (!port->qp[i]) {
			o->port = port;
			o->index = i;
			qp->qp.qp_base.qp_num = i << 16 | port->number;
			qp->oob = o;
			port->qp[i] = qp;
			return true;
		}
	return false;
}

/* Where there is room.  Places are given back under the lock too, and peers' requests look there. */
static bool place_oob_qp(struct vd_process *p, struct vd_qp *qp, struct vd_oob *o,
			 const struct sockaddr_in *a4)
{
	struct vd_oob_port *port;
	union ibv_gid gid;

	vd_gid_of(a4, &gid);
	ddps_lock(&p->lock);
	LIST_FOREACH(port, &p->oob_ports, link)
		if (!memcmp(&port->gid, &gid, sizeof gid) && place_at(port, qp, o))
			break;
	ddps_unlock(&p->lock);
	return port;
}

int vd_oob_new(struct vd_qp *qp)
{
	struct vd_process *p = get_oob_process(qp);
	struct vd_oob *o = calloc(1, sizeof *o);
	struct sockaddr_in a4;
	bool placed;
	int err;

	if (!o)
		return ENOMEM;
	STAILQ_INIT(&o->callers);
	vd_own_address(qp->qp.qp_base.context, &a4);
	ddps_lock(&p->oob_lock); /* one more port is enough for all who look for one */
	placed = place_oob_qp(p, qp, o, &a4) || (port_new(p, &a4) && place_oob_qp(p, qp, o, &a4));
	err = placed ? 0 : errno;
	ddps_unlock(&p->oob_lock);
	if (!placed)
		free(o);
	return err;
}

struct vd_qp *vd_oob_find(struct vd_process *p, uint32_t number)
{
	struct vd_oob_port *port;

	ddps_assert_held(&p->lock);
	LIST_FOREACH(port, &p->oob_ports, link)
		for (unsigned i = 0; i < SHARE; i++)
			if (port->qp[i] && port->qp[i]->qp.qp_base.qp_num == number)
				return port->qp[i];
	return NULL;
}

void vd_oob_reset(struct vd_qp *qp)
{
	struct vd_oob *o = qp->oob;

	ddps_assert_held(&vd_process_of(qp->qp.qp_base.context)->lock);
	ddps_lock(&qp->lock);
	vd_later_drop(qp);
	o->nheld = o->posts = o->reads = 0;
	o->release = o->known = o->active = false;
	ddps_unlock(&qp->lock);
}

void vd_oob_free(struct vd_qp *qp)
{
	struct vd_oob *o = qp->oob;

	ddps_assert_held(&vd_process_of(qp->qp.qp_base.context)->lock);
	if (!o)
		return;
	o->port->qp[o->index] = NULL;
	while (!STAILQ_EMPTY(&o->callers))
		ddps_reject(vd_callers_take(&o->callers), NULL, 0);
	free(o->held);
	free(o);
	qp->oob = NULL;
}

/* ---- receives after the peer has left ---- */

/*
 * On InfiniBand nothing says that a peer has destroyed its queue pair, and receives stay posted.
 * Programs that have not fetched their last completions yet take flushed ones for a failure.
 */
bool vd_oob_hold(struct vd_qp *qp, uint64_t wr_id)
{
	struct vd_oob *o = qp->oob;
	uint64_t *more = NULL;

	if (!o || qp->lent)
		return false;
	ddps_lock(&qp->lock);
	if (!o->release)
		more = reallocarray(o->held, o->nheld + 1, sizeof *more);
	if (more) {
		o->held = more;
		o->held[o->nheld++] = wr_id;
	}
	ddps_unlock(&qp->lock);
	return more;
}

/* Posted once more where the session has ended, they come back immediately. */
void vd_oob_release(struct vd_qp *qp)
{
	struct vd_oob *o = qp->oob;

	if (!o)
		return;
	ddps_lock(&qp->lock);
	o->release = true;
	for (unsigned i = 0; i < o->nheld; i++)
		ddps_post_recv(qp->ep, o->held[i], NULL, 0);
	o->nheld = 0;
	ddps_unlock(&qp->lock);
	ddps_ep_mute(qp->ep, 0); /* now they are reported */
}

/* ---- the two ways to a session ---- */

static void fill_oob_param(const struct vd_qp *qp, struct ddps_conn_param *param)
{
	struct rdma_conn_param conn = { .responder_resources = qp->oob->ird,
					.initiator_depth = VD_MAX_RD };

	vd_conn_param(get_oob_process(qp), &conn, param);
	param->ird_hard = true; /* it is what the program has said, neither more nor less */
	param->setup_ms = PATIENCE;
}

/*
 * How many are on their way at most is said when the session may be up already.  The wire has made both
 * sides agree on what the peer takes; an adapter does not know that, and its Reads would fail.
 */
int vd_oob_reads(struct vd_qp *qp)
{
	const uint16_t most = qp->said.max_rd_atomic;
	struct ddps_conn_info info = { 0 };

	if (!qp->oob || qp->lent || !most)
		return 0;
	if (qp->phase == VD_QP_UP && !ddps_ep_info(vd_tx(qp), &info) && info.peer_ird < most &&
	    vd_why_is_due(qp, VD_WHY_READS))
		vd_why_say(qp,
			   ", peer %s: max_rd_atomic is %u, and the peer's max_dest_rd_atomic is "
			   "%u: an adapter's Reads fail if more are on their way",
			   info.peer, most, info.peer_ird);
	return vd_errno(ddps_ep_reads_max(vd_tx(qp), most));
}

/* Whether the Read that was posted as many of them before as the peer takes has not ended. */
static bool are_reads_too_many(const struct vd_qp *qp, uint16_t most)
{
	const struct vd_oob *o = qp->oob;
	struct ddps_ep_stats st = { .struct_size = sizeof st };

	return o->reads > most && !ddps_ep_stats(vd_tx(qp), &st) &&
	       o->posts - o->read_at[(o->reads - 1 - most) % VD_MAX_RD] <= st.sends_posted;
}

void vd_oob_posted(struct vd_qp *qp, bool read)
{
	struct ddps_conn_info info = { 0 };
	struct vd_oob *o = qp->oob;

	ddps_assert_held(&qp->lock);
	o->posts++;
	if (!read)
		return;
	o->read_at[o->reads++ % VD_MAX_RD] = o->posts - 1;
	if (ddps_ep_info(vd_tx(qp), &info) || info.peer_ird >= qp->said.max_rd_atomic ||
	    !are_reads_too_many(qp, info.peer_ird))
		return;
	if (vd_why_is_due(qp, VD_WHY_ENDED))
		vd_why_say(qp,
			   ", peer %s: more than %u Reads are on their way, the peer's "
			   "max_dest_rd_atomic, so the connection ends",
			   info.peer, info.peer_ird);
	__atomic_store_n(&qp->overread, true, __ATOMIC_RELAXED);
	ddps_abort(vd_tx(qp));
}

static void put_oob_u32(uint8_t *at, uint32_t n)
{
	n = htonl(n);
	memcpy(at, &n, sizeof n);
}

static uint32_t get_oob_u32(const uint8_t *at)
{
	uint32_t n;

	memcpy(&n, at, sizeof n);
	return ntohl(n);
}

static int dial_oob_peer(struct vd_qp *qp)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_addr = qp->oob->at,
				  .sin_port = htons((uint16_t)qp->oob->dest) };
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct ddps_conn_param param;
	uint8_t hello[HELLO];
	char uri[160], local[80];

	memcpy(&own.sin_addr, qp->oob->port->gid.raw + 12, sizeof own.sin_addr);
	vd_addr_text((struct sockaddr *)&own, local, sizeof local);
	memcpy(hello, magic, sizeof magic);
	put_oob_u32(hello + 8, qp->qp.qp_base.qp_num);
	put_oob_u32(hello + 12, qp->oob->dest);
	fill_oob_param(qp, &param);
	param.local = local; /* the peer looks for it */
	param.private_data = hello;
	param.private_data_len = sizeof hello;
	vd_uri(&get_oob_process(qp)->cfg, (struct sockaddr *)&a4, uri, sizeof uri);
	return vd_errno(ddps_connect(vd_tx(qp), uri, &param));
}

/* Whether it is whom the program names, or last named. */
static bool is_oob_peer(const struct vd_oob *o, uint32_t number, struct in_addr addr)
{
	return number == o->dest && addr.s_addr == o->at.s_addr;
}

/* Once this side is ready its peer is accepted, and nobody else.  The lock is held. */
static int answer_oob_peer(struct vd_qp *qp)
{
	struct vd_oob *o = qp->oob;
	const struct vd_caller *first;
	struct ddps_conn_param param;
	bool accepted = false;
	int err = 0;

	ddps_assert_held(&vd_process_of(qp->qp.qp_base.context)->lock);
	while (o->known && (first = STAILQ_FIRST(&o->callers))) {
		bool meant = !o->active && !accepted && is_oob_peer(o, first->number, first->addr);
		struct ddps_request *request = vd_callers_take(&o->callers);

		if (meant) {
			fill_oob_param(qp, &param);
			err = ddps_accept(request, qp->ep, &param);
			accepted = !err;
		}
		if (!meant ||
		    (err && err != DDPS_E_CLOSED && err != DDPS_E_IRD && err != DDPS_E_RTR))
			ddps_reject(request, NULL, 0);
		if (err == DDPS_E_CLOSED) /* who called has gone, and may call again */
			err = 0;
	}
	return vd_errno(err);
}

/* The queue pair that is asked for, or NULL. */
static struct vd_qp *asked_for(const struct vd_oob_port *port, const struct ddps_event *ev)
{
	const uint8_t *hello = ev->private_data;
	uint32_t number;

	if (ev->private_data_len != HELLO || memcmp(hello, magic, sizeof magic) != 0)
		return NULL;
	number = get_oob_u32(hello + 12);
	if (number >> 16 >= SHARE || (number & 0xffff) != port->number)
		return NULL;
	return port->qp[number >> 16];
}

void vd_oob_request(struct vd_oob_port *port, const struct ddps_event *ev)
{
	struct vd_qp *qp = asked_for(port, ev);
	const uint32_t number = qp ? get_oob_u32(ev->private_data + 8) : 0;
	struct in_addr addr; /* the listener is one of IPv4 */

	memcpy(&addr, ev->info.peer_addr.ip, sizeof addr);
	/* One that is not idle may be reset soon: its peer was a moment earlier. */
	if (!qp || qp->lent || (qp->phase != VD_QP_IDLE && !is_oob_peer(qp->oob, number, addr)) ||
	    !vd_callers_add(&qp->oob->callers, ev->request, number, addr))
		ddps_reject(ev->request, NULL, 0);
	else if (qp->phase == VD_QP_IDLE)
		answer_oob_peer(qp);
}

void vd_oob_gone(struct vd_process *p, const struct ddps_request *request)
{
	struct vd_oob_port *port;

	ddps_assert_held(&p->lock);
	LIST_FOREACH(port, &p->oob_ports, link)
		for (unsigned i = 0; i < SHARE; i++)
			if (port->qp[i])
				vd_callers_forget(&port->qp[i]->oob->callers, request);
}

/* ---- ibv_modify_qp ---- */

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof mapped);
}

/* By GID, then by number: never 0 for two queue pairs. */
static int compare_oob_ends(const struct vd_oob *o, uint32_t own, const union ibv_gid *gid)
{
	int d = memcmp(o->port->gid.raw, gid->raw, sizeof gid->raw);

	return d ? d : own < o->dest ? -1 : own > o->dest;
}

/* The peer's, which on InfiniBand may be named by its LID alone. */
static int find_peer_gid(const struct vd_qp *qp, const struct ibv_ah_attr *ah, union ibv_gid *gid)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET };

	if (ah->is_global) {
		*gid = ah->grh.dgid;
		return is_ipv4(gid) ? 0 : EOPNOTSUPP; /* vd_why_no_way says so */
	}
	memcpy(&a4.sin_addr, qp->oob->port->gid.raw + 12, sizeof a4.sin_addr);
	if (!vd_has_lids(qp->qp.qp_base.context) || !vd_lid_address(&a4, ah->dlid, &a4.sin_addr))
		return EOPNOTSUPP; /* neither is an address */
	vd_gid_of(&a4, gid);
	return 0;
}

/* The lock is held. */
static int get_ready(struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	union ibv_gid gid;
	struct vd_oob *o = qp->oob;
	int d, err = vd_secure_refuse(VD_UNSECURED_OOB);

	ddps_assert_held(&vd_process_of(qp->qp.qp_base.context)->lock);
	if (!(mask & IBV_QP_AV) || !(mask & IBV_QP_DEST_QPN) || attr->dest_qp_num > VD_QPN_MASK)
		return EINVAL;
	if (err)
		return err;
	err = find_peer_gid(qp, &attr->ah_attr, &gid);
	if (err)
		return err;
	o->dest = attr->dest_qp_num;
	d = compare_oob_ends(o, qp->qp.qp_base.qp_num, &gid);
	if (!d) /* its own peer: both connects and accepts */
		err = vd_qp_double(qp);
	if (err)
		return err;
	o->ird = mask & IBV_QP_MAX_DEST_RD_ATOMIC ? attr->max_dest_rd_atomic : VD_IRD;
	memcpy(&o->at, gid.raw + 12, sizeof o->at);
	o->known = true;
	o->active = d < 0;
	ddps_ep_mute(qp->ep, DDPS_MUTE_RECVS); /* see vd_oob_hold */
	qp->qp.qp_base.state = IBV_QPS_RTR;
	if (o->active || qp->tx)
		err = dial_oob_peer(qp);
	return err ? err : answer_oob_peer(qp);
}

bool vd_oob_known(const struct vd_qp *qp)
{
	return qp->oob && qp->oob->known;
}

int vd_oob_modify(struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	/* As rdma_init_qp_attr has it, the rest comes with rdma_connect or rdma_accept. */
	if (attr->qp_state == IBV_QPS_RTR && mask != VD_QP_ATTR_MASK)
		return get_ready(qp, attr, mask);
	qp->by_cm = attr->qp_state == IBV_QPS_RTR || (qp->by_cm && attr->qp_state == IBV_QPS_RTS);
	qp->qp.qp_base.state = attr->qp_state;
	return 0;
}
