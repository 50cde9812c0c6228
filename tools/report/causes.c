/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/causes.h"
#include <string.h>

static const struct cause_words words[] = {
	[CAUSE_NONE] = { "none", "each for a reason of its own", "See the cases." },
	[CAUSE_ECHO] = { "echo", "this peer sends back the octets that it gets",
			 "It is an echo server, or a proxy in front of nothing, and does not speak "
			 "iWARP. Is that the right address and port?" },
	[CAUSE_STRANGER] = { "stranger", "this peer answers in another protocol than iWARP",
			     "An answer to the set-up begins with the 16 characters \"MPA ID Rep "
			     "Frame\". Is that the right address and port?" },
	[CAUSE_TLS] = { "tls", "this peer speaks TLS",
			"It answers the set-up with a record of TLS. If it speaks iWARP inside "
			"TLS, test "
			"it by a URI that begins with tls:// and with a certificate that it "
			"accepts. Or "
			"does another server listen on that port?" },
	[CAUSE_WRONG_SETUP] = { "wrong-setup", "this peer's own MPA Request or Reply is wrong",
				"Its revision is neither 1 nor 2, it has more than 512 octets of "
				"private data, or it is a Request where a Reply is due (RFC 5044 "
				"section 7.1, RFC 6581 section 9). The cases show which." },
	[CAUSE_PART_SETUP] = { "part-setup",
			       "this peer stops in the middle of its MPA Request or Reply",
			       "The first octets are right, and the rest does not come. Does it "
			       "write the whole message: 20 octets, and as many of private data as "
			       "these announce?" },
	[CAUSE_NOT_FPDU] = { "not-fpdu", "this peer sends no FPDUs after the set-up",
			     "The set-up is right. What comes after it has no header of DDP and "
			     "RDMAP where an FPDU has one, and no CRC. Each segment is sent as an "
			     "FPDU: its length in 2 octets, the segment, a pad and the CRC (RFC "
			     "5044 section 4). Or is it private data, of which the Reply announces "
			     "less than there is?" },
	[CAUSE_PART_FPDU] = { "part-fpdu", "this peer stops in the middle of an FPDU",
			      "It announces more octets than it sends. The length in front counts "
			      "the segment alone; a pad up to 4 octets and the CRC follow it (RFC "
			      "5044 section 4)." },
	[CAUSE_CRC_WRONG] = { "crc-wrong", "the checksum of this peer's own FPDUs is wrong",
			      "MPA uses CRC32c over the whole FPDU with its length, markers and "
			      "pad, "
			      "sent with the lowest octet first (RFC 5044 section 4.4). Every peer "
			      "that checks it ends the session." },
	[CAUSE_CRC_REFUSED] = { "crc-refused", "this peer finds good checksums wrong",
				"It ends sessions with \"MPA: CRC error\" though no CRC was wrong. "
				"It "
				"should compute CRC32c over the whole FPDU with its length, "
				"markers "
				"and pad, the lowest octet first (RFC 5044 section 4.4)." },
	[CAUSE_REJECTS] = { "rejects", "the application of this peer rejects the session",
			    "The stack answers as it should. Let its application accept, or change "
			    "what the application expects, and run again." },
	[CAUSE_SILENT_SETUP] = { "silent-setup", "this peer answers nothing to the set-up",
				 "It accepts a connection, is sent a request, and neither answers "
				 "nor closes. Does a program listen for iWARP there, over SCTP one "
				 "that names DDP at the set-up, and does it accept sessions?" },
	[CAUSE_SILENT_SESSION] = { "silent-session", "this peer answers nothing after the set-up",
				   "The session is set up, and then its stack neither answers a "
				   "message nor ends the session. For a message that breaks a rule "
				   "it "
				   "must send a Terminate and close; an RDMA Read of 0 octets it "
				   "must "
				   "answer." },
	[CAUSE_CLOSED_SETUP] = { "closed-setup", "this peer closes instead of answering the set-up",
				 "It ends the connection on a request for a session. A peer that "
				 "does "
				 "not want a session answers with a Reply that rejects it. Does a "
				 "program listen for iWARP there?" },
	[CAUSE_CLOSED_SESSION] = { "closed-session",
				   "this peer ends the session where an answer is due",
				   "No rule was broken, so the session should have gone on. Did "
				   "its program end? Its log may say." },
	[CAUSE_NO_WORDS] = { "no-terminate",
			     "this peer ends the session without the Terminate that is due",
			     "The session ends, as it must. But no Terminate says first which rule "
			     "was broken, so the other side reports a lost connection, and nobody "
			     "sees the reason (RFC 5040 section 7, RFC 5044 section 8)." },
	[CAUSE_GOES_ON] = { "goes-on", "this peer goes on where it has to end the session",
			    "It was sent what breaks a rule, and answered as if nothing were "
			    "wrong. It must "
			    "close the connection then. Does it check what it gets?" },
	[CAUSE_GONE] = { "gone", "this peer is no longer there",
			 "It was there when the run began. Has its program ended? The case before "
			 "the "
			 "first of these may be what it did not survive: run that one alone, with "
			 "--case." },
	[CAUSE_LINK_SILENT] = { "link-silent",
				"this node does not answer ARP requests or datagrams",
				"It was there when the run began. Has it ended or gone off the "
				"link? "
				"The case before the first of these may be what it did not "
				"survive." },
	[CAUSE_CM_SILENT] = { "connection-silent",
			      "this node answers nothing about connections, or on them",
			      "It answers ARP requests and takes connections, or is asked to make "
			      "one. Then a message about a connection (RFC 4755), or data on it, "
			      "has "
			      "no answer. Does its connection manager still run?" },
	[CAUSE_RESERVED] = { "reserved-bits",
			     "this peer sets reserved bits in its MPA Request or Reply",
			     "They are sent as 0 (RFC 5044 section 7.1.1); in revision 2 0x10 is "
			     "none of them (RFC 6581 "
			     "section 9). Does it copy the flags of the Request?" },
	[CAUSE_OTHER_WORDS] = { "other-terminate",
				"this peer ends the session with another Terminate than it should",
				"The session ends, as it must. Only the reason that the Terminate "
				"gives, or its form, is not the one of the RFC." },
};

