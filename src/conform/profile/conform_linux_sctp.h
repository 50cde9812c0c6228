/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_LINUX_SCTP_H
#define SESSCTL_CONFORM_LINUX_SCTP_H
/*
 * Where Linux's SCTP (kernel 6.1) deviates from RFC 9260, as a profile: what the cases conform-sctp-* of
 * tests/interop found, with sctp_hold as its user.
 */

static const char conform_linux_sctp[] =
	"assoc-init-tag-0 passes: aborts under tag 0 what offers tag 0\n"
	"assoc-init-tag passes: aborts an INIT under a tag\n"
	"assoc-cookie-bad harmless: takes a cookie that is changed between its HMAC and what that "
	"covers\n"
	"assoc-abort-behind is not ended by an ABORT with the T bit behind a HEARTBEAT\n"
	"assoc-strange harmless: does not answer an INIT ACK out of the blue\n"
	"assoc-unknown-chunks harmless: knows ECNE and aborts, since it is too short\n"
	"assoc-lengths harmless: aborts a chunk of length 0\n"
	"assoc-padding harmless: aborts DATA without its padding at the end of a packet\n"
	"assoc-error-causes harmless: aborts an ERROR without a cause\n"
	"assoc-gaps-many harmless: reports 16 holes at most\n"
	"assoc-sack-nonsense harmless: aborts a SACK that is too short\n"
	"assoc-heartbeat-forged harmless: aborts a HEARTBEAT ACK that is shorter than its own "
	"would be\n"
	"assoc-complete-tag harmless: aborts a SHUTDOWN COMPLETE in company\n"
	"assoc-abort-odd harmless: is not ended by an ABORT whose cause is longer than its chunk\n"
	"assoc-restart-wrong passes: aborts a restart with tag 0 under tag 0\n"
	"assoc-i-ack-tag-0 passes: aborts under tag 0 what offers tag 0\n"
	"assoc-i-ack-unknown harmless: names each parameter in a cause of its own\n"
	"assoc-i-again harmless: repeats its INIT after three seconds\n"
	"assoc-i-crossing does not report to its user the adaptation indication of an INIT that "
	"crosses its own\n"
	"assoc-i-abort-behind is not ended by an ABORT with the T bit behind a HEARTBEAT\n"
	"assoc-i-unknown-chunks harmless: knows ECNE and aborts, since it is too short\n"
	"assoc-i-lengths harmless: aborts a chunk of length 0\n"
	"assoc-i-padding harmless: aborts DATA without its padding at the end of a packet\n"
	"assoc-i-error-causes harmless: aborts an ERROR without a cause\n"
	"assoc-i-gaps-many harmless: reports 16 holes at most\n"
	"assoc-i-sack-nonsense harmless: aborts a SACK that is too short\n"
	"assoc-i-heartbeat-forged harmless: aborts a HEARTBEAT ACK that is shorter than its own "
	"would be\n"
	"assoc-i-complete-tag harmless: aborts a SHUTDOWN COMPLETE in company\n"
	"assoc-i-abort-odd harmless: is not ended by an ABORT whose cause is longer than its "
	"chunk\n"
	"assoc-i-restart-wrong passes: aborts a restart with tag 0 under tag 0\n";

#endif
