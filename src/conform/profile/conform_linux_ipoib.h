/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_LINUX_IPOIB_H
#define SESSCTL_CONFORM_LINUX_IPOIB_H
/*
 * Where Linux's ib_ipoib and ib_cm (kernel 6.1) deviate, as a profile: what case conform of
 * tests/interop-ipoib found.  docs/ipoib.md says what was seen of each.
 */

static const char conform_linux_ipoib[] =
	"link-traps harmless: does not subscribe to the creation and deletion of groups\n"
	"cm-service-id listens on 10... only: REJ 8 for 01...\n"
	"cm-rej-private harmless: sends REJs without private data\n"
	"cm-private-missing harmless: does not read the private data of a REQ\n"
	"cm-mtu-small harmless: does not read the private data of a REQ\n"
	"cm-rep-count answers no DREQ once its REPs have gone without an RTU\n"
	"req-service-id asks for service ID 10...\n"
	"rtu-private harmless: sends RTUs without private data\n"
	"req-refused sends no datagrams to who says that it takes connections\n"
	"rep-mtu-small harmless: takes a REP with a Receive MTU above 4\n"
	"rep-rej-private harmless: sends REJs without private data\n"
	"end-late-req takes a REQ that comes again after the end for a new one\n"
	"end-rej harmless: answers a DREQ behind a REJ with the transaction ID of the REQ\n"
	"end-own-dreq-again sends a DREQ once and forgets the connection\n"
	"cross-smaller has no rule for crossed REQs: accepts every one\n"
	"cross-smaller-private has no rule for crossed REQs: accepts every one\n"
	"cross-smaller-again has no rule for crossed REQs: accepts every one\n"
	"cross-flags has no rule for crossed REQs: accepts every one\n"
	"cross-gid-smaller has no rule for crossed REQs: accepts every one\n"
	"cross-behind-mra has no rule for crossed REQs: accepts every one\n"
	"cross-one sends only on connections that it has asked for\n"
	"rc-nd-stays harmless: sends neighbour advertisements on connections\n"
	"short-req harmless: does not look at the length of a MAD\n"
	"short-rep harmless: does not look at the length of a MAD\n"
	"short-rej harmless: may have an effect: the length of a MAD is ignored\n"
	"short-dreq harmless: does not look at the length of a MAD\n";

#endif
