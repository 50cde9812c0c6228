/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs what registered itself, each test in a process of its own: criterion/criterion.h next to this.  What a
 * test says is printed if it fails.  Under ASan a test that leaves an allocation which nobody points to fails.
 * usage: unit-bare [--jobs N] [--times] [SUITE-PREFIX...]
 *   --times	what each test has computed
 */
#include "criterion/criterion.h"
#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
/* <sanitizer/allocator_interface.h>, which gcc does not bring */
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
					      void (*)(const volatile void *));
#endif

#define SLOWER 10 /* than the machine that the time-outs were written for */
#define JOBS   64

struct job {
	const struct cross_test *t;
	pid_t pid; /* 0: none */
	FILE *said;
};

static struct job job[JOBS];
static unsigned passed, skipped, bad;
static bool times;

/* ---- in the process of a test ---- */

#ifdef __SANITIZE_ADDRESS__
static long
	live; /* allocations: to look for those that nobody points to takes longer than most tests */

static void send_more_cross(const volatile void *p, size_t len)
{
	(void)p;
	(void)len;
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
}

static void fewer(const volatile void *p)
{
	if (p)
		__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
}

static void count_allocations(void)
{
	(void)__sanitizer_install_malloc_and_free_hooks(send_more_cross, fewer);
}

static bool leaks(void)
{
	return __atomic_load_n(&live, __ATOMIC_RELAXED) > 0 && __lsan_do_recoverable_leak_check();
}
#else
static void count_allocations(void)
{
}

static bool leaks(void)
{
	return false;
}
#endif

static void run_cross_here(const struct cross_test *t, FILE *said)
{
	const struct cross_test *s = cross_suite_of(t);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0); /* what it leaves running ends with it */
	dup2(fileno(said), 1);
	dup2(fileno(said), 2);
	fclose(said);
	alarm((unsigned)(SLOWER * (t->timeout > 0	 ? t->timeout
				   : s && s->timeout > 0 ? s->timeout
							 : 15)));
	count_allocations();
	cross_play(t);
	if (leaks())
		cross_failed = true;
	cross_end(false);
}

/* ---- in front of them ---- */

static void begin_cross(struct job *j, const struct cross_test *t)
{
	*j = (struct job){ .t = t, .said = tmpfile() };
	fflush(stdout);
	j->pid = j->said ? fork() : -1;
	if (!j->pid)
		run_cross_here(t, j->said);
	if (j->pid < 0) {
		perror("unit-bare: cannot begin a test");
		exit(2);
	}
}

static void show_cross(FILE *said)
{
	char line[4096];

	rewind(said);
	while (fgets(line, sizeof line, said))
		fputs(line, stdout);
}

static void show_file(const char *dir, const char *name)
{
	char path[300], line[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "r");
	if (f && fgets(line, sizeof line, f))
		printf("#   %s: %.*s\n", name, (int)strcspn(line, "\n"), line);
	if (f)
		fclose(f);
}

/* What a process that a test has left does: its state, its parent, and in what call each of its threads is. */
static void show_process_left(const char *pid)
{
	char dir[300], task[300];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof dir, "/proc/%s/task", pid);
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		if (*e->d_name == '.')
			continue;
		snprintf(task, sizeof task, "/proc/%.20s/task/%.20s", pid, e->d_name);
		printf("# %s\n", task);
		show_file(task, "stat");
		show_file(task, "wchan");
		show_file(task, "syscall");
	}
	if (d)
		closedir(d);
}

/* A test whose time is over says nothing more: what its children wait for is seen from outside. */
static void show_group_left(pid_t group)
{
	struct dirent *e;
	DIR *d = opendir("/proc");

	while (d && (e = readdir(d))) {
		const pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && getpgid(pid) == group)
			show_process_left(e->d_name);
	}
	if (d)
		closedir(d);
}

static void judge_cross(struct job *j, int status)
{
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	passed += code == 0;
	skipped += code == CROSS_SKIPPED;
	if (code != 0 && code != CROSS_SKIPPED) {
		bad++;
		show_cross(j->said);
		printf("not ok %s/%s: %s %d\n", j->t->suite, j->t->name,
		       WIFSIGNALED(status) ? "signal" : "exit status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : code);
	}
	fclose(j->said);
	j->pid = 0;
}

static double get_seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* The next that ends; false: none is running. */
static bool await_cross(void)
{
	struct rusage ru;
	int status;
	pid_t pid = wait4(-1, &status, 0, &ru);

	for (unsigned i = 0; i < JOBS && pid > 0; i++) {
		if (job[i].pid != pid)
			continue;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
			show_group_left(pid);
		kill(-pid, SIGKILL);
		if (times)
			printf("# %7.3f s %s/%s\n",
			       get_seconds(&ru.ru_utime) + get_seconds(&ru.ru_stime),
			       job[i].t->suite, job[i].t->name);
		judge_cross(&job[i], status);
	}
	return pid > 0;
}

static struct job *free_one(unsigned jobs)
{
	for (;; await_cross())
		for (unsigned i = 0; i < jobs; i++)
			if (!job[i].pid)
				return &job[i];
}

int main(int argc, char **argv)
{
	unsigned jobs = 1;

	(void)argc;
	argv++;
	if (argv[0] && argv[1] && !strcmp(argv[0], "--jobs")) {
		jobs = (unsigned)strtoul(argv[1], NULL, 10);
		argv += 2;
	}
	times = argv[0] && !strcmp(argv[0], "--times");
	argv += times;
	if (!jobs || jobs > JOBS) {
		fprintf(stderr, "unit-bare: --jobs takes 1 to %d\n", JOBS);
		return 2;
	}
	for (const struct cross_test *t = cross_tests; t; t = t->next)
		if (!t->disabled && cross_is_wanted(t, argv))
			begin_cross(free_one(jobs), t);
	while (await_cross())
		;
	printf("%u passed, %u skipped, %u failed\n", passed, skipped, bad);
	return passed && !bad ? 0 : 1;
}
