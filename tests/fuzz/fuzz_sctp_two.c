/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two SCTP engines and a network between them that does what the input says: packets arrive, are
 * lost, doubled, kept back, altered with a right CRC after all, or go to the other engine again;
 * users send, hold back, shut down, abort and open again; an engine restarts; time passes.
 */
#include "fuzz.h"
#include "mutate.h"
#include "sctp_rig.h"

#define STEPS_MAX 400
#define PORT	  5000
#define KEPT	  32u /* packets on their way */
#define LEN_MAX	  2048u
#define RWND	  16384u

struct packet {
	unsigned to;
	size_t len;
	uint8_t octets[LEN_MAX];
};

struct node {
	struct world *w;
	unsigned id;
	struct ddps_sctp *e;
	struct ddps_sctp_assoc *a;
};

struct world {
	struct node node[2];
	uint64_t now, seed;
	struct packet kept[KEPT];
	unsigned n;
	bool altered;
};

static void random_octets(void *user, void *buf, size_t len)
{
	sctp_octets(&((struct world *)user)->seed, buf, len);
}

static struct ddps_sctp_addr make_node_address(unsigned id)
{
	struct ddps_sctp_addr a;

	memset(&a, 0, sizeof a);
	a.family = 4;
	a.ip[0] = 10;
	a.ip[3] = (uint8_t)(id + 1);
	return a;
}

/* ---- users ---- */

static void ignore_node_upcall(void *user)
{
	(void)user;
}

/* All octets of a message are the same, and the first 4 say how many there are. */
static void take_sctp_two_fuzz_message(void *user, const struct ddps_sctp_msg *m)
{
	struct node *d = user;
	uint8_t *copy = fuzz_exact(m->data, m->len);

	FUZZ_CHECK(m->len);
	for (size_t i = 0; i < m->len && !d->w->altered; i++)
		FUZZ_CHECK(copy[i] == (uint8_t)(m->len ^ m->stream));
	free(copy);
}

static void take_sctp_two_fuzz_acked(void *user, uint64_t n)
{
	struct node *d = user;

	FUZZ_CHECK(n <= ddps_sctp_sent(d->a));
}

static void take_sctp_two_fuzz_gone(void *user, const struct ddps_error *e)
{
	struct node *d = user;

	FUZZ_CHECK(e->code != DDPS_E_PROTOCOL || d->w->altered);
	ddps_sctp_assoc_free(d->a, d->w->now);
	d->a = NULL;
}

/* What leaves with the cookie. */
static void take_sctp_two_fuzz_answered(void *user)
{
	struct node *d = user;
	const uint8_t octets[3] = { 3 ^ 1, 3 ^ 1, 3 ^ 1 };
	struct iovec iov = { (void *)(uintptr_t)octets, sizeof octets };

	ddps_sctp_send(d->a, 1, 0, DDPS_SCTP_UNORDERED, &iov, 1, d->w->now);
}

static const struct ddps_sctp_up up = { .answered = take_sctp_two_fuzz_answered,
					.up = ignore_node_upcall,
					.message = take_sctp_two_fuzz_message,
					.writable = ignore_node_upcall,
					.acked = take_sctp_two_fuzz_acked,
					.peer_shutdown = ignore_node_upcall,
					.restarted = ignore_node_upcall,
					.gone = take_sctp_two_fuzz_gone };

static void take_sctp_two_fuzz_accept(void *user, struct ddps_sctp_assoc *a)
{
	struct node *d = user;

	if (d->a) {
		ddps_sctp_assoc_free(a, d->w->now);
		return;
	}
	d->a = a;
	ddps_sctp_assoc_set_up(a, &up, d);
}

/* ---- the network ---- */

static void keep_node_packet(void *user, const uint8_t *octets, size_t len)
{
	const struct node *d = user;
	struct world *w = d->w;
	struct packet *p = &w->kept[w->n];

	if (w->n == KEPT || len > LEN_MAX) /* lost */
		return;
	p->to = !d->id;
	p->len = len;
	memcpy(p->octets, octets, len);
	w->n++;
}

static void collect(struct node *d)
{
	sctp_output(d->e, d->w->now, keep_node_packet, d);
}

static void flush_both_nodes(struct world *w)
{
	collect(&w->node[0]);
	collect(&w->node[1]);
}

static void deliver_kept_packet(struct world *w, unsigned i, unsigned to)
{
	const struct packet *p = &w->kept[i];
	struct ddps_sctp_in in = { .from = { .peer = make_node_address(!to), .encap = 9899 },
				   .len = p->len };

	in.data = fuzz_exact(p->octets, p->len);
	ddps_sctp_input(w->node[to].e, &in, 1, w->now);
	free(in.data);
	flush_both_nodes(w);
}

static void drop_kept_packet(struct world *w, unsigned i)
{
	w->kept[i] = w->kept[--w->n];
}

