/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters, their objects, groups and events. */
#include "fabric/fake_in.h"

struct fake fake[FAKES];
unsigned fake_devices;
struct ddps_sa *fake_sa;
uint8_t fake_hop;
uint8_t fake_mlid;
bool fake_roce;
int fake_in_groups;
uint64_t fake_now;
static struct ibv_device *devices[FAKES + 1];

void fake_broken(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
	abort();
}

bool fake_fails(struct fake *f, const char *name)
{
	if (f->fail_in && !--f->fail_in) {
		errno = f->fail_errno;
		return true;
	}
	if (!f->fail || strcmp(f->fail, name) != 0 || f->fail_after-- > 0)
		return false;
	f->fail_after = 0;
	errno = f->fail_errno;
	return true;
}

/* ---- devices ---- */

struct ibv_device **fake_get_device_list(int *n)
{
	for (unsigned i = 0; i < fake_devices; i++)
		devices[i] = &fake[i].dev;
	*n = (int)fake_devices;
	return devices;
}

void fake_free_device_list(struct ibv_device **list)
{
	FAKE_CHECK(list == devices);
}

static struct fake *of_dev(struct ibv_device *dev)
{
	return (struct fake *)(void *)((char *)dev - offsetof(struct fake, dev));
}

const char *fake_get_device_name(struct ibv_device *dev)
{
	return of_dev(dev)->name;
}

__be64 fake_get_device_guid(struct ibv_device *dev)
{
	return htobe64(0x1000 + (uint64_t)(of_dev(dev) - fake));
}

struct ibv_context *fake_open_device(struct ibv_device *dev)
{
	struct fake *f = of_dev(dev);

	if (fake_fails(f, "open_device"))
		return NULL;
	f->n_obj++;
	f->ctx.async_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return &f->ctx;
}

int fake_close_device(struct ibv_context *ctx)
{
	fake_of(ctx)->n_obj--;
	return close(ctx->async_fd);
}

int fake_query_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	if (fake_fails(fake_of(ctx), "query_device"))
		return EIO;
	memset(a, 0, sizeof(*a));
	a->phys_port_cnt = fake_of(ctx)->ports;
	a->max_srq_wr = fake_of(ctx)->max_srq_wr;
	return 0;
}

int fake_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *a)
{
	if (!port || port > fake_of(ctx)->ports || fake_fails(fake_of(ctx), "query_port"))
		return EINVAL;
	memcpy(a, &fake_of(ctx)->port, sizeof(struct ibv_port_attr));
	return 0;
}

int fake_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	if (port != 1 || index || fake_fails(fake_of(ctx), "query_gid"))
		return -1;
	*gid = fake_of(ctx)->gid;
	return 0;
}

/* Index 0 is of version 1, 1 an IPv4 one, 2 as it should be. */
int fake_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
	struct fake *f = fake_of(ctx);

	FAKE_CHECK(size == sizeof(*e));
	FAKE_CHECK(flags == 0);
	if (port != 1 || index > 3 || fake_fails(f, "query_gid_ex"))
		return ENODATA;
	*e = (struct ibv_gid_entry){ .gid = f->gid,
				     .gid_index = index,
				     .port_num = port,
				     .gid_type =
					     index ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1,
				     .ndev_ifindex = 70 + index };
	if (index == 1) {
		memset(e->gid.raw, 0, 12);
		e->gid.raw[10] = e->gid.raw[11] = 0xff;
	} else if (index == 3) {
		e->gid.raw[0] = 0x20; /* a global address */
	}
	return 0;
}

int fake_netdev_group(int *fd, uint32_t ifindex, const uint8_t ip6[16], bool join)
{
	FAKE_CHECK(ip6[0] == 0xff);
	FAKE_CHECK(ifindex == 72);
	FAKE_CHECK(*fd == -1);
	if (join && fake_fails(&fake[0], "netdev_group"))
		return fake[0].fail_errno;
	fake_in_groups += join ? 1 : -1;
	FAKE_CHECK(fake_in_groups >= 0 && fake_in_groups <= FAKES * DDPS_SAC_GROUPS);
	return 0;
}

int fake_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	FAKE_CHECK(index >= 0);
	if (port != 1 || index >= FAKE_PKEYS || fake_fails(fake_of(ctx), "query_pkey"))
		return -1;
	*pkey = htobe16(fake_of(ctx)->pkey[index]);
	return 0;
}

/* ---- objects ---- */

