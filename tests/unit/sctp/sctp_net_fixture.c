/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp_net_fixture.h"

uint64_t sn_rand(struct sn_net *n)
{
	uint64_t z = n->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t sn_below(struct sn_net *n, uint64_t m)
{
	return m ? sn_rand(n) % m : 0;
}

bool sn_chance(struct sn_net *n, double p)
{
	return (double)(sn_rand(n) >> 11) / 9007199254740992.0 < p;
}

void sn_random(void *user, void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len--)
		*p++ = (uint8_t)sn_rand(user);
}

struct ddps_sctp_addr sn_v4(unsigned a, unsigned b, unsigned c, unsigned d)
{
	struct ddps_sctp_addr v;

	memset(&v, 0, sizeof v);
	v.family = 4;
	v.ip[0] = (uint8_t)a;
	v.ip[1] = (uint8_t)b;
	v.ip[2] = (uint8_t)c;
	v.ip[3] = (uint8_t)d;
	return v;
}

void sn_init(struct sn_net *n, uint64_t seed)
{
	memset(n, 0, sizeof *n);
	n->rng = seed * 0x2545f4914f6cdd1du + 1;
	n->now = 1000000000ull + sn_below(n, 1u << 30);
	n->max_segs = 64;
	n->trace = getenv("DDPS_SIM_TRACE");
	n->nodes = 2;
	for (unsigned i = 0; i < SN_NODES; i++) {
		struct sn_node *d = &n->node[i];

		d->net = n;
		d->id = i;
		d->udp = 9899;
		for (unsigned k = 0; k < 2; k++) {
			d->addr[k] = sn_v4(10, 0, k, 1 + i);
			d->link[k] = (struct sn_link){ .delay = 1000000, .mtu = 1500 };
		}
	}
}

void sn_config(struct sn_net *n, struct ddps_sctp_config *c)
{
	ddps_sctp_defaults(c);
	c->random = sn_random;
	c->user = n;
}

void sn_boot(struct sn_net *n, unsigned id, const struct ddps_sctp_config *c)
{
	ddps_sctp_free(n->node[id].e);
	n->node[id].e = NULL;
	if (ddps_sctp_new(c, n->now, &n->node[id].e) < 0)
		abort();
}

void sn_fini(struct sn_net *n)
{
	for (unsigned i = 0; i < n->nodes; i++)
		ddps_sctp_free(n->node[i].e);
	while (n->n)
		free(n->heap[--n->n].data);
	free(n->heap);
	n->heap = NULL;
}

/* ---- packets on their way ---- */

/* Not by malloc(), which some programs make fail for the engine. */
static void *use_own_sctp_net_memory(size_t len)
{
	void *p;

	if (posix_memalign(&p, 16, len))
		abort();
	return p;
}

