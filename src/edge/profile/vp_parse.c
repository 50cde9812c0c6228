/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a profile: "device" begins one, "port" one of its ports, other lines are about the last. */
#include "edge/profile/vp.h"
#include "edge/fault/vf_words.h"
#include <string.h>

struct reading {
	struct vf_reader r;
	struct vp_profile *p;
	struct vp_device *d;
	struct vp_port *port;
	const uint64_t *most;
};

static const char *const limits[] = {
	[VP_MAX_QP] = "max_qp",
	[VP_MAX_QP_WR] = "max_qp_wr",
	[VP_MAX_SGE] = "max_sge",
	[VP_MAX_SGE_RD] = "max_sge_rd",
	[VP_MAX_INLINE] = "max_inline",
	[VP_MAX_CQ] = "max_cq",
	[VP_MAX_CQE] = "max_cqe",
	[VP_MAX_MR] = "max_mr",
	[VP_MAX_MR_SIZE] = "max_mr_size",
	[VP_MAX_PD] = "max_pd",
	[VP_MAX_SRQ] = "max_srq",
	[VP_MAX_SRQ_WR] = "max_srq_wr",
	[VP_MAX_SRQ_SGE] = "max_srq_sge",
	[VP_MAX_QP_RD_ATOM] = "max_qp_rd_atom",
	[VP_MAX_QP_INIT_RD_ATOM] = "max_qp_init_rd_atom",
};

/* What adapters without it report as 0; without one of the others there would be nothing to use. */
static const bool may_be_none[VP_LIMITS] = {
	[VP_MAX_SGE_RD] = true,		 [VP_MAX_INLINE] = true,  [VP_MAX_SRQ] = true,
	[VP_MAX_SRQ_WR] = true,		 [VP_MAX_SRQ_SGE] = true, [VP_MAX_QP_RD_ATOM] = true,
	[VP_MAX_QP_INIT_RD_ATOM] = true,
};

/* ---- values ---- */

static int read_text(struct vf_reader *r, char *to, size_t len, const char *what)
{
	struct vf_word w = vf_next(r);

	if (!vf_is_name(w, len) || memchr(w.at, '/', w.len))
		return vf_expected(r, w, what);
	memcpy(to, w.at, w.len);
	to[w.len] = 0;
	return 0;
}