_Static_assert(sizeof words / sizeof *words == CAUSES, "each cause has its words");

enum cause cause_of(const struct ddps_conform_result *r, const struct decode_found *found)
{
	static const enum cause by_stop[] = {
		[DDPS_CONFORM_STOP_SILENT_SETUP] = CAUSE_SILENT_SETUP,
		[DDPS_CONFORM_STOP_SILENT_SESSION] = CAUSE_SILENT_SESSION,
		[DDPS_CONFORM_STOP_CLOSED_SETUP] = CAUSE_CLOSED_SETUP,
		[DDPS_CONFORM_STOP_CLOSED_SESSION] = CAUSE_CLOSED_SESSION,
		[DDPS_CONFORM_STOP_WENT_ON] = CAUSE_GOES_ON,
		[DDPS_CONFORM_STOP_GONE] = CAUSE_GONE,
	};

	/* else it is the suite that did not read on */
	const bool read_on = r->stop && r->stop != DDPS_CONFORM_STOP_WENT_ON;

	if (r->c.wires == DDPS_CONFORM_IB)
		return r->stop == DDPS_CONFORM_STOP_SILENT_SETUP     ? CAUSE_LINK_SILENT
		       : r->stop == DDPS_CONFORM_STOP_SILENT_SESSION ? CAUSE_CM_SILENT
								     : CAUSE_NONE;
	if (found->echo)
		return CAUSE_ECHO;
	if (found->tls)
		return CAUSE_TLS;
	if (found->stranger)
		return CAUSE_STRANGER;
	if (found->wrong_setup)
		return CAUSE_WRONG_SETUP;
	if (read_on && found->part_setup)
		return CAUSE_PART_SETUP;
	if (found->not_fpdu)
		return CAUSE_NOT_FPDU;
	if (read_on && found->part_fpdu)
		return CAUSE_PART_FPDU;
	if (found->crc_wrong)
		return CAUSE_CRC_WRONG;
	if (found->crc_refused)
		return CAUSE_CRC_REFUSED;
	if (found->rejects)
		return CAUSE_REJECTS;
	if (r->stop == DDPS_CONFORM_STOP_CLOSED_SESSION && r->grade == DDPS_CONFORM_PASSES)
		return CAUSE_NO_WORDS;
	if (r->stop < sizeof by_stop / sizeof *by_stop && by_stop[r->stop])
		return by_stop[r->stop];
	if (found->reserved)
		return CAUSE_RESERVED;
	return strstr(r->why, "Terminate") ? CAUSE_OTHER_WORDS : CAUSE_NONE;
}

bool cause_refuses_all(enum cause c)
{
	return c == CAUSE_ECHO || c == CAUSE_STRANGER || c == CAUSE_TLS || c == CAUSE_WRONG_SETUP ||
	       c == CAUSE_PART_SETUP || c == CAUSE_SILENT_SETUP || c == CAUSE_CLOSED_SETUP;
}

const struct cause_words *cause_words(enum cause c)
{
	return &words[c];
}
