/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds and loads libddpsess-tls.so. */
#include "secure/plugin.h"
#include "common/system/lock.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DDPS_LIBDIR
#define DDPS_LIBDIR "/usr/local/lib"
#endif

static struct ddps_mutex lock = DDPS_MUTEX(DDPS_LOCK_PLUGIN);
static const struct ddps_tls_plugin *loaded; /* of this process, until its end */

/* The path of the file that @at was mapped from.  The kernel's word: the loader's is relative where the
 * program's name, or LD_LIBRARY_PATH, was, and then would be looked up in any folder. */
static bool find_mapped_file(const void *at, char *path, size_t size)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char *line = NULL, *name;
	size_t len = 0;
	bool found = false;

	while (f && !found && getline(&line, &len, f) > 0) {
		name = strchr(line, '/');
		if (!name || sscanf(line, "%lx-%lx", &from, &to) != 2 || (uintptr_t)at < from ||
		    (uintptr_t)at >= to)
			continue;
		name[strcspn(name, "\n")] = 0;
		found = (size_t)snprintf(path, size, "%s", name) < size;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* The folder of what contains this code: a library, or the program itself.  "": it is not known. */
static void get_own_folder(char *dir, size_t size)
{
	char *slash;

	if (!find_mapped_file((const void *)(uintptr_t)get_own_folder, dir, size))
		*dir = 0;
	slash = strrchr(dir, '/');
	if (slash)
		*slash = 0;
}

/* The first of the places near @dir, and of LIBDIR, that has one. */
static bool find_plugin_file(const char *dir, char *path, size_t size)
{
	/* a build tree and LIBDIR; ddpsess/verbs; where all is in one; bin/ of the bundle and of another
	 * prefix */
	static const char *const near[] = { "/ddpsess/" DDPS_TLS_FILE, "/../" DDPS_TLS_FILE,
					    "/" DDPS_TLS_FILE, "/../lib/ddpsess/" DDPS_TLS_FILE };

	for (size_t i = 0; *dir && i < sizeof near / sizeof *near; i++) {
		snprintf(path, size, "%s%s", dir, near[i]);
		if (!access(path, F_OK))
			return true;
	}
	snprintf(path, size, "%s", DDPS_LIBDIR "/ddpsess/" DDPS_TLS_FILE);
	return !access(path, F_OK);
}

/* Why not goes to @said. */
static void *open_library(char *said, size_t said_len)
{
	const char *name = secure_getenv("DDPSESS_TLS_LIBRARY"), *text;
	char dir[PATH_MAX], path[PATH_MAX + 64];
	void *handle;

	get_own_folder(dir, sizeof dir);
	if (!name && !find_plugin_file(dir, path, sizeof path)) {
		snprintf(said, said_len, "it is neither near %.60s nor in %.60s", dir,
			 DDPS_LIBDIR "/ddpsess");
		return NULL;
	}
	handle = dlopen(name ? name : path, RTLD_NOW | RTLD_LOCAL);
	text = handle ? NULL : dlerror();
	snprintf(said, said_len, "%s", text ? text : "");
	return handle;
}

static const struct ddps_tls_plugin *load_plugin(char *why, size_t why_len)
{
	char said[400];
	void *handle = open_library(said, sizeof said);
	const struct ddps_tls_plugin *p;

	if (!handle) {
		snprintf(why, why_len,
			 DDPS_TLS_FILE
			 " cannot be loaded (%.170s): install it, and GnuTLS (libgnutls30)",
			 said);
		return NULL;
	}
	p = dlsym(handle, DDPS_TLS_SYMBOL);
	if (p && p->abi == DDPS_TLS_ABI)
		return p;
	snprintf(why, why_len,
		 DDPS_TLS_FILE
		 " is of another release: install that of this one, or remove the other");
	dlclose(handle);
	return NULL;
}

const struct ddps_tls_plugin *ddps_tls_load(char *why, size_t why_len)
{
	const struct ddps_tls_plugin *p;

	ddps_lock(&lock);
	if (!loaded)
		loaded = load_plugin(why, why_len);
	p = loaded;
	ddps_unlock(&lock);
	return p;
}
