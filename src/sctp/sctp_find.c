/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is meant: tables whose keys a peer chooses, so their hash has a secret. */
#include "sctp/sctp_in.h"

static unsigned hash_peer_key(const struct ddps_sctp *e, const void *key, size_t len)
{
	return (unsigned)ddps_siphash(&e->hash_key, key, len);
}

/* ---- paths ---- */

static unsigned path_hash(const struct ddps_sctp *e, uint16_t via, uint16_t port,
			  uint16_t peer_port, const struct ddps_sctp_addr *peer)
{
	uint8_t key[16 + 4 + 3 * 2 + 1];
	struct ddps_wbuf w = ddps_wbuf_init(key, sizeof key);

	ddps_wbuf_bytes(&w, peer->ip, sizeof peer->ip);
	ddps_wbuf_u32(&w, peer->scope);
	ddps_wbuf_u16(&w, via);
	ddps_wbuf_u16(&w, port);
	ddps_wbuf_u16(&w, peer_port);
	ddps_wbuf_u8(&w, peer->family);
	return hash_peer_key(e, key, sizeof key);
}

/* Of one program there may be thousands: whoever leaves has no way to go. */
struct ddps_sc_program *ddps_sc_program_of(const struct ddps_sctp *e,
					   const struct ddps_sctp_addr *peer, uint16_t encap)
{
	return &e->programs[path_hash(e, 0, encap, 0, peer) & (e->chains - 1)];
}

static struct ddps_sc_path **chain_of(const struct ddps_sctp *e, const struct ddps_sc_path *p)
{
	const struct ddps_sctp_assoc *a = p->a;

	return &e->paths[path_hash(e, a->via, a->port, a->peer_port, &p->peer) & (e->chains - 1)];
}

static bool is_it(const struct ddps_sc_path *p, uint16_t via, uint16_t port, uint16_t peer_port,
		  const struct ddps_sctp_addr *peer)
{
	return p->a->via == via && p->a->port == port && p->a->peer_port == peer_port &&
	       ddps_sc_addr_eq(&p->peer, peer);
}

static struct ddps_sc_path **found_slot(struct ddps_sctp *e, uint16_t peer_port,
					const struct ddps_sctp_addr *peer)
{
	return &e->found[(peer_port ^ peer->ip[3] ^ peer->ip[15]) % DDPS_SC_FOUND];
}

struct ddps_sc_path *ddps_sc_find(struct ddps_sctp *e, uint16_t via, uint16_t port,
				  uint16_t peer_port, const struct ddps_sctp_addr *peer)
{
	struct ddps_sc_path **found = found_slot(e, peer_port, peer);
	struct ddps_sc_path *p = *found;

	if (p && is_it(p, via, port, peer_port, peer)) /* packets come in runs */
		return p;
	if (!e->npaths)
		return NULL;
	p = e->paths[path_hash(e, via, port, peer_port, peer) & (e->chains - 1)];
	while (p && !is_it(p, via, port, peer_port, peer))
		p = p->chain;
	if (p)
		*found = p;
	return p;
}

static void link_path(struct ddps_sctp *e, struct ddps_sc_path *p)
{
	struct ddps_sc_path **at = chain_of(e, p);

	p->chain = *at;
	*at = p;
	LIST_INSERT_HEAD(ddps_sc_program_of(e, &p->peer, p->encap), p, program);
}

/* Our tags are random: they need no hash. */
static struct ddps_sctp_assoc **tag_chain(const struct ddps_sctp *e, uint32_t tag)
{
	return &e->tags[tag & (e->chains - 1)];
}

static void link_tag(struct ddps_sctp_assoc *a)
{
	struct ddps_sctp_assoc **at = tag_chain(a->e, a->own_tag);

	a->tag_chain = *at;
	*at = a;
}

static void unlink_tag(struct ddps_sctp_assoc *a)
{
	struct ddps_sctp_assoc **at;

	for (at = tag_chain(a->e, a->own_tag); *at != a; at = &(*at)->tag_chain)
		;
	*at = a->tag_chain;
}

void ddps_sc_set_tag(struct ddps_sctp_assoc *a, uint32_t tag)
{
	unlink_tag(a);
	a->own_tag = tag;
	link_tag(a);
}

bool ddps_sc_has_tag(const struct ddps_sctp *e, uint16_t via, uint16_t port, uint16_t peer_port,
		     uint32_t tag)
{
	const struct ddps_sctp_assoc *a = e->chains ? *tag_chain(e, tag) : NULL;

	while (a && !(a->own_tag == tag && a->via == via && a->port == port &&
		      a->peer_port == peer_port))
		a = a->tag_chain;
	return a;
}

