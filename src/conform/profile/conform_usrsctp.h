/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_USRSCTP_H
#define SESSCTL_CONFORM_USRSCTP_H
/*
 * Where usrsctp (0.9.5, as Debian 12 has it) deviates from RFC 9260, as a profile: what the cases of
 * SCTP itself found in both roles (make conform-usrsctp).  What begins with "may" is not seen in
 * each run.  With our test peer above it, a restart is the end of the association.
 */

static const char conform_usrsctp[] =
	"assoc-init answers an INIT of 20 octets by an INIT ACK of 352\n"
	"assoc-init-tag-0 passes: aborts under tag 0 what offers tag 0\n"
	"assoc-init-bundled passes: aborts an INIT in company\n"
	"assoc-cookie-bad answers a changed cookie: by COOKIE ACK, or as a stale one\n"
	"assoc-tag harmless: answers SHUTDOWN ACK under a wrong tag by SHUTDOWN COMPLETE\n"
	"assoc-abort-behind is not ended by an ABORT with the T bit behind a HEARTBEAT, which it "
	"answers\n"
	"assoc-strange harmless: answers an ABORT out of the blue that stands behind DATA\n"
	"assoc-unknown-chunks harmless: knows I-DATA and aborts, since that was not negotiated\n"
	"assoc-moved aborts a HEARTBEAT from another UDP port\n"
	"assoc-heartbeat leaves a large HEARTBEAT unanswered\n"
	"assoc-shutdown-again harmless: may repeat SHUTDOWN ACK sooner than after the least RTO\n"
	"assoc-restart harmless: may be the end only after the next message\n"
	"assoc-restart-addresses takes a restart that brings a new address\n"
	"assoc-restart-wrong passes: aborts a restart with tag 0 under tag 0\n"
	"assoc-restart-owed harmless: may be the end only after the next message\n"
	"assoc-restart-shutdown harmless: reports that it is shutting down, under the new tags\n"
	"assoc-i-ack-os-0 passes: reflects the tag in its ABORT\n"
	"assoc-i-ack-mis-0 passes: reflects the tag in its ABORT\n"
	"assoc-i-ack-window passes: reflects the tag in its ABORT\n"
	"assoc-i-ack-host-name passes: reflects the tag in its ABORT\n"
	"assoc-i-ack-no-cookie passes: reflects the tag in its ABORT\n"
	"assoc-i-ack-unknown harmless: names each parameter in a cause of its own\n"
	"assoc-i-ack-twice aborts, of an INIT ACK out of turn that is wrong\n"
	"assoc-i-early aborts DATA that comes during set-up behind ABORTs with a wrong tag\n"
	"assoc-i-again harmless: repeats its INIT after more than two seconds\n"
	"assoc-i-crossing-unfinished harmless: repeats its INIT after more than two seconds\n"
	"assoc-i-crossing-addresses takes a crossing INIT that brings a new address\n"
	"assoc-i-tag harmless: answers SHUTDOWN ACK under a wrong tag by SHUTDOWN COMPLETE\n"
	"assoc-i-abort-behind is not ended by an ABORT with the T bit behind a HEARTBEAT, which it "
	"answers\n"
	"assoc-i-unknown-chunks harmless: knows I-DATA and aborts, since that was not negotiated\n"
	"assoc-i-moved does not answer a HEARTBEAT from another UDP port\n"
	"assoc-i-heartbeat leaves a large HEARTBEAT unanswered\n"
	"assoc-i-restart harmless: may be the end only after the next message\n"
	"assoc-i-restart-addresses takes a restart that brings a new address\n"
	"assoc-i-restart-wrong passes: aborts a restart with tag 0 under tag 0\n"
	"assoc-i-restart-owed harmless: may be the end only after the next message\n"
	"assoc-i-restart-shutdown harmless: reports that it is shutting down, under the new tags\n";

#endif
