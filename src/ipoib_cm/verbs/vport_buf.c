/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers that the adapter reads and writes: rows of equal size, each registered as a whole. */
#include "ipoib_cm/verbs/vport_in.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define LIFE_MASK 0xffffffu

static const char *const what[VP_KINDS] = { [VP_UD_IN] = "datagrams that come",
					    [VP_UD_OUT] = "datagrams that go",
					    [VP_MSG_IN] = "messages that come",
					    [VP_MSG_OUT] = "messages that go" };

int ddps_vport_pool_new(struct ddps_ib_verbs *v, enum vp_kind kind, uint32_t n, size_t size)
{
	struct vp_pool *p = &v->pool[kind];
	void *mem =
		mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*p = (struct vp_pool){ .kind = kind, .n = n, .size = size, .free = VP_NONE };
	p->mem = mem == MAP_FAILED ? NULL : mem;
	p->buf = calloc(n, sizeof(*p->buf));
	if (!p->mem || !p->buf) {
		ddps_vport_say(v, "out of memory");
		return DDPS_E_NOMEM;
	}
	p->mr = v->lib.reg_mr(v->pd, p->mem, n * size, IBV_ACCESS_LOCAL_WRITE);
	if (!p->mr) {
		int err = errno;

		ddps_vport_say(
			v,
			"%s: %zu KiB of memory for %s cannot be registered: %s; try: ulimit -l "
			"unlimited, or less memory for messages",
			v->info.device, n * size / 1024, what[kind], strerror(err));
		errno = err;
		return err == ENOMEM ? DDPS_E_NOMEM : DDPS_E_SYSTEM;
	}
	for (uint32_t i = n; i-- > 0; p->free = i)
		p->buf[i].next_free = p->free;
	return 0;
}

void ddps_vport_pool_free(struct ddps_ib_verbs *v, struct vp_pool *p)
{
	if (p->mr)
		v->lib.dereg_mr(p->mr);
	if (p->mem)
		munmap(p->mem, p->n * p->size);
	free(p->buf);
	*p = (struct vp_pool){ 0 };
}

uint32_t ddps_vport_take(struct vp_pool *p)
{
	uint32_t i = p->free;

	if (i == VP_NONE)
		return VP_NONE;
	p->free = p->buf[i].next_free;
	p->buf[i].life = (p->buf[i].life + 1) & LIFE_MASK;
	p->buf[i].out = true;
	p->n_out++;
	p->buf[i].owner = VP_NONE;
	return i;
}

void ddps_vport_give(struct vp_pool *p, uint32_t i)
{
	p->buf[i].out = false;
	p->n_out--;
	p->buf[i].next_free = p->free;
	p->free = i;
}

uint64_t ddps_vport_wr_id(const struct vp_pool *p, uint32_t i)
{
	return (uint64_t)p->kind << 56 | (uint64_t)p->buf[i].life << 32 | i;
}

struct vp_pool *ddps_vport_done(struct ddps_ib_verbs *v, uint64_t wr_id, uint32_t *i)
{
	uint64_t kind = wr_id >> 56;
	uint32_t at = (uint32_t)wr_id;
	struct vp_pool *p = kind < VP_KINDS ? &v->pool[kind] : NULL;

	if (!p || at >= p->n || !p->buf[at].out || ddps_vport_wr_id(p, at) != wr_id)
		return NULL;
	*i = at;
	return p;
}

struct ibv_sge ddps_vport_sge(const struct vp_pool *p, uint32_t i, size_t len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)ddps_vport_mem(p, i),
				 .length = (uint32_t)len,
				 .lkey = p->mr->lkey };
}
