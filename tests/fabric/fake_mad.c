/* SPDX-License-Identifier: BSD-2-Clause */
/* libibumad, and the subnet administration. */
#include "fabric/fake_in.h"

#define TID_AT	  8
#define HOP_AT	  (56 + 47)
#define MLID_AT	  (56 + 36)
#define ATTR_AT	  16
#define METHOD_AT 3

static int fake_umad_init(void)
{
	return fake_fails(&fake[0], "umad_init") ? -1 : 0;
}

static int fake_umad_open(const char *name, int port)
{
	for (unsigned i = 0; i < fake_devices; i++)
		if (!strcmp(name, fake[i].name) && port == 1) {
			if (fake_fails(&fake[i], "umad_open_port"))
				return -EIO;
			fake[i].n_obj++;
			return (int)i;
		}
	errno = ENODEV;
	return -EIO;
}

static int fake_umad_close(int fd)
{
	fake[fd].n_obj--;
	return 0;
}

static int fake_umad_fd(int fd)
{
	return fake[fd].ctx.async_fd;
}

static int fake_umad_register(int fd, int class, int version, uint8_t rmpp, long methods[])
{
	struct fake *f = &fake[fd];

	FAKE_CHECK(version == 2 && !rmpp);
	if (fake_fails(f, "umad_register"))
		return -EPERM;
	if (class == 7)
		return FAKE_CM;
	return !methods ? FAKE_SA : f->no_reports ? -EINVAL : FAKE_REPORTS;
}

static size_t fake_umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

static void *fake_umad_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

static ib_mad_addr_t *fake_umad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

static int fake_umad_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

static int fake_umad_set_addr(void *umad, int lid, int qp, int sl, int qkey)
{
	ib_mad_addr_t *a = fake_umad_addr(umad);

	FAKE_CHECK(qp == 1 && (uint32_t)qkey == DDPS_CM_QKEY && sl >= 0 && sl < 16);
	a->lid = htobe16((uint16_t)lid);
	a->qpn = htobe32((uint32_t)qp);
	a->sl = (uint8_t)sl;
	a->qkey = htobe32((uint32_t)qkey);
	return 0;
}

static int fake_umad_set_pkey(void *umad, int index)
{
	fake_umad_addr(umad)->pkey_index = (uint16_t)index;
	return 0;
}

static void mad_to(struct fake *to, int agent, const struct fake *from, const ib_mad_addr_t *a,
		   const uint8_t *mad)
{
	unsigned at = to->n_mad++;

	FAKE_CHECK(at < FAKE_MADS);
	memset(&to->mad[at], 0, sizeof(to->mad[at]));
	to->mad[at].agent = agent;
	to->mad[at].len = DDPS_CM_MAD_LEN;
	to->mad[at].addr = *a;
	to->mad[at].addr.lid = htobe16(from ? from->port.lid : FAKE_SA_LID);
	if (from && a->grh_present) /* the sender's, for an answer */
		memcpy(to->mad[at].addr.gid, from->gid.raw, 16);
	memcpy(to->mad[at].mad, mad, DDPS_CM_MAD_LEN);
}

static void from_sa(void *user, uint16_t lid, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	static const ib_mad_addr_t a;
	struct fake *to = fake_at_lid(lid);
	uint8_t copy[DDPS_CM_MAD_LEN];

	(void)user;
	memcpy(copy, mad, sizeof(copy));
	if (copy[METHOD_AT] == DDPS_SA_GET_RESP && copy[ATTR_AT + 1] == DDPS_SA_PATH_RECORD)
		copy[HOP_AT] = fake_hop;
	if (copy[METHOD_AT] == DDPS_SA_GET_RESP && copy[ATTR_AT + 1] == DDPS_SA_MCMEMBER_RECORD)
		copy[MLID_AT] ^= fake_mlid;
	if (to)
		mad_to(to, copy[METHOD_AT] == DDPS_SA_REPORT ? FAKE_REPORTS : FAKE_SA, NULL, &a,
		       copy);
}

