/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VIEW_FIXTURE_H
#define DDPS_VIEW_FIXTURE_H
/* The preload library itself, without being preloaded, and the folder of its view. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THEIRS(f) ((__typeof__(&f))dlsym(library, #f))

static void *library;

/* It lies next to this program.  Before this, DDPSESS_VIEW is set. */
static inline void load_view(void)
{
	char path[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

	cr_assert_gt(n, 0);
	path[n] = 0;
	slash = strrchr(path, '/');
	strcpy(slash, "/ddpsess/libddpsess-view.so");
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cr_assert(library, "%s", dlerror());
}

/* @tmp ends in XXXXXX. */
static inline void open_view(char *tmp)
{
	cr_assert(mkdtemp(tmp));
	setenv("DDPSESS_VIEW", tmp, 1);
	load_view();
}

static inline void remove_view(const char *tmp)
{
	char command[PATH_MAX];

	snprintf(command, sizeof command, "rm -r %s", tmp);
	cr_expect_eq(system(command), 0);
}

#endif