/* As many chains of each kind as there are paths, or more.  Without memory for that they become longer. */
static bool more_chains(struct ddps_sctp *e)
{
	unsigned n = e->chains, more = n ? 2 * n : 16;
	struct ddps_sc_path **old = e->paths, *p;
	struct ddps_sctp_assoc **old_tags = e->tags, *a;
	void **all = calloc(more, 3 * sizeof *all);

	if (!all)
		return n;
	e->paths = (struct ddps_sc_path **)(void *)all;
	e->tags = (struct ddps_sctp_assoc **)(void *)(all + more);
	e->programs = (struct ddps_sc_program *)(void *)(all + (size_t)2 * more);
	e->chains = more;
	for (unsigned i = 0; i < n; i++) {
		while ((p = old[i])) {
			old[i] = p->chain;
			link_path(e, p);
		}
		while ((a = old_tags[i])) {
			old_tags[i] = a->tag_chain;
			link_tag(a);
		}
	}
	free(old);
	return true;
}

bool ddps_sc_enter(struct ddps_sctp *e, struct ddps_sc_path *p)
{
	if (e->npaths >= e->chains && !more_chains(e))
		return false;
	link_path(e, p);
	e->npaths++;
	if (!p->id)
		link_tag(p->a);
	return true;
}

static void unlink_path(struct ddps_sctp *e, struct ddps_sc_path *p)
{
	struct ddps_sc_path **at, **found = found_slot(e, p->a->peer_port, &p->peer);

	for (at = chain_of(e, p); *at != p; at = &(*at)->chain)
		;
	*at = p->chain;
	LIST_REMOVE(p, program);
	if (*found == p)
		*found = NULL;
}

void ddps_sc_leave(struct ddps_sctp *e, struct ddps_sc_path *p)
{
	unlink_path(e, p);
	if (!p->id)
		unlink_tag(p->a);
	if (--e->npaths)
		return;
	free(e->paths);
	e->paths = NULL;
	e->tags = NULL;
	e->programs = NULL;
	e->chains = 0;
}

/* The 8 octets more or less show as packets that are lost or may grow. */
void ddps_sc_path_encap(struct ddps_sc_path *p, uint16_t encap)
{
	struct ddps_sctp *e = p->a->e;

	LIST_REMOVE(p, program);
	p->encap = encap;
	LIST_INSERT_HEAD(ddps_sc_program_of(e, &p->peer, encap), p, program);
}

/* ---- ports and peers ---- */

struct ddps_sctp_port *ddps_sc_find_port(struct ddps_sctp *e, uint16_t via, uint16_t port)
{
	struct ddps_sctp_port *l = NULL;
	uint16_t key[2] = { via, port };

	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): 4 octets are set */
	HASH_FIND(hh, e->ports, key, sizeof key, l);
	return l;
}

/* Who has @addr.  What it has between its members is not looked at. */
static struct ddps_sctp_addr make_peer_key(const struct ddps_sctp_addr *addr)
{
	struct ddps_sctp_addr k;

	memset(&k, 0, sizeof k);
	k.family = addr->family;
	k.scope = addr->scope;
	memcpy(k.ip, addr->ip, addr->family == 6 ? 8 : 4);
	return k;
}

unsigned ddps_sc_net_of(const struct ddps_sctp *e, const struct ddps_sctp_addr *addr, unsigned n)
{
	struct ddps_sctp_addr k = make_peer_key(addr);

	return 1 + hash_peer_key(e, &k, sizeof k) % (n - 1);
}

static struct ddps_sc_peer *find_peer(struct ddps_sctp *e, const struct ddps_sctp_addr *addr,
				      unsigned h)
{
	struct ddps_sc_peer *p = NULL;

	if (e->peers)
		HASH_FIND_BYHASHVALUE(hh, e->peers, addr, sizeof *addr, h, p);
	return p;
}

/* Entered if need be; NULL: no memory. */
static struct ddps_sc_peer *have_peer(struct ddps_sctp *e, const struct ddps_sctp_addr *addr)
{
	struct ddps_sctp_addr k = make_peer_key(addr);
	unsigned h = hash_peer_key(e, &k, sizeof k);
	struct ddps_sc_peer *p = find_peer(e, &k, h);

