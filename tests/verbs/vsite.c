/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/vsite.h"
#include "support/keys.h"
#include "verbs/vchild.h"
#include "verbs/vt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

#define DAY 86400

static void put_site_file(const struct vsite *s, const char *name, const char *text, mode_t mode)
{
	char path[128];

	write_test_file(s->dir, name, text, mode, path, sizeof path);
}

static void put_site_pair(const struct vsite *s, const char *name, const struct test_pair *p)
{
	char file[32];

	snprintf(file, sizeof file, "%s.pem", name);
	put_site_file(s, file, p->cert, 0644);
	snprintf(file, sizeof file, "%s.key", name);
	put_site_file(s, file, p->key, 0600);
}

void vsite_make(struct vsite *s)
{
	static const char *const here[] = { "127.0.0.1", "localhost", NULL };
	static const char *const elsewhere[] = { "node-a", NULL };
	static struct test_pair ca, pair, other;

	strcpy(s->dir, "/tmp/ddpsess-vsite-XXXXXX");
	cr_assert(mkdtemp(s->dir));
	make_test_site(&ca, &pair);
	put_site_pair(s, "ca", &ca);
	put_site_file(s, "open.key", pair.key, 0644);
	put_site_pair(s, "host", &pair);
	make_test_pair(&pair, &ca, elsewhere, -60, 3600);
	put_site_pair(s, "node", &pair);
	make_test_pair(&pair, &ca, here, -2 * DAY, -DAY);
	put_site_pair(s, "old", &pair);
	make_test_site(&other, &pair);
	put_site_pair(s, "other-ca", &other);
	put_site_pair(s, "stranger", &pair);
	put_site_file(s, "a.psk", "a:00112233445566778899aabbccddeeff\n", 0600);
	put_site_file(s, "wrong.psk", "a:ff112233445566778899aabbccddeeff\n", 0600);
	put_site_file(s, "b.psk", "b:00112233445566778899aabbccddeeff\n", 0600);
	put_site_file(s, "deny.txt", "deny dns localhost\n", 0644);
	put_site_file(s, "allow.txt", "allow dns localhost\n", 0644);
}

void vsite_remove(const struct vsite *s)
{
	static const char *const names[] = { "ca",    "host",	  "node",    "old",
					     "early", "other-ca", "stranger" };
	static const char *const files[] = { "a.psk",	  "wrong.psk", "b.psk",	   "deny.txt",
					     "allow.txt", "open.key",  "own.conf", "peer.conf" };
	char path[128];

	for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s.%s", s->dir, names[i / 2],
			 i % 2 ? "key" : "pem");
		unlink(path);
	}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", s->dir, files[i]);
		unlink(path);
	}
	cr_expect_eq(rmdir(s->dir), 0, "%m");
}

void vsite_write(const struct vsite *s, const char *name, const char *lines)
{
	put_site_file(s, name, lines, 0644);
}

void vsite_use(const struct vsite *s, const char *wire, const char *lines)
{
	char path[128];

	vsite_write(s, "own.conf", lines);
	snprintf(path, sizeof path, "%s/own.conf", s->dir);
	setenv("DDPSESS_TRANSPORT", wire, 1);
	setenv("DDPSESS_TLS", path, 1);
}

/* ---- what is said ---- */

static int said, kept;

void vsite_hear(void)
{
	said = vchild_file("");
	kept = dup(STDERR_FILENO);
	cr_assert_eq(dup2(said, STDERR_FILENO), STDERR_FILENO);
}

void vsite_expect_said_some(const char *what, unsigned least, unsigned most)
{
	static char text[65536];
	ssize_t len = pread(said, text, sizeof text - 1, 0);
	unsigned times;

	dup2(kept, STDERR_FILENO);
	cr_assert_geq(len, 0);
	text[len] = 0;
	times = vchild_times(text, what);
	cr_expect(times >= least && times <= most, "not %u to %u times '%s':\n%s", least, most,
		  what, text);
}

void vsite_expect_said(const char *what, unsigned times)
{
	vsite_expect_said_some(what, times, times);
}

/* ---- the peer ---- */

static void drop_log(void *user, enum ddps_log_level level, const char *facility,
		     const char *message)
{
	(void)user;
	(void)level;
	(void)facility;
	(void)message;
}

