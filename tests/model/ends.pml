/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that can happen to two ends, in every order, with the library's own tables.  What the ends are,
 * what lies between them and what is claimed is in a header that run.sh names ENDS: sd_session.h,
 * mpa_start.h.
 */
c_decl {
\#include "ends.h"
}
c_state "struct w W" "Global"

byte bad, x, ev, stall;
bit done;
#ifndef SOME
#define SOME 9
#endif
int may[2]; /* bits: what may happen at either end */

#define LOOK c_code { look(&now.W, now.may); now.bad = now.W.bad; now.done = all_done(&now.W); }

active proctype world()
{
	d_step {
		c_code { begin(&now.W); };
		LOOK
	}
	do
	:: may[0] != 0 || may[1] != 0 ->
		atomic {
			if
			:: may[0] != 0 -> x = 0
			:: may[1] != 0 -> x = 1
			fi;
			ev = 0;
			do
			:: (may[x] >> ev) & 1 -> break
			:: (may[x] >> (ev + 1)) != 0 -> ev++
			od;
			if
			:: stall = 0
			:: ev >= SOME -> stall = 1 /* the same in another way */
			fi;
			c_code { happens(&now.W, now.x, now.ev, now.stall);
				 Printf("%s\n", said(&now.W, now.x, now.ev, now.stall)); };
			LOOK;
			assert(bad == 0);
			x = 0;
			ev = 0;
			stall = 0
		}
	:: else -> break
	od;
	assert(done)
}
