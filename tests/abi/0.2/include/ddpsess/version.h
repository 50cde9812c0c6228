/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_VERSION_H
#define DDPSESS_VERSION_H
#include <ddpsess/err.h>

#define DDPS_VERSION_STRING "0.2.0"

#ifdef __cplusplus
extern "C" {
#endif

/** ddps_version - the version of the library that is loaded, "MAJOR.MINOR.PATCH" */
DDPS_API const char *ddps_version(void);

/**
 * ddps_has_backend - whether an SCTP backend can be used on this machine, now
 * @name:	"native" or "kernel"
 *
 * Return: 1, 0, or DDPS_E_INVAL for an unknown name.
 */
DDPS_API int ddps_has_backend(const char *name);

#ifdef __cplusplus
}
#endif
#endif