static int read_number(struct vf_reader *r, bool from_0, uint64_t max, uint64_t *n)
{
	struct vf_word w = vf_next(r);

	if (w.len && vf_digits(w, max, n) == w.len && (*n || from_0))
		return 0;
	return vf_expected(r, w, from_0 ? "a number from 0" : "a number from 1");
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Hexadecimal digits, in groups between colons; "0x" may stand in front. */
static int read_profile_hex(struct vf_reader *r, unsigned most, uint64_t *n, const char *what)
{
	struct vf_word w = vf_next(r), all = w;
	unsigned got = 0;

	if (w.len > 2 && w.at[0] == '0' && w.at[1] == 'x')
		w = (struct vf_word){ w.at + 2, w.len - 2 };
	*n = 0;
	for (size_t i = 0; i < w.len; i++) {
		int d = hex_digit(w.at[i]);

		if (w.at[i] == ':')
			continue;
		if (d < 0 || ++got > most)
			return vf_expected(r, all, what);
		*n = *n << 4 | (uint64_t)d;
	}
	return *n ? 0 : vf_expected(r, all, what);
}

struct choice {
	const char *word;
	unsigned value;
};

static int read_choice(struct vf_reader *r, const struct choice *c, unsigned *value,
		       const char *what)
{
	struct vf_word w = vf_next(r);

	for (; c->word; c++)
		if (vf_is(w, c->word)) {
			*value = c->value;
			return 0;
		}
	return vf_expected(r, w, what);
}

static int read_bool(struct vf_reader *r, const struct choice *c, bool *value, const char *what)
{
	unsigned v = 0;

	if (read_choice(r, c, &v, what))
		return -1;
	*value = v;
	return 0;
}

/* ---- lines of a device ---- */

static int read_profile_limit(struct reading *g)
{
	struct vf_word w = vf_next(&g->r), value;
	unsigned i = 0;
	uint64_t n = 0;

	while (i < VP_LIMITS && !vf_is(w, limits[i]))
		i++;
	if (i == VP_LIMITS)
		return vf_expected(&g->r, w, "a limit, as max_qp or max_sge");
	value = vf_peek(&g->r);
	if (read_number(&g->r, may_be_none[i], i == VP_MAX_MR_SIZE ? UINT64_MAX / 16 : INT32_MAX,
			&n))
		return -1;
	if (g->most[i] && n > g->most[i])
		return vf_complain(&g->r, value.at,
				   "expected %llu at most: the drop-in has no more",
				   (unsigned long long)g->most[i]);
	g->d->limit[i] = n;
	g->d->none = (g->d->none & ~(UINT32_C(1) << i)) | (uint32_t)!n << i;
	return 0;
}

static int number32(struct reading *g, uint32_t *to, unsigned digits, const char *what)
{
	uint64_t n;

	if (read_profile_hex(&g->r, digits, &n, what))
		return -1;
	*to = (uint32_t)n;
	return 0;
}

static int device_line(struct reading *g, struct vf_word w)
{
	static const struct choice faces[] = {
		{ "iwarp", 0 }, { "roce", 1 }, { "ib", 2 }, { NULL, 0 }
	};
	static const struct choice on[] = { { "off", 0 }, { "on", 1 }, { NULL, 0 } };
	struct vp_device *d = g->d;
	unsigned face = 0;

	if (vf_is(w, "face")) {
		if (read_choice(&g->r, faces, &face, "iwarp, roce or ib"))
			return -1;
		d->roce = face > 0;
		d->lids = face == 2;
		return 0;
	}
	if (vf_is(w, "atomics"))
		return read_bool(&g->r, on, &d->atomics, "on or off");
	if (vf_is(w, "guid"))
		return read_profile_hex(&g->r, 16, &d->guid, "a GUID, as 0c42:a103:0065:1a2b");
	if (vf_is(w, "vendor"))
		return number32(g, &d->vendor, 6, "a number, as 0x0002c9");
	if (vf_is(w, "part"))
		return number32(g, &d->part, 8, "a number, as 0x1017");
	if (vf_is(w, "firmware"))
		return read_text(&g->r, d->firmware, sizeof d->firmware, "a version");
	if (vf_is(w, "limit"))
		return read_profile_limit(g);
	return vf_expected(&g->r, w,
			   "device, face, guid, vendor, part, firmware, atomics, limit or port");
}

/* ---- lines of a port ---- */

static int port_line(struct reading *g, struct vf_word w)
{
	static const struct choice states[] = { { "active", 0 }, { "down", 1 }, { NULL, 0 } };
	static const struct choice mtus[] = { { "256", 256 },	{ "512", 512 },	  { "1024", 1024 },
					      { "2048", 2048 }, { "4096", 4096 }, { NULL, 0 } };
	static const struct choice widths[] = { { "1", 1 }, { "2", 16 }, { "4", 2 },
						{ "8", 4 }, { "12", 8 }, { NULL, 0 } };
	/* Gb/s of a lane: SDR, DDR, QDR, FDR, EDR, HDR, NDR */
	static const struct choice speeds[] = { { "2.5", 1 },	{ "5", 2 },   { "10", 4 },
						{ "14", 16 },	{ "25", 32 }, { "50", 64 },
						{ "100", 128 }, { NULL, 0 } };
	struct vp_port *p = g->port;

	if (vf_is(w, "interface"))
		return read_text(&g->r, p->interface, sizeof p->interface, "an interface, as eth0");
	if (vf_is(w, "state"))
		return read_bool(&g->r, states, &p->down, "active or down");
	if (vf_is(w, "mtu"))
		return read_choice(&g->r, mtus, &p->mtu, "256, 512, 1024, 2048 or 4096");
	if (vf_is(w, "width"))
		return read_choice(&g->r, widths, &p->width, "1, 2, 4, 8 or 12");
	if (vf_is(w, "speed"))
		return read_choice(&g->r, speeds, &p->speed, "2.5, 5, 10, 14, 25, 50 or 100");
	return device_line(g, w);
}

/* ---- the file ---- */

static struct vp_port *add_port(struct vp_device *d)
{
	d->port[d->ports] = (struct vp_port){ .mtu = 1024, .width = 2, .speed = 4 };
	return &d->port[d->ports++];
}

static int new_device(struct reading *g)
{
	struct vf_word w = vf_peek(&g->r);
	struct vp_device *d = &g->p->device[g->p->n];

	if (g->p->n == VP_DEVICES)
		return vf_complain(&g->r, w.at, "expected the end: %d devices at most", VP_DEVICES);
	*d = (struct vp_device){ .atomics = true };
	if (read_text(&g->r, d->name, sizeof d->name, "a name, as mlx5_0"))
		return -1;
	for (unsigned i = 0; i < g->p->n; i++)
		if (!strcmp(g->p->device[i].name, d->name))
			return vf_expected(&g->r, w, "a name that no other device has");
	g->p->n++;
	g->d = d;
	g->port = NULL;
	return 0;
}

static int new_port(struct reading *g)
{
	struct vf_word w = vf_next(&g->r);
	uint64_t n;

	if (vf_digits(w, VP_PORTS, &n) != w.len || n != g->d->ports + 1)
		return vf_expected(&g->r, w, "the next number, of 4 ports at most");
	g->port = add_port(g->d);
	return 0;
}

static int read_line(struct reading *g)
{
	struct vf_word w = vf_next(&g->r);
	int err;

	if (vf_is(w, "device"))
		err = new_device(g);
	else if (!g->d)
		err = vf_expected(&g->r, w, "device");
	else if (vf_is(w, "port"))
		err = new_port(g);
	else
		err = g->port ? port_line(g, w) : device_line(g, w);
	if (err)
		return -1;
	w = vf_next(&g->r);
	return w.len ? vf_expected(&g->r, w, "the end of the line") : 0;
}

int vp_parse(struct vp_profile *p, const uint64_t most[VP_LIMITS], const char *text, size_t len,
	     struct vf_error *error)
{
	struct reading g = { .r = { .line = text, .at = text, .end = text, .error = error },
			     .p = p,
			     .most = most };
	const char *end = text + len, *stop;

	p->n = 0;
	for (const char *at = text; at < end; at = stop + 1) {
		stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		g.r.line = g.r.at = at;
		g.r.end = stop;
		g.r.number++;
		if (vf_peek(&g.r).len && read_line(&g))
			return -1;
	}
	if (!p->n) {
		g.r.number += !g.r.number;
		return vf_complain(&g.r, g.r.line, "expected a device, there is none");
	}
	for (unsigned i = 0; i < p->n; i++)
		if (!p->device[i].ports)
			add_port(&p->device[i]);
	return 0;
}
