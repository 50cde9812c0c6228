/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_H
#define DDPSESS_H
/* Everything for users of RDMA sessions. */
#include <ddpsess/advert.h>
#include <ddpsess/capture.h>
#include <ddpsess/err.h>
#include <ddpsess/secure.h>
#include <ddpsess/session.h>
#include <ddpsess/stats.h>
#include <ddpsess/watch.h>
#include <ddpsess/wr.h>
#include <ddpsess/version.h>
#endif
