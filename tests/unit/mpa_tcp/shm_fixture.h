/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHM_FIXTURE_H
#define SHM_FIXTURE_H
/* A world whose listener is one of shm://, and bare peers that speak its protocol by hand. */
#include "mpa_tcp/shm/shm_pass.h"
#include "support/mpa_world.h"
#include <sys/un.h>

static inline void shm_log(void *user, enum ddps_log_level level, const char *facility,
			   const char *message)
{
	char *last = user;

	(void)facility;
	if (level <= DDPS_LOG_INFO)
		snprintf(last, 300, "%s", message);
}

/* Where @uri leads. */
static inline void shm_resolve(const char *uri, struct ddps_uri *u, struct sockaddr_storage *ss,
			       socklen_t *len)
{
	char why[200] = "";

	cr_assert_eq(ddps_uri_parse(u, uri, why, sizeof why), 0, "%s", why);
	cr_assert_eq(ddps_uri_sockaddr(u, ss, len), 0);
}

static inline int shm_listen(struct mpa_world *w, const char *uri, char *bound, size_t size)
{
	struct sockaddr_storage ss;
	struct ddps_uri u;
	socklen_t len;
	int err;

	shm_resolve(uri, &u, &ss, &len);
	err = ddps_shm_provider.listen(&w->env, &u, (struct sockaddr *)&ss, len, &w->lp,
				       &mpa_listen_up, w, &w->listener);
	if (!err)
		ddps_shm_provider.listener_uri(w->listener, bound, size);
	return err;
}

static inline int shm_connect(struct mpa_world *w, const char *uri)
{
	const struct ddps_setup setup = { .enhanced = true,
					  .pd = (const uint8_t *)"\0\1\0\1",
					  .pd_len = 4 };
	struct sockaddr_storage ss;
	struct ddps_uri u;
	socklen_t len;
	int err;

	shm_resolve(uri, &u, &ss, &len);
	err = ddps_shm_provider.connect(&w->env, &u, (struct sockaddr *)&ss, len, &setup, &w->a.p,
					&mpa_up, &w->a, &w->a.llp);
	if (!err)
		ddps_llp_attach(w->a.llp, &mpa_data, &w->a);
	return err;
}

/* Memory of sessions that this process has mapped. */
static inline unsigned shm_count_memories(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[500];
	unsigned n = 0;

	cr_assert(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, "/memfd:ddpsess") != NULL;
	fclose(f);
	return n;
}

/* A peer by hand. */
struct shm_bare {
	int sock;
	struct ddps_shm_memory *memory;
	const struct ddps_shm_memory *far;
	struct ddps_shm_ring in, out;
};

static inline int shm_bare_connect(const char *uri)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage ss;
	struct ddps_uri u;
	socklen_t len;

	cr_assert_geq(fd, 0);
	shm_resolve(uri, &u, &ss, &len);
	cr_assert_eq(connect(fd, (struct sockaddr *)&ss, len), 0);
	return fd;
}

static inline void shm_bare_ring(const struct shm_bare *b)
{
	(void)send(b->sock, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static inline void shm_bare_write(struct shm_bare *b, const void *octets, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)octets, n };
	bool wake;

	cr_assert_eq(ddps_shm_write(&b->out, &iov, 1, &wake), n);
	shm_bare_ring(b);
}

/* It has its memory, of which @fd is passed. */
static inline void shm_bare_make(struct shm_bare *b, int *fd)
{
	b->memory = ddps_shm_make(fd);
	b->far = NULL;
	cr_assert(b->memory);
	ddps_shm_open_writer(&b->out, b->memory);
	ddps_shm_open_reader(&b->in, b->memory);
}

/* It has passed its memory. */
static inline void shm_bare_hello(struct shm_bare *b, const char *uri)
{
	int fd;

	b->sock = shm_bare_connect(uri);
	shm_bare_make(b, &fd);
	cr_assert_eq(ddps_shm_pass(b->sock, fd), 0);
	close(fd);
}

/* The listener's memory is here, if it has passed it by now. */
static inline bool shm_bare_meets(struct shm_bare *b)
{
	const char *why;

	b->far = ddps_shm_take(b->sock, &why);
	cr_assert(b->far || errno == EAGAIN, "%s", why);
	if (!b->far)
		return false;
	ddps_shm_meet(&b->in, b->far);
	ddps_shm_meet(&b->out, b->far);
	return true;
}

/* Its plain Request, without CRC, is accepted by b[0]. */
static inline void shm_bare_session(struct mpa_world *w, struct shm_bare *b, const char *uri)
{
	uint8_t reply[20];
	struct iovec iov = { reply, sizeof reply };
	bool wake;

	shm_bare_hello(b, uri);
	shm_bare_write(b, MPA_REQ "\0\1\0\0", 20);
	MPA_UNTIL(w, shm_bare_meets(b));
	MPA_UNTIL(w, ddps_shm_filled(&b->in) >= 20);
	cr_assert_eq(ddps_shm_read(&b->in, &iov, 1, &wake), 20);
	cr_assert_arr_eq(reply, MPA_REP "\0\1\0\0", 20);
}

/* The other side has closed the socket. */
static inline bool shm_bare_gone(const struct shm_bare *b)
{
	char octets[64];
	ssize_t n;

	do
		n = recv(b->sock, octets, sizeof octets, MSG_DONTWAIT);
	while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

static inline void shm_bare_close(struct shm_bare *b)
{
	close(b->sock);
	ddps_shm_unmap(b->memory);
	ddps_shm_unmap(b->far);
}

#endif
