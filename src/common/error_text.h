/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_ERROR_TEXT_H
#define DDPS_ERROR_TEXT_H
/* Texts of DDPS_E_ codes, for each library that shows them: none is linked for the sake of another. */
#include <ddpsess/err_codes.h>

static inline const char *ddps_error_text(int err)
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

#endif