	if (p)
		return p;
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	memcpy(&p->addr, &k, sizeof k);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, e->peers, &p->addr, sizeof p->addr, h, p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

static struct ddps_sc_peer *known_peer(struct ddps_sctp *e, const struct ddps_sctp_addr *addr)
{
	struct ddps_sctp_addr k = make_peer_key(addr);

	return find_peer(e, &k, hash_peer_key(e, &k, sizeof k));
}

static void drop_peer(struct ddps_sctp *e, struct ddps_sc_peer *p)
{
	if (p->n || p->more)
		return;
	HASH_DELETE(hh, e->peers, p);
	free(p);
}

bool ddps_sc_peer_get(struct ddps_sctp *e, const struct ddps_sctp_addr *addr, unsigned most)
{
	struct ddps_sc_peer *p = known_peer(e, addr);

	if ((p ? p->n : 0) >= most)
		return false;
	p = have_peer(e, addr);
	if (p)
		p->n++;
	return p;
}

/* It was counted. */
void ddps_sc_peer_put(struct ddps_sctp *e, const struct ddps_sctp_addr *addr)
{
	struct ddps_sc_peer *p = known_peer(e, addr);

	p->n--;
	drop_peer(e, p);
}

bool ddps_sc_more_get(struct ddps_sctp *e, const struct ddps_sctp_addr *addr)
{
	struct ddps_sc_peer *p = have_peer(e, addr);

	if (!p)
		return false;
	if (e->more >= e->c.max_more_addrs || p->more >= e->c.max_more_addrs_per_addr) {
		drop_peer(e, p);
		return false;
	}
	e->more++;
	p->more++;
	return true;
}

void ddps_sc_more_put(struct ddps_sctp *e, const struct ddps_sctp_addr *addr, unsigned n)
{
	struct ddps_sc_peer *p = known_peer(e, addr);

	e->more -= n;
	p->more -= n;
	drop_peer(e, p);
}

/* ---- path MTU by address ---- */

#define WAY_NS (600 * 1000 * MS) /* as long as a path that is used goes without a probe */

static unsigned way_slot(const struct ddps_sctp *e, const struct ddps_sctp_addr *to)
{
	return hash_peer_key(e, to->ip, sizeof to->ip) % DDPS_SC_WAYS;
}

uint16_t ddps_sc_way_size(const struct ddps_sctp *e, const struct ddps_sctp_addr *to)
{
	const struct ddps_sc_way *w = &e->ways[way_slot(e, to)];

	return w->size && e->now - w->at < WAY_NS && ddps_sc_addr_eq(&w->to, to) ? w->size : 0;
}

void ddps_sc_way_set(struct ddps_sctp *e, const struct ddps_sctp_addr *to, uint16_t size)
{
	e->ways[way_slot(e, to)] = (struct ddps_sc_way){ .to = *to, .size = size, .at = e->now };
}

/* ---- tags ---- */

/* [9260-5.3.1-3] A cookie is not good for a second association while it lives.  When the first one
 * ended is not kept: a cookie that is older than twice its life is stale before this is asked. */
void ddps_sc_gone_add(struct ddps_sctp *e, uint32_t own, uint32_t peer)
{
	unsigned i = hash_peer_key(e, &own, sizeof own) % DDPS_SC_GONE;

	e->gone[i].own = own;
	e->gone[i].peer = peer;
}

bool ddps_sc_gone_lately(const struct ddps_sctp *e, uint32_t own, uint32_t peer)
{
	unsigned i = hash_peer_key(e, &own, sizeof own) % DDPS_SC_GONE;

	return e->gone[i].own == own && e->gone[i].peer == peer;
}

/* Its port is @port from now on: other chains, and no memory for that. */
void ddps_sc_move(struct ddps_sctp_assoc *a, uint16_t port)
{
	struct ddps_sctp *e = a->e;

	for (unsigned i = 0; i < a->npaths; i++)
		unlink_path(e, a->path[i]);
	a->port = port;
	for (unsigned i = 0; i < a->npaths; i++)
		link_path(e, a->path[i]);
}

uint16_t ddps_sc_free_port(struct ddps_sctp *e, uint16_t via, uint16_t peer_port,
			   const struct ddps_sctp_addr *peer)
{
	for (unsigned n = 0; n < 16384; n++) {
		uint16_t port = (uint16_t)(49152 + (e->next_port++ & 16383));

		if (!ddps_sc_find_port(e, via, port) &&
		    !ddps_sc_find(e, via, port, peer_port, peer))
			return port;
	}
	return 0;
}
