/* SPDX-License-Identifier: BSD-2-Clause */
/* libibumad, loaded when it is wanted. */
#include "ipoib_cm/ports/port_umad_lib.h"
#include <ddpsess/err.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libibumad.so.3"

int ddps_umad_lib_load(struct ddps_umad_lib *lib, char *why, size_t why_len)
{
	void *at;

	lib->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle) {
		snprintf(why, why_len, "%s (Debian package libibumad3) cannot be loaded: %s",
			 LIBRARY, dlerror());
		return DDPS_E_UNSUPPORTED;
	}
/* dlsym() gives an object pointer; copying its octets is what POSIX has in mind for functions. */
#define DDPS_X(name)                                                                               \
	at = dlsym(lib->handle, #name);                                                            \
	if (!at)                                                                                   \
		goto missing;                                                                      \
	memcpy(&lib->name, &at, sizeof(at));
	DDPS_UMAD_FUNCTIONS(DDPS_X)
#undef DDPS_X
	return 0;
missing:
	snprintf(why, why_len, "%s is not what it should be: %s", LIBRARY, dlerror());
	ddps_umad_lib_unload(lib);
	return DDPS_E_UNSUPPORTED;
}

void ddps_umad_lib_unload(struct ddps_umad_lib *lib)
{
	if (lib->handle)
		dlclose(lib->handle);
	lib->handle = NULL;
}