static bool is_before_sctp_net(const struct sn_packet *a, const struct sn_packet *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push_sctp_net(struct sn_net *n, struct sn_packet p)
{
	size_t i;

	if (n->n == n->cap) {
		struct sn_packet *more = use_own_sctp_net_memory((2 * n->cap + 64) * sizeof *more);

		if (n->n)
			memcpy(more, n->heap, n->n * sizeof *more);
		free(n->heap);
		n->heap = more;
		n->cap = 2 * n->cap + 64;
	}
	p.order = n->order++;
	for (i = n->n++; i && is_before_sctp_net(&p, &n->heap[(i - 1) / 2]); i = (i - 1) / 2)
		n->heap[i] = n->heap[(i - 1) / 2];
	n->heap[i] = p;
}

static struct sn_packet pop_sctp_net(struct sn_net *n)
{
	struct sn_packet first = n->heap[0], last = n->heap[--n->n];
	size_t i = 0, c;

	while ((c = 2 * i + 1) < n->n) {
		if (c + 1 < n->n && is_before_sctp_net(&n->heap[c + 1], &n->heap[c]))
			c++;
		if (!is_before_sctp_net(&n->heap[c], &last))
			break;
		n->heap[i] = n->heap[c];
		i = c;
	}
	n->heap[i] = last;
	return first;
}

static int link_to(const struct sn_net *n, unsigned from, const struct ddps_sctp_addr *peer,
		   unsigned *to)
{
	for (*to = 0; *to < n->nodes; ++*to)
		for (int k = 0; k < 2 && *to != from; k++)
			if (ddps_sc_addr_eq(peer, &n->node[*to].addr[k]))
				return k;
	return -1;
}

/* Waits for its turn; false: the queue is full. */
static bool queued(struct sn_net *n, struct sn_link *l, size_t len)
{
	if (!(l->rate > 0))
		return true;
	if (l->free_at < n->now)
		l->free_at = n->now;
	if (l->queue && (double)(l->free_at - n->now) * l->rate > (double)l->queue * 1e9)
		return false;
	l->free_at += (uint64_t)((double)(len + 28) * 1e9 / l->rate);
	return true;
}

static void send_on_sctp_net(struct sn_node *d, unsigned to, unsigned k, const uint8_t *data,
			     size_t len)
{
	struct sn_net *n = d->net;
	struct sn_link *l = &d->link[k];
	struct sn_packet p = { .at = (l->rate > 0 ? l->free_at : n->now) + l->delay +
				     sn_below(n, l->jitter + 1),
			       .to = to,
			       .link = k,
			       .len = len };

	if (sn_chance(n, l->late))
		p.at += l->extra;
	p.from.peer = d->addr[k];
	p.from.local = n->node[to].addr[k];
	p.from.encap = l->nat ? l->nat : d->udp;
	if (n->sealed) {
		p.from.seen = p.from.encap;
		p.from.encap = l->known ? l->known : d->udp;
	}
	p.from.sealed = n->sealed;
	p.data = use_own_sctp_net_memory(len);
	memcpy(p.data, data, len);
	if (sn_chance(n, l->corrupt))
		p.data[sn_below(n, len)] ^= (uint8_t)(1u << sn_below(n, 8));
	push_sctp_net(n, p);
}

static void trace(const struct sn_node *d, const struct ddps_sctp_route *to, const uint8_t *data,
		  size_t len)
{
	struct ddps_rbuf r = ddps_sc_chunks(data, len);
	struct ddps_sc_chunk c;

	fprintf(stderr, "%12.6f %u>%u.%u udp %u ports %u>%u len %zu tag %02x%02x:",
		(double)d->net->now / 1e9, d->id, to->peer.ip[3] - 1u, to->peer.ip[2], to->encap,
		(unsigned)data[0] << 8 | data[1], (unsigned)data[2] << 8 | data[3], len, data[4],
		data[5]);
	while (ddps_sc_chunk_next(&r, &c) > 0) {
		fprintf(stderr, " %u", c.type);
		if (c.type == SC_DATA)
			fprintf(stderr, "[%u:%x]", ((unsigned)c.val[2] << 8) + c.val[3], c.flags);
		if (c.type == SC_SACK)
			fprintf(stderr, "[%u w%u g%u d%u]", ((unsigned)c.val[2] << 8) + c.val[3],
				((unsigned)c.val[5] << 16) + ((unsigned)c.val[6] << 8) + c.val[7],
				c.val[9], c.val[11]);
	}
	fprintf(stderr, "\n");
}

/* A NAT knows the last port only. */
static bool is_forgotten(const struct sn_net *n, const struct sn_link *back,
			 const struct ddps_sctp_route *to)
{
	return n->sealed && back->nat && to->encap != back->nat;
}

static void one_packet(struct sn_node *d, const struct ddps_sctp_route *to, const uint8_t *data,
		       size_t len, bool fragment)
{
	struct sn_net *n = d->net;
	unsigned peer;
	int k = link_to(n, d->id, &to->peer, &peer);
	struct sn_link *l;

	if (!(to->sealed && !memcmp(data + 8, "\0\0\0", 4)) && !ddps_sc_crc_ok(data, len)) {
		fprintf(stderr, "a run was not cut where its packets end: %zu octets\n", len);
		abort();
	}
	d->sent++;
	if (n->trace)
		trace(d, to, data, len);
	if (n->sent)
		n->sent(n->user, d->id, to, data, len);
	if (k < 0)
		return;
	l = &d->link[k];
	if (len + 28 > d->max_packet)
		d->max_packet = len + 28;
	if (l->refuses) {
		d->lost++;
		ddps_sctp_icmp(d->e, to, DDPS_SCTP_ICMP_UNREACH_PORT, 0, data, len < 40 ? len : 40,
			       n->now);
		return;
	}
	if (len + 28 > l->mtu && (!fragment || l->blunt)) {
		d->lost++;
		if (l->ptb) {
			d->told++;
			ddps_sctp_icmp(d->e, to, DDPS_SCTP_ICMP_TOO_BIG, l->mtu, data,
				       len < 40 ? len : 40, n->now);
		}
		return;
	}
	if (l->dead || is_forgotten(n, &n->node[peer].link[k], to) || sn_chance(n, l->loss) ||
	    !queued(n, l, len)) {
		d->lost++;
		return;
	}
	send_on_sctp_net(d, peer, (unsigned)k, data, len);
	if (sn_chance(n, l->dup))
		send_on_sctp_net(d, peer, (unsigned)k, data, len);
}

static void gather_sctp_net(const struct ddps_sctp_out *o, uint8_t *buf)
{
	for (unsigned i = 0; i < o->niov; i++) {
		memcpy(buf, o->iov[i].iov_base, o->iov[i].iov_len);
		buf += o->iov[i].iov_len;
	}
}

static bool flush_one_sctp_net(struct sn_node *d)
{
	static uint8_t head[1 << 16], all[1 << 18];
	struct iovec iov[256];
	struct ddps_sctp_out o = { .iov = iov,
				   .iov_max = 256,
				   .head = head,
				   .head_max = sizeof head,
				   .max_segs = d->net->max_segs,
				   .max_len = 65507 };

	if (!ddps_sctp_output(d->e, &o, d->net->now))
		return false;
	if (d->net->full > 0 && sn_chance(d->net, d->net->full)) {
		ddps_sctp_unsent(d->e, &o, d->net->now);
		return true;
	}
	gather_sctp_net(&o, all);
	if (o.nsegs > d->net->segs_max_seen)
		d->net->segs_max_seen = o.nsegs;
	for (size_t at = 0; at < o.len; at += o.seg_size)
		one_packet(d, &o.to, all + at, o.len - at < o.seg_size ? o.len - at : o.seg_size,
			   o.fragment);
	return true;
}

void sn_flush_node(struct sn_net *n, unsigned id)
{
	unsigned turns = 0;

	while (n->node[id].e && n->node[id].rests <= n->now && flush_one_sctp_net(&n->node[id])) {
		if (++turns > 100000)
			abort(); /* it never has enough */
	}
}

void sn_flush(struct sn_net *n)
{
	for (unsigned i = 0; i < n->nodes; i++)
		sn_flush_node(n, i);
}

void sn_inject(struct sn_net *n, unsigned to, unsigned link, const void *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1); /* exact, so that a sanitizer guards its end */
	struct ddps_sctp_in in = { .data = copy, .len = len };

	if (len)
		memcpy(copy, data, len);
	in.from.peer = n->node[!to].addr[link];
	in.from.local = n->node[to].addr[link];
	in.from.encap = n->node[!to].udp;
	in.from.sealed = n->sealed;
	ddps_sctp_input(n->node[to].e, &in, 1, n->now);
	free(copy);
}

