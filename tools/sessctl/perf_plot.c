/* SPDX-License-Identifier: BSD-2-Clause */
/* A gnuplot script, through a pipe. */
#include "sessctl/perf_plot.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
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

const char *plot_problem(const char *file)
{
	if (!ends_in(file, ".svg") && !ends_in(file, ".png"))
		return "the name has to end in .svg or .png";
	if (!have_gnuplot())
		return "gnuplot is not installed (Debian: gnuplot-nox)";
	return NULL;
}

static void script(FILE *f, const char *file, const struct out_perf *row, size_t n)
{
	/* in single quotes only the quote itself has a meaning, and two stand for one */
	fprintf(f, "set terminal %s\nset output '",
		ends_in(file, ".svg") ? "svg size 900,400" : "png size 900,400");
	for (const char *p = file; *p; p++)
		fprintf(f, *p == '\'' ? "''" : "%c", *p);
	fprintf(f, "'\n$rows << END\n");
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%llu %.9g %.9g %.9g\n", (unsigned long long)row[i].size,
			(double)(row[i].ops * row[i].size) / row[i].seconds / 1e6, row[i].p50,
			row[i].p99);
	fprintf(f,
		"END\nset multiplot layout 1,2 title '%s over %s, depth %u'\n"
		"set logscale x 2\nset xlabel 'octets'\nset grid\nset key top left\n"
		"set ylabel 'MB/s'\nset yrange [0:*]\n"
		"plot $rows using 1:2 with linespoints title 'bandwidth'\n"
		"set ylabel 'us'\n"
		"plot $rows using 1:3 with linespoints title 'latency, median', "
		"$rows using 1:4 with linespoints title '99 %%'\nunset multiplot\n",
		row[0].op, row[0].transport, row[0].depth);
}

/* Whether it has its end: gnuplot does not say that a disk is full. */
static bool is_whole(const char *file)
{
	static const char svg[] = "</svg>";
	static const uint8_t png[] = { 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82 };
	uint8_t end[16];
	FILE *f = fopen(file, "rbe");
	size_t n = 0;

	if (!f)
		return false;
	if (!fseek(f, -(long)sizeof end, SEEK_END))
		n = fread(end, 1, sizeof end, f);
	fclose(f);
	return ends_in(file, ".svg") ? memmem(end, n, svg, sizeof svg - 1)
				     : memmem(end, n, png, sizeof png);
}

int plot_draw(const char *file, const struct out_perf *row, size_t n)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	FILE *f;
	int bad;

	sigaction(SIGPIPE, &ignore, &before); /* it may end early */
	f = popen("gnuplot", "we");
	bad = !f;
	if (f) {
		script(f, file, row, n);
		bad = pclose(f) != 0;
	}
	sigaction(SIGPIPE, &before, NULL);
	if (bad || is_whole(file))
		return bad ? -1 : 0;
	unlink(file);
	return -1;
}