void vpeer_open(struct vpeer *p, const struct vsite *s, const char *lines)
{
	struct ddps_secure_attr secure;
	struct ddps_ctx_attr attr;
	struct ddps_error why;
	char path[128];

	memset(p, 0, sizeof *p);
	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	attr.log = drop_log;
	if (lines) {
		vsite_write(s, "peer.conf", lines);
		snprintf(path, sizeof path, "%s/peer.conf", s->dir);
		ddps_secure_attr_init(&secure);
		secure.settings = path;
		cr_assert_eq(ddps_secure_open(&attr.secure, &secure, &why), 0, "%s", why.text);
	}
	cr_assert_eq(ddps_ctx_new(&p->ctx, &attr), 0);
	ddps_secure_close(attr.secure);
	cr_assert_eq(ddps_pd_new(p->ctx, &p->pd), 0);
	cr_assert_eq(ddps_cq_new(p->ctx, 64, &p->cq), 0);
}

/* Over SCTP the drop-in's UDP port has the number of the port of SCTP. */
static void print_peer_uri(char *uri, size_t size, const char *wire, uint16_t port)
{
	snprintf(uri, size, "%s://127.0.0.1:%u", wire, port);
	if (!strcmp(wire, "sctp"))
		snprintf(uri + strlen(uri), size - strlen(uri), "?encap=%u", port);
}

static uint16_t find_udp_port(void)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a4;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&a4, len), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a4, &len), 0);
	close(fd);
	return ntohs(a4.sin_port);
}

void vpeer_listen(struct vpeer *p, const char *wire, struct vt *v)
{
	char uri[160];

	print_peer_uri(uri, sizeof uri, wire, strcmp(wire, "sctp") ? 0 : find_udp_port());
	cr_assert_eq(ddps_listen(p->ctx, uri, NULL, &p->listener), 0, "%s", uri);
	cr_assert_gt(ddps_listener_uri(p->listener, uri, sizeof uri), 0);
	((struct sockaddr_in *)&v->addr)->sin_port = htons((uint16_t)atoi(strstr(uri, "0.1:") + 4));
}

void vpeer_dial(struct vpeer *p, const char *wire, const struct vt *v)
{
	struct ddps_ep_attr attr;
	char uri[160];

	ddps_ep_attr_init(&attr);
	attr.pd = p->pd;
	attr.send_cq = attr.recv_cq = p->cq;
	cr_assert_eq(ddps_ep_new(p->ctx, &attr, &p->ep), 0);
	print_peer_uri(uri, sizeof uri, wire, vt_port(v));
	cr_assert_eq(ddps_connect(p->ep, uri, NULL), 0, "%s", uri);
}

struct ddps_event vpeer_event(struct vpeer *p)
{
	struct ddps_event ev;

	cr_assert_eq(ddps_event_wait(p->ctx, &ev, VT_MS), 0, "no event came");
	return ev;
}

void vpeer_close(struct vpeer *p)
{
	ddps_ep_free(p->ep);
	ddps_listener_free(p->listener);
	cr_expect_eq(ddps_cq_free(p->cq), 0);
	ddps_ctx_free(p->ctx);
}

/* ---- vt keys ---- */

/* A pre-shared key for the tests over TLS.  The program that runs them makes it; each test is a process of
 * its own, which finds it by a variable. */

#define FILE_OF_KEYS "DDPSESS_TEST_PSK"

static char file[] = "/tmp/ddpsess-vt-XXXXXX";
static pid_t maker;

__attribute__((constructor)) static void make_vt_key(void)
{
	static const char key[] = "both:000102030405060708090a0b0c0d0e0f\n";
	int fd;

	if (getenv(FILE_OF_KEYS))
		return;
	fd = mkostemp(file, O_CLOEXEC);
	if (fd < 0 || write(fd, key, sizeof key - 1) != sizeof key - 1)
		abort();
	close(fd);
	maker = getpid();
	setenv(FILE_OF_KEYS, file, 1);
}

__attribute__((destructor)) static void remove_vt_key(void)
{
	if (maker == getpid())
		unlink(file);
}

/*
 * LeakSanitizer asks at the end of a process.  The context of the drop-in is there until then, and keys are
 * where LeakSanitizer does not look (src/secure/vault.c), so that all that they lead to would be leaks.
 */
int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
	const char *wire = getenv("DDPSESS_TRANSPORT");

	return wire && strcmp(wire, "tcp") != 0 && strcmp(wire, "sctp") != 0;
}

void vt_over_tls(void)
{
	setenv("DDPSESS_TRANSPORT", "tls", 1);
	setenv("DDPSESS_TLS_PSK", getenv(FILE_OF_KEYS), 1);
}
