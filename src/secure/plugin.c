/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds and loads libddpsess-tls.so. */
#include "secure/plugin.h"
#include "common/system/lock.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DDPS_LIBDIR
#define DDPS_LIBDIR "/usr/local/lib"
#endif

static struct ddps_mutex lock = DDPS_MUTEX(DDPS_LOCK_PLUGIN);
static const struct ddps_tls_plugin *loaded; /* of this process, until its end */

/* The folder of what contains this code: a library, or the program itself. */
static void get_own_folder(char *dir, size_t size)
{
	Dl_info info;
	char *slash;

	if (dladdr(&loaded, &info) && info.dli_fname && strchr(info.dli_fname, '/')) {
		snprintf(dir, size, "%s", info.dli_fname);
	} else {
		ssize_t n = readlink("/proc/self/exe", dir, size - 1);

		dir[n > 0 ? n : 0] = 0;
	}
	slash = strrchr(dir, '/');
	if (slash)
		*slash = 0;
	else
		dir[0] = 0;
}

/* What dlerror() says of the last library that is there and could not be loaded goes to @said. */
static void *open_library(char *said, size_t said_len)
{
	/* behind the own folder: a build tree and LIBDIR; ddpsess/verbs; where all is in one; bin/ of the
	 * bundle and of another prefix */
	static const char *const near[] = { "/ddpsess/" DDPS_TLS_FILE, "/../" DDPS_TLS_FILE,
					    "/" DDPS_TLS_FILE, "/../lib/ddpsess/" DDPS_TLS_FILE };
	const char *named = secure_getenv("DDPSESS_TLS_LIBRARY");
	char dir[PATH_MAX], path[PATH_MAX + 64];
	void *handle = NULL;

	if (named)
		handle = dlopen(named, RTLD_NOW | RTLD_LOCAL);
	get_own_folder(dir, sizeof dir);
	for (size_t i = 0; !named && !handle && i <= sizeof near / sizeof *near; i++) {
		if (i < sizeof near / sizeof *near)
			snprintf(path, sizeof path, "%s%s", dir, near[i]);
		else
			snprintf(path, sizeof path, "%s/ddpsess/%s", DDPS_LIBDIR, DDPS_TLS_FILE);
		if (path[0] == '/' && !access(path, F_OK))
			handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		else
			continue;
		if (!handle)
			break;
	}
	if (!handle) {
		const char *text = dlerror();

		snprintf(said, said_len, "%s", text ? text : "not installed");
	}
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
			 " cannot be loaded (%.120s): install it, and GnuTLS (libgnutls30)",
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
