/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/system/lock.h"

__thread struct ddps_held ddps_held;
