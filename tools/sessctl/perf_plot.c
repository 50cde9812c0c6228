/* SPDX-License-Identifier: BSD-2-Clause */
/* A gnuplot script, through a pipe.  What it draws comes on its standard output: it would write through links. */
#include "sessctl/perf_op.h"
#include "cli/temp.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool ends_in(const char *file, const char *suffix)
{
	size_t n = strlen(file), m = strlen(suffix);

	return n > m && !strcmp(file + n - m, suffix);
}

/* Is there a gnuplot in PATH? */
static bool have_gnuplot(void)
{
	const char *path = getenv("PATH");
	char name[4096];
	size_t n;

	for (const char *p = path ? path : ""; *p; p += n + (p[n] == ':')) {
		n = strcspn(p, ":");
		if ((size_t)snprintf(name, sizeof name, "%.*s/gnuplot", (int)n, p) < sizeof name &&
		    !access(name, X_OK))
			return true;
	}
	return false;
}

/* Before minutes of measurement: can a file be made where @file is to be? */
static bool is_folder_writable(const char *file)
{
	const char *slash = strrchr(file, '/');
	char folder[4096];
	int n = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file) + 1 : 1,
			 slash ? file : ".");

	if (n < 0 || (size_t)n >= sizeof folder) {
		errno = ENAMETOOLONG;
		return false;
	}
	return !access(folder, W_OK | X_OK);
}

const char *plot_problem(const char *file)
{
	if (!ends_in(file, ".svg") && !ends_in(file, ".png"))
		return "the name has to end in .svg or .png";
	if (!is_folder_writable(file))
		return strerror(errno);
	if (!have_gnuplot())
		return "gnuplot is not installed (Debian: gnuplot-nox)";
	return NULL;
}

static void write_plot_script(FILE *f, const char *file, const struct out_perf *row, size_t n)
{
	fprintf(f, "set terminal %s\n$rows << END\n",
		ends_in(file, ".svg") ? "svg size 900,400" : "png size 900,400");
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%llu %.9g %.9g %.9g\n", (unsigned long long)row[i].size,
			(double)(row[i].ops * row[i].size) / row[i].seconds / 0x1p20, row[i].p50,
			row[i].p99);
	fprintf(f,
		"END\nset multiplot layout 1,2 title '%s over %s, depth %u'\n"
		"set logscale x 2\nset xlabel 'octets in one operation'\n"
		"set format x '%%.0b %%B'\nset xtics rotate by -45\nset grid\nset key top left\n"
		"set ylabel 'MiB/s'\nset yrange [0:*]\n"
		"plot $rows using 1:2 with linespoints title 'bandwidth'\n"
		"set ylabel 'microseconds'\n"
		"plot $rows using 1:3 with linespoints title 'latency, median', "
		"$rows using 1:4 with linespoints title '99 %%'\nunset multiplot\n",
		row[0].op, row[0].transport, row[0].depth);
}

/* Whether it has its end: gnuplot does not say that a disk is full. */
static bool is_whole(int fd, const char *file)
{
	static const char svg[] = "</svg>";
	static const uint8_t png[] = { 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82 };
	uint8_t end[16];
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n = size < (off_t)sizeof end ? -1
					     : pread(fd, end, sizeof end, size - (off_t)sizeof end);

	if (n != sizeof end)
		return false;
	return ends_in(file, ".svg") ? memmem(end, sizeof end, svg, sizeof svg - 1)
				     : memmem(end, sizeof end, png, sizeof png);
}

/* Start gnuplot, which draws into @fd.  Return: where its script goes; NULL: there is none. */
static FILE *start_gnuplot(int fd, pid_t *pid)
{
	char name[] = "gnuplot", *argv[] = { name, NULL };
	posix_spawn_file_actions_t act;
	FILE *f = NULL;
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&act);
	if (!posix_spawn_file_actions_adddup2(&act, p[0], STDIN_FILENO) &&
	    !posix_spawn_file_actions_adddup2(&act, fd, STDOUT_FILENO) &&
	    !posix_spawnp(pid, name, &act, NULL, argv, environ))
		f = fdopen(p[1], "w");
	posix_spawn_file_actions_destroy(&act);
	close(p[0]);
	if (!f)
		close(p[1]);
	return f;
}

static int draw_plot(int fd, const char *file, const struct out_perf *row, size_t n)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	int status = 0;
	pid_t pid = -1;
	FILE *f;

	sigaction(SIGPIPE, &ignore, &before); /* it may end early */
	f = start_gnuplot(fd, &pid);
	if (f) {
		write_plot_script(f, file, row, n);
		fclose(f);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGPIPE, &before, NULL);
	return f && !status && is_whole(fd, file) ? 0 : -1;
}

int plot_draw(const char *file, const struct out_perf *row, size_t n)
{
	struct temp t;

	if (temp_open_path(&t, file, 0))
		return -1;
	if (draw_plot(t.fd, file, row, n)) {
		temp_abort(&t);
		errno = 0;
		return -1;
	}
	return temp_commit(&t, true, NULL);
}
