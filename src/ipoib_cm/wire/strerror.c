/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of errors: this library's own, so that whoever uses it links no other. */
#include "common/error_text.h"
#include <ddpsess/ipoib_cm.h>

const char *ddps_ipoib_strerror(int err)
{
	return ddps_error_text(err);
}