static void alter_kept_packet(struct world *w, unsigned i, struct ddps_rbuf *in)
{
	struct packet *p = &w->kept[i];
	uint8_t where = ddps_rbuf_u8(in), what = ddps_rbuf_u8(in);

	if (where >= 0xe0) { /* chunks of it go, come, change places or lengths */
		struct fuzz_dice d = { (uint64_t)where << 8 | what };

		p->len = fuzz_mutate_packet(p->octets, p->len, LEN_MAX, &d);
		w->altered = true;
		return;
	}
	p->octets[(where * 7u) % p->len] ^= what;
	if (what & 1) { /* else its CRC gives it away */
		ddps_sc_crc_put(p->octets, p->len);
		w->altered = true;
	}
}

/* ---- the script ---- */

static void boot_node(struct world *w, unsigned id)
{
	struct ddps_sctp_param p = { .port = PORT, .streams = 8 };
	struct node *d = &w->node[id];
	struct ddps_sctp_port *l;
	struct ddps_sctp_config c;

	ddps_sctp_free(d->e);
	*d = (struct node){ .w = w, .id = id };
	ddps_sctp_defaults(&c);
	c.random = random_octets;
	c.user = w;
	c.rwnd = RWND;
	FUZZ_CHECK(!ddps_sctp_new(&c, w->now, &d->e));
	FUZZ_CHECK(!ddps_sctp_listen(d->e, &p, take_sctp_two_fuzz_accept, d, &l));
}

static void open_from(struct world *w, unsigned id)
{
	const struct ddps_sctp_addr peer = make_node_address(!id);
	struct ddps_sctp_param p = { .port = PORT, .streams = 8 };
	struct node *d = &w->node[id];

	if (!d->a && ddps_sctp_connect(d->e, &p, &peer, 1, PORT, 9899, &up, d, w->now, &d->a))
		d->a = NULL; /* the old one is on its way out */
}

static void send_node_message(struct node *d, uint8_t what, uint8_t size)
{
	static uint8_t text[256 * 20];
	uint16_t stream = what & 7;
	size_t len = 1 + (size_t)size * 19;
	struct iovec iov = { text, len };

	memset(text, (uint8_t)(len ^ stream), len);
	ddps_sctp_send(d->a, stream, 1, what & 8 ? DDPS_SCTP_UNORDERED : 0, &iov, 1, d->w->now);
}

static void call_node_as_user(struct world *w, struct ddps_rbuf *in)
{
	uint8_t what = ddps_rbuf_u8(in), arg = ddps_rbuf_u8(in);
	struct node *d = &w->node[what & 1];

	if ((what >> 1 & 7) == 7) {
		if (arg & 1)
			boot_node(w, d->id);
		open_from(w, d->id);
	} else if (d->a) {
		switch (what >> 1 & 7) {
		case 0:
			ddps_sctp_shutdown(d->a, w->now);
			break;
		case 1:
			ddps_sctp_abort(d->a, "so", w->now);
			break;
		case 2:
			ddps_sctp_pause(d->a, arg & 1, w->now);
			break;
		case 3:
			ddps_sctp_hold_stream(d->a, arg & 7, arg & 8, w->now);
			break;
		default:
			send_node_message(d, what >> 4, arg);
		}
	}
	flush_both_nodes(w);
}

static void take_two_step(struct world *w, struct ddps_rbuf *in)
{
	uint8_t what = ddps_rbuf_u8(in);
	unsigned i = w->n ? (what >> 3) % w->n : 0;

	switch (what & 7) {
	case 6:
		w->now += 1ull << (what >> 3);
		for (i = 0; i < 2; i++)
			ddps_sctp_tick(w->node[i].e, w->now);
		flush_both_nodes(w);
		return;
	case 7:
		call_node_as_user(w, in);
		return;
	default:
		break;
	}
	if (!w->n)
		return;
	switch (what & 7) {
	case 3: /* twice */
		deliver_kept_packet(w, i, w->kept[i].to);
		break;
	case 4:
		alter_kept_packet(w, i, in);
		break;
	case 5: /* lost, or back to where it came from */
		if (what & 0x80)
			deliver_kept_packet(w, i, !w->kept[i].to);
		drop_kept_packet(w, i);
		break;
	default:
		deliver_kept_packet(w, i, w->kept[i].to);
		drop_kept_packet(w, i);
	}
}

static void check_node_counts(const struct world *w)
{
	struct ddps_sctp_stats st;

	for (unsigned i = 0; i < 2; i++) {
		ddps_sctp_stats(w->node[i].e, &st);
		FUZZ_CHECK(st.assocs <= 4 && st.held <= 4 * (2 * RWND + 65536));
		FUZZ_CHECK(st.assocs || !st.held);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	static struct world w;

	w = (struct world){ .now = 1000000000, .seed = 1 };
	boot_node(&w, 0);
	boot_node(&w, 1);
	open_from(&w, 0);
	if (ddps_rbuf_u8(&in) & 1)
		open_from(&w, 1);
	flush_both_nodes(&w);
	for (unsigned n = 0; n < STEPS_MAX && fuzz_more(&in); n++) {
		take_two_step(&w, &in);
		check_node_counts(&w);
	}
	ddps_sctp_free(w.node[0].e);
	ddps_sctp_free(w.node[1].e);
	return 0;
}