static int fake_umad_send(int fd, int agent, void *umad, int len, int timeout_ms, int retries)
{
	struct fake *f = &fake[fd], *to;
	struct ib_user_mad *m = umad;
	uint8_t mad[DDPS_CM_MAD_LEN];
	uint16_t lid = be16toh(m->addr.lid);
	struct ibv_ah_attr a = { .dlid = lid, .is_global = m->addr.grh_present };

	memcpy(a.grh.dgid.raw, m->addr.gid, 16);
	FAKE_CHECK(len == DDPS_CM_MAD_LEN && !retries && timeout_ms >= 0);
	FAKE_CHECK(agent >= FAKE_CM && agent <= FAKE_REPORTS);
	FAKE_CHECK((agent == FAKE_SA) == !!timeout_ms); /* the kernel drops answers otherwise */
	if (agent == FAKE_SA)
		memcpy(f->query, m->data, sizeof(f->query));
	if (fake_fails(f, "umad_send"))
		return -EIO;
	memcpy(mad, m->data, sizeof(mad));
	f->last_to = m->addr;
	if (f->stuck)
		return 0;
	if (agent == FAKE_SA)
		memcpy(mad + TID_AT, (uint8_t[4]){ 0xab, 0xcd, 0, 1 }, 4); /* as the kernel does */
	if (lid == FAKE_SA_LID && fake_sa && agent != FAKE_CM)
		ddps_sa_rx(fake_sa, f->port.lid, mad, fake_now);
	to = agent == FAKE_CM ? fake_at(&a) : NULL;
	if (to)
		mad_to(to, FAKE_CM, f, &m->addr, mad);
	return 0;
}

static int fake_umad_recv(int fd, void *umad, int *len, int timeout_ms)
{
	struct fake *f = &fake[fd];
	struct ib_user_mad *m = umad;
	int agent = f->mad[0].agent;

	FAKE_CHECK(*len == DDPS_CM_MAD_LEN && !timeout_ms);
	if (!f->n_mad) {
		errno = EWOULDBLOCK;
		return -EWOULDBLOCK;
	}
	m->addr = f->mad[0].addr;
	m->status = f->mad[0].status;
	memcpy(m->data, f->mad[0].mad, DDPS_CM_MAD_LEN);
	*len = f->mad[0].len;
	memmove(f->mad, f->mad + 1, --f->n_mad * sizeof(*f->mad));
	return agent;
}

const struct ddps_verbs_lib fake_lib = {
#define DDPS_X(name) .name = fake_##name,
	DDPS_VERBS_FUNCTIONS(DDPS_X)
#undef DDPS_X
		.post_send = fake_post_send,
	.query_gid_ex = fake_query_gid_ex,
	.netdev_group = fake_netdev_group,
	.post_recv = fake_post_recv,
	.post_srq_recv = fake_post_srq_recv,
	.poll_cq = fake_poll_cq,
	.req_notify_cq = fake_req_notify_cq,
	.umad = { .umad_init = fake_umad_init,
		  .umad_open_port = fake_umad_open,
		  .umad_close_port = fake_umad_close,
		  .umad_get_fd = fake_umad_fd,
		  .umad_register = fake_umad_register,
		  .umad_size = fake_umad_size,
		  .umad_get_mad = fake_umad_mad,
		  .umad_get_mad_addr = fake_umad_addr,
		  .umad_status = fake_umad_status,
		  .umad_set_addr = fake_umad_set_addr,
		  .umad_set_pkey = fake_umad_set_pkey,
		  .umad_send = fake_umad_send,
		  .umad_recv = fake_umad_recv },
};

/* ---- the administration ---- */

void fake_sa_start(uint32_t qkey)
{
	struct ddps_sa_config c = { .gid = { 0xfe, 0x80, [15] = FAKE_SA_LID },
				    .lid = FAKE_SA_LID,
				    .pkey = { 0xffff },
				    .qkey = qkey,
				    .mtu = 4,
				    .rate = 7,
				    .life = 18,
				    .scope = 2,
				    .send = from_sa };

	fake_sa = ddps_sa_new(&c);
	FAKE_CHECK(fake_sa);
}

void fake_sa_stop(void)
{
	ddps_sa_free(fake_sa);
	fake_sa = NULL;
}