/* Tests make allocations fail. */
static void *alloc_or_fail(size_t size)
{
	void *at = calloc(1, size);

	if (!at)
		errno = ENOMEM;
	return at;
}

struct ibv_pd *fake_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd;

	if (fake_fails(fake_of(ctx), "alloc_pd"))
		return NULL;
	pd = alloc_or_fail(sizeof(*pd));
	if (!pd)
		return NULL;
	pd->context = ctx;
	fake_of(ctx)->n_obj++;
	return pd;
}

int fake_dealloc_pd(struct ibv_pd *pd)
{
	FAKE_CHECK(!fake_of(pd->context)->n_mr && !fake_of(pd->context)->n_ah);
	fake_of(pd->context)->n_obj--;
	free(pd);
	return 0;
}

struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *mr;

	FAKE_CHECK(addr && len && access == IBV_ACCESS_LOCAL_WRITE);
	if (fake_fails(fake_of(pd->context), "reg_mr"))
		return NULL;
	mr = alloc_or_fail(sizeof(*mr));
	if (!mr)
		return NULL;
	*mr = (struct ibv_mr){
		.context = pd->context, .addr = addr, .length = len, .lkey = FAKE_LKEY
	};
	fake_of(pd->context)->n_mr++;
	return mr;
}

int fake_dereg_mr(struct ibv_mr *mr)
{
	fake_of(mr->context)->n_mr--;
	free(mr);
	return 0;
}

struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *c;

	if (fake_fails(fake_of(ctx), "create_comp_channel"))
		return NULL;
	c = alloc_or_fail(sizeof(*c));
	if (!c)
		return NULL;
	c->context = ctx;
	c->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fake_of(ctx)->n_obj++;
	return c;
}

int fake_destroy_comp_channel(struct ibv_comp_channel *c)
{
	fake_of(c->context)->n_obj--;
	close(c->fd);
	free(c);
	return 0;
}

struct ibv_cq *fake_create_cq(struct ibv_context *ctx, int n, void *user,
			      struct ibv_comp_channel *c, int vector)
{
	struct fake *f = fake_of(ctx);

	FAKE_CHECK(n > 0 && !user && c->context == ctx && !vector && f->n_cq < 2);
	if (fake_fails(f, "create_cq"))
		return NULL;
	f->cq[f->n_cq].context = ctx;
	f->n_obj++;
	return &f->cq[f->n_cq++];
}

int fake_destroy_cq(struct ibv_cq *cq)
{
	struct fake *f = fake_of(cq->context);

	f->n_obj--;
	f->n_wc[--f->n_cq] = 0;
	return 0;
}

int fake_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **user)
{
	struct fake *f = fake_of(c->context);

	if (f->n_notice) {
		f->n_notice--;
		*cq = &f->cq[0];
		*user = NULL;
		return 0;
	}
	errno = EAGAIN; /* it is polled in each turn */
	return -1;
}

void fake_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	fake_of(cq->context)->n_acked += n;
}

int fake_req_notify_cq(struct ibv_cq *cq, int solicited)
{
	FAKE_CHECK(!solicited);
	fake_of(cq->context)->n_asked++;
	if (fake_of(cq->context)->arm_fires) {
		fake_of(cq->context)->arm_fires--;
		fake_of(cq->context)->n_notice++;
	}
	return fake_fails(fake_of(cq->context), "req_notify_cq") ? EINVAL : 0;
}

struct ibv_srq *fake_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct fake *f = fake_of(pd->context);
	struct ibv_srq *s;

	FAKE_CHECK(a->attr.max_wr && a->attr.max_wr <= (unsigned)f->max_srq_wr);
	if (fake_fails(f, "create_srq"))
		return NULL;
	s = alloc_or_fail(sizeof(*s));
	if (!s)
		return NULL;
	s->context = pd->context;
	f->srq_max = a->attr.max_wr;
	f->n_obj++;
	return s;
}

int fake_destroy_srq(struct ibv_srq *s)
{
	struct fake *f = fake_of(s->context);

	FAKE_CHECK(f->n_qp == 1); /* that of datagrams */
	fake_drop(f, FAKE_MSG_IN, NULL);
	f->n_obj--;
	free(s);
	return 0;
}

struct ibv_ah *fake_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct {
		struct ibv_ah ah;
		struct ibv_ah_attr attr;
	} * a;

	FAKE_CHECK(attr->port_num == 1 && fake_of(pd->context)->n_ah < VP_AHS);
	if (fake_fails(fake_of(pd->context), "create_ah"))
		return NULL;
	a = alloc_or_fail(sizeof(*a));
	if (!a)
		return NULL;
	a->ah.context = pd->context;
	a->attr = *attr;
	fake_of(pd->context)->n_ah++;
	return &a->ah;
}

