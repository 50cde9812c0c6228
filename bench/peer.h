/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H
/* What the programs that ours is compared with share: two processes on two cores, the clock,
 * and a result in the members of sessctl perf --json. */
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct peer_args {
	const char *mode;
	size_t size;
	double seconds;
	unsigned depth;
};

static inline double peer_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline double peer_seconds(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
	       (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

static inline double peer_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return peer_seconds(&u);
}

__attribute__((noreturn)) static inline void peer_die(const char *what)
{
	perror(what);
	exit(1);
}

/* The side that waits takes core 0, the one that measures core 1 (of one: the same). */
static inline void peer_pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)core, &set);
	(void)!sched_setaffinity(0, sizeof set, &set);
}

static inline struct peer_args peer_parse(int argc, char **argv, const char *modes)
{
	struct peer_args a = { .depth = 16 };

	if (argc < 4 || !strstr(modes, argv[1])) {
		fprintf(stderr, "usage: %s %s SIZE SECONDS [DEPTH]\n", argv[0], modes);
		exit(2);
	}
	a.mode = argv[1];
	a.size = strtoul(argv[2], NULL, 10);
	a.seconds = strtod(argv[3], NULL);
	if (argc > 4)
		a.depth = (unsigned)strtoul(argv[4], NULL, 10);
	if (!a.size || a.size > 64u << 20 || a.seconds <= 0 || !a.depth || a.depth > 1024) {
		fprintf(stderr, "%s: argument out of range\n", argv[0]);
		exit(2);
	}
	return a;
}

static inline void *peer_memory(size_t len)
{
	void *p = calloc(1, len);

	if (!p)
		peer_die("memory");
	memset(p, 1, len); /* pages of its own */
	return p;
}

static inline void peer_report(const struct peer_args *a, uint64_t ops, double seconds, double cpu)
{
	printf("{\"op\":\"%s\",\"size\":%zu,\"ops\":%llu,\"seconds\":%.9f,"
	       "\"ops_per_second\":%.3f,\"bytes_per_second\":%.3f,"
	       "\"lat_us\":{\"avg\":%.3f},\"cpu_seconds\":{\"local\":%.6f}}\n",
	       a->mode, a->size, (unsigned long long)ops, seconds, (double)ops / seconds,
	       (double)ops * (double)a->size / seconds, seconds * 1e6 / (double)ops, cpu);
}

/* The same, when @child, the other side, has ended, with the processor time of both sides. */
static inline void peer_report_both(const struct peer_args *a, uint64_t ops, double seconds,
				    pid_t child)
{
	struct rusage u;
	int status;

	if (waitpid(child, &status, 0) != child || status || getrusage(RUSAGE_CHILDREN, &u))
		peer_die("the other side");
	printf("{\"op\":\"%s\",\"size\":%zu,\"ops\":%llu,\"seconds\":%.9f,"
	       "\"ops_per_second\":%.3f,\"bytes_per_second\":%.3f,"
	       "\"bytes_per_cpu_second\":%.3f,"
	       "\"cpu_seconds\":{\"local\":%.6f,\"peer\":%.6f}}\n",
	       a->mode, a->size, (unsigned long long)ops, seconds, (double)ops / seconds,
	       (double)ops * (double)a->size / seconds,
	       (double)ops * (double)a->size / (peer_cpu() + peer_seconds(&u)), peer_cpu(),
	       peer_seconds(&u));
}

/* As many as are allowed at all. */
static inline void peer_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		peer_die("RLIMIT_NOFILE");
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

/* Of the side that accepts */
static inline const char *peer_host(void)
{
	const char *host = getenv("BENCH_HOST");

	return host ? host : "127.0.0.1";
}

/* Into the network namespace that the file @path is. */
static inline void peer_enter(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		peer_die(path);
	close(fd);
}

/* ---- medians: on a machine that does other things too, a mean says little ---- */

struct peer_median {
	double *v;
	size_t n, size;
};

static inline void peer_median_add(struct peer_median *m, double x)
{
	if (m->n == m->size) {
		m->size = m->size ? 2 * m->size : 65536;
		m->v = realloc(m->v, m->size * sizeof *m->v);
		if (!m->v)
			peer_die("memory");
	}
	m->v[m->n++] = x;
}

static inline int peer_median_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Operations one after the other: the rate is that of the median one.  @octets: that others carried
 * meanwhile. */
static inline void peer_report_median_beside(const struct peer_args *a, struct peer_median *m,
					     double seconds, double cpu, uint64_t octets)
{
	double p50;

	if (!m->n) {
		fprintf(stderr, "%s: no operation came to its end\n", a->mode);
		exit(1);
	}
	qsort(m->v, m->n, sizeof *m->v, peer_median_order);
	p50 = m->v[m->n / 2];
	printf("{\"op\":\"%s\",\"size\":%zu,\"ops\":%zu,\"seconds\":%.9f,"
	       "\"ops_per_second\":%.3f,\"lat_us\":{\"min\":%.3f,\"p50\":%.3f,\"p99\":%.3f},"
	       "\"bytes_per_second\":%.3f,\"cpu_seconds\":{\"local\":%.6f}}\n",
	       a->mode, a->size, m->n, seconds, 1 / p50, m->v[0] * 1e6, p50 * 1e6,
	       m->v[m->n * 99 / 100] * 1e6, (double)octets / seconds, cpu);
}

static inline void peer_report_median(const struct peer_args *a, struct peer_median *m,
				      double seconds, double cpu)
{
	peer_report_median_beside(a, m, seconds, cpu, 0);
}

#endif