static void deliver_sctp_net(struct sn_net *n)
{
	struct sn_packet p = pop_sctp_net(n);
	struct ddps_sctp_in in = { .from = p.from, .data = p.data, .len = p.len };

	if (n->node[p.to].rests > n->now) { /* it waits in the socket */
		p.at = n->node[p.to].rests;
		push_sctp_net(n, p);
		return;
	}
	n->now = p.at > n->now ? p.at : n->now;
	if (n->node[p.to].e)
		ddps_sctp_input(n->node[p.to].e, &in, 1, n->now);
	if (n->taken)
		n->taken(n->user, p.to, p.data, p.len);
	free(p.data);
}

/* Then all that waits in its socket is read before its timers are looked at. */
static bool wakes(const struct sn_net *n)
{
	for (unsigned i = 0; i < n->nodes; i++)
		if (n->node[i].rests == n->now)
			return true;
	return false;
}

/* When a node's timers are looked at. */
static uint64_t get_sctp_net_deadline(const struct sn_node *d)
{
	uint64_t at = d->e ? ddps_sctp_deadline(d->e) : UINT64_MAX;

	return at < d->rests ? d->rests : at;
}

bool sn_step(struct sn_net *n, uint64_t until)
{
	uint64_t at = UINT64_MAX, d;

	sn_flush(n);
	for (unsigned i = 0; i < n->nodes; i++) {
		d = get_sctp_net_deadline(&n->node[i]);
		at = d < at ? d : at;
	}
	if (n->n && n->heap[0].at <= at)
		at = n->heap[0].at;
	if (at > until) {
		n->now = until > n->now ? until : n->now;
		return false;
	}
	n->now = at > n->now ? at : n->now;
	while (n->n && n->heap[0].at <= n->now) {
		deliver_sctp_net(n);
		if (!wakes(n))
			break;
	}
	for (unsigned i = 0; i < n->nodes; i++) {
		if (n->node[i].e && get_sctp_net_deadline(&n->node[i]) <= n->now)
			ddps_sctp_tick(n->node[i].e, n->now);
	}
	sn_flush(n);
	return true;
}

void sn_run(struct sn_net *n, uint64_t ns)
{
	uint64_t until = n->now + ns;
	unsigned long steps = 0;

	while (sn_step(n, until)) {
		if (++steps > 20000000)
			abort(); /* time stands still */
	}
}

/* ---- a user who listens to nothing ---- */

static void deaf(void *user)
{
	(void)user;
}

static void deaf_message(void *user, const struct ddps_sctp_msg *m)
{
	(void)user, (void)m;
}

static void deaf_acked(void *user, uint64_t n)
{
	(void)user, (void)n;
}

static void deaf_gone(void *user, const struct ddps_error *e)
{
	(void)user, (void)e;
}

const struct ddps_sctp_up sn_deaf = { .up = deaf,
				      .message = deaf_message,
				      .writable = deaf,
				      .acked = deaf_acked,
				      .peer_shutdown = deaf,
				      .restarted = deaf,
				      .gone = deaf_gone };