int fake_destroy_ah(struct ibv_ah *ah)
{
	struct fake *f = fake_of(ah->context);

	for (unsigned i = 0; i < f->n_posted; i++)
		FAKE_CHECK(f->posted[i].ah != ah);
	f->n_ah--;
	free(ah);
	return 0;
}

const struct ibv_ah_attr *fake_attr_of(const struct ibv_ah *ah)
{
	return (const void *)(ah + 1);
}

/* ---- groups, events ---- */

int fake_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct fake *f = fake_of(qp->context);

	FAKE_CHECK(((struct fake_qp *)qp)->init.qp_type == IBV_QPT_UD);
	FAKE_CHECK(gid->raw[0] == 0xff && lid >= DDPS_MLID_FIRST);
	if (fake_fails(f, "attach_mcast"))
		return f->fail_errno;
	FAKE_CHECK(f->n_group < DDPS_SAC_GROUPS);
	memcpy(f->group[f->n_group].mgid, gid->raw, 16);
	f->group[f->n_group++].mlid = lid;
	return 0;
}

int fake_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct fake *f = fake_of(qp->context);

	for (unsigned i = 0; i < f->n_group; i++)
		if (f->group[i].mlid == lid && !memcmp(f->group[i].mgid, gid->raw, 16)) {
			f->group[i] = f->group[--f->n_group];
			return 0;
		}
	fake_broken(__FILE__, __LINE__, "a group that was attached");
}

int fake_get_async_event(struct ibv_context *ctx, struct ibv_async_event *e)
{
	struct fake *f = fake_of(ctx);

	if (!f->n_event) {
		errno = EAGAIN;
		return -1;
	}
	*e = f->event[0];
	memmove(f->event, f->event + 1, --f->n_event * sizeof(*f->event));
	return 0;
}

void fake_ack_async_event(struct ibv_async_event *e)
{
	(void)e;
}

/* ---- life ---- */

void fake_init(void)
{
	fake_devices = FAKES;
	fake_hop = fake_mlid = 0;
	fake_roce = false;
	fake_in_groups = 0;
	fake_now = 1;
	for (unsigned i = 0; i < FAKES; i++) {
		struct fake *f = &fake[i];

		memset(f, 0, offsetof(struct fake, posted));
		snprintf(f->name, sizeof(f->name), "fake%u", i);
		f->port = (struct ibv_port_attr){ .state = IBV_PORT_ACTIVE,
						  .active_mtu = IBV_MTU_4096,
						  .gid_tbl_len = 1,
						  .pkey_tbl_len = FAKE_PKEYS,
						  .lid = (uint16_t)(8 * (i + 1)),
						  .sm_lid = FAKE_SA_LID,
						  .link_layer = IBV_LINK_LAYER_INFINIBAND };
		f->gid.raw[0] = 0xfe;
		f->gid.raw[1] = 0x80;
		f->gid.raw[15] = (uint8_t)(0x10 + i);
		f->pkey[0] = 0xffff;
		f->max_srq_wr = FAKE_SRQ;
		f->ports = 1;
		f->max_qp = FAKE_QPS;
	}
}

static void expect_none_left(unsigned n, const char *what)
{
	if (n)
		fprintf(stderr, "%u %s are left\n", n, what);
	FAKE_CHECK(!n);
}

void fake_fini(void)
{
	fake_sa_stop();
	expect_none_left((unsigned)fake_in_groups, "groups of network devices");
	for (unsigned i = 0; i < FAKES; i++) {
		expect_none_left(fake[i].n_obj, "objects");
		expect_none_left(fake[i].n_mr, "regions");
		expect_none_left(fake[i].n_ah, "address handles");
		expect_none_left(fake[i].n_qp, "queue pairs");
		expect_none_left(fake[i].n_group, "groups");
	}
}

void fake_make_roce(void)
{
	fake_sa_stop();
	fake_roce = true;
	for (unsigned i = 0; i < FAKES; i++) {
		fake[i].port.link_layer = IBV_LINK_LAYER_ETHERNET;
		fake[i].port.lid = fake[i].port.sm_lid = 0;
		fake[i].dev.transport_type = IBV_TRANSPORT_IB;
	}
}
