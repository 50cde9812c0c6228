/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of errors: this library's own, so that whoever uses it links no other. */
#include <ddpsess/ipoib_cm.h>

const char *ddps_ipoib_strerror(int err)
{
	switch (err) {
	case DDPS_OK:
		return "success";
#define DDPS_X(name, value, text)                                                                  \
	case value:                                                                                \
		return text;
		DDPS_ERRORS(DDPS_X)
#undef DDPS_X
	default:
		return "unknown error";
	}
}
