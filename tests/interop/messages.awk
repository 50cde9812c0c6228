# SPDX-License-Identifier: BSD-2-Clause
# tshark's PDML of a capture to a list of RDMAP messages, in the words of rping_peer -t, each
# behind the sender's TCP port:
#	PORT send LEN | write STAG TO LEN | response STAG TO LEN | opcode HEX
#	PORT read SINK-STAG SINK-TO SOURCE-STAG SOURCE-TO LEN

function header_of(code) {
	return code == "0" || code == "2" ? 14 : 18
}

# The segment whose fields were read: the last one of its message shows the message.
function segment() {
	if (opcode == "")
		return
	if (!(port in len)) {
		len[port] = 0
		at[port] = stag " " to
	}
	len[port] += size - header_of(opcode)
	if (last) {
		if (opcode == "0" || opcode == "2")
			print port, opcode == "0" ? "write" : "response", at[port],
			      sprintf("%x", len[port])
		else if (opcode == "1")
			print port, "read", read, bytes
		else if (opcode == "3")
			print port, "send", sprintf("%x", len[port])
		else
			print port, "opcode", opcode
		delete len[port]
	}
	opcode = ""
}

function attribute(key) {
	if (!match($0, " " key "=\"[^\"]*\""))
		return ""
	return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
}

/<packet>/ {
	segment()
}
/<field name=/ {
	name = attribute("name")
	value = attribute("value")
}
name == "tcp.srcport" {
	port = attribute("show")
}
name == "iwarp_mpa.ulpdulength" {
	segment()
	size = attribute("show")
}
name == "iwarp_ddp.last_flag" {
	last = value == "1"
}
name == "iwarp_ddp.stag" {
	stag = value
}
name == "iwarp_ddp.tagged_offset" {
	to = value
}
name == "iwarp_rdma.opcode" {
	opcode = value
}
name == "iwarp_rdma.sinkstag" {
	read = value
}
name ~ /^iwarp_rdma\.(sinkto|srcstag|srcto)$/ {
	read = read " " value
}
name == "iwarp_rdma.rdmardsz" {
	bytes = value
	sub(/^0+/, "", bytes)
}
{
	name = ""
}
END {
	segment()
}
