/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VIEW_COUNTERS_H
#define DDPS_VIEW_COUNTERS_H
/*
 * The counters of a port that move, and where their values are.  No function: the drop-in writes them, the view
 * reads them, sessctl run makes the files that have their names.
 *
 * ROOT/live, below the folder of the view, has for each process that shows the device
 *   PID.N       a socket: whoever connects gets one octet, when the next file is up to date
 *   PID.N.sum   its counters, in the order below, as uint64_t of this machine
 * and "ended", the sum of those of the processes that are gone.  Whoever adds to it removes what he has added,
 * both under an exclusive flock of "ended"; who reads has a shared one.
 */

/* Folder and name: those of the kernel's ports, and of its drivers for iWARP. */
#define VIEW_COUNTERS(X)                                                                           \
	X(counters, port_xmit_data) /* in units of 4 octets */                                     \
	X(counters, port_rcv_data)                                                                 \
	X(counters, port_xmit_packets)                                                             \
	X(counters, port_rcv_packets)                                                              \
	X(counters, unicast_xmit_packets)                                                          \
	X(counters, unicast_rcv_packets)                                                           \
	X(hw_counters, iwInRdmaReads)                                                              \
	X(hw_counters, iwInRdmaSends)                                                              \
	X(hw_counters, iwInRdmaWrites)                                                             \
	X(hw_counters, iwOutRdmaReads)                                                             \
	X(hw_counters, iwOutRdmaSends)                                                             \
	X(hw_counters, iwOutRdmaWrites)                                                            \
	X(hw_counters, out_of_buffer)

#define VIEW_COUNTER_ENUM(folder, name) VIEW_##name,
enum { VIEW_COUNTERS(VIEW_COUNTER_ENUM) VIEW_NCOUNTERS };

#define VIEW_LIVE  "live"
#define VIEW_SUM   ".sum"
#define VIEW_ENDED "ended"

#endif
