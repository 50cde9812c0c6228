/* SPDX-License-Identifier: BSD-2-Clause */
#include "conformance/conform.h"
const struct cf_case cf_cases_rdmap_work[] = { { 0 } };
