-- SPDX-License-Identifier: BSD-2-Clause
-- What Wireshark and tshark do not decode by themselves of RDMA sessions:
--   DDP and RDMAP over SCTP (RFC 5043), with the enhanced session messages of RFC 6581
--   the word of RFC 6581 in MPA and in those messages: IRD, ORD and flags
--   what a Terminate message means (RFC 5040 4.8, registry of RFC 6580)
--   names of the opcodes of RFC 7306
--   the messages that sessctl's services exchange
--   the private data of IP over InfiniBand in CM messages (RFC 4755)
-- DDP and RDMAP headers themselves are left to Wireshark's own dissector on both wires, so the fields
-- iwarp_ddp.* and iwarp_rdma.* can be used in filters everywhere.

local PPID_SEGMENT, PPID_CONTROL = 16, 17

-- ---- small helpers ----

local function named(table, value)
	return table[value] or "unassigned"
end

-- A field that Wireshark knows, or nil: a release may name it otherwise.
local function field(name)
	local ok, f = pcall(Field.new, name)
	return ok and f or nil
end

local function all(f)
	return f and { f() } or {}
end

-- The octets behind a field; nil where the field has none.
local function octets(info)
	local ok, range = pcall(function() return info.range end)
	return ok and range and range:len() > 0 and range or nil
end

-- The same for both directions.
local function conversation(pinfo)
	local a = tostring(pinfo.src) .. "|" .. pinfo.src_port
	local b = tostring(pinfo.dst) .. "|" .. pinfo.dst_port
	return a < b and a .. "|" .. b or b .. "|" .. a
end

-- ---- set-up: the word of RFC 6581 ----

local setup = Proto("rdma_setup", "RDMA Connection Establishment (RFC 6581)")
local LEFT_TO_ULP = 0x3fff
setup.fields = {
	ProtoField.bool("rdma_setup.peer_to_peer", "Peer-to-peer model (A)", 16, nil, 0x8000),
	ProtoField.bool("rdma_setup.rtr_send", "RTR by zero-length Send (B)", 16, nil, 0x4000),
	ProtoField.uint16("rdma_setup.ird", "IRD", base.DEC, nil, 0x3fff),
	ProtoField.bool("rdma_setup.rtr_write", "RTR by zero-length RDMA Write (C)", 16, nil, 0x8000),
	ProtoField.bool("rdma_setup.rtr_read", "RTR by zero-length RDMA Read (D)", 16, nil, 0x4000),
	ProtoField.uint16("rdma_setup.ord", "ORD", base.DEC, nil, 0x3fff),
	ProtoField.bytes("rdma_setup.private", "Private data of the application"),
	ProtoField.none("rdma_setup.short", "Too short for the word of RFC 6581"),
}
local s_model, s_send, s_ird, s_write, s_read, s_ord, s_private, s_short = table.unpack(setup.fields)

local function count(value)
	return value == LEFT_TO_ULP and "ULP" or tostring(value)
end

-- @range begins with the word; the application's private data follows.
local function add_word(range, tree)
	local sub = tree:add(setup, range)
	if range:len() < 4 then
		sub:add(s_short, range)
		sub:append_text(", too short")
		return
	end
	local low, high = range(0, 2), range(2, 2)
	sub:add(s_model, low)
	sub:add(s_send, low)
	sub:add(s_ird, low)
	sub:add(s_write, high)
	sub:add(s_read, high)
	sub:add(s_ord, high)
	if range:len() > 4 then
		sub:add(s_private, range(4))
	end
	sub:append_text(", IRD " .. count(low:bitfield(2, 14)) .. ", ORD " .. count(high:bitfield(2, 14)) ..
		(low:bitfield(0, 1) == 1 and ", peer-to-peer" or ", client-server"))
end

-- ---- Terminate (RFC 5040 4.8, RFC 6580) ----

local term = Proto("rdmap_terminate", "RDMAP Terminate, what it means")
local layers = { [0] = "RDMAP", [1] = "DDP", [2] = "MPA" }
local meanings = {
	[0x0100] = "remote protection: invalid STag", [0x0101] = "remote protection: base or bounds",
	[0x0102] = "remote protection: access rights",
	[0x0103] = "remote protection: STag of another stream",
	[0x0104] = "remote protection: Tagged Offset wraps",
	[0x0109] = "remote protection: STag cannot be invalidated",
	[0x01ff] = "remote protection: unspecified",
	[0x0205] = "remote operation: invalid RDMAP version", [0x0206] = "remote operation: unexpected opcode",
	[0x0207] = "remote operation: catastrophic, this stream",
	[0x0208] = "remote operation: catastrophic, all streams",
	[0x0209] = "remote operation: STag cannot be invalidated",
	[0x02ff] = "remote operation: unspecified",
	[0x1000] = "local catastrophic",
	[0x1100] = "tagged buffer: invalid STag", [0x1101] = "tagged buffer: base or bounds",
	[0x1102] = "tagged buffer: STag of another stream", [0x1103] = "tagged buffer: Tagged Offset wraps",
	[0x1104] = "tagged buffer: invalid DDP version",
	[0x1201] = "untagged buffer: invalid queue number", [0x1202] = "untagged buffer: no buffer for the MSN",
	[0x1203] = "untagged buffer: MSN out of range", [0x1204] = "untagged buffer: invalid message offset",
	[0x1205] = "untagged buffer: message too long", [0x1206] = "untagged buffer: invalid DDP version",
	[0x2001] = "connection closed, terminated or lost", [0x2002] = "CRC error",
	[0x2003] = "marker and ULPDU length do not match", [0x2004] = "invalid Request or Reply frame",
	[0x2005] = "local catastrophic (RFC 6581)", [0x2006] = "insufficient IRD resources (RFC 6581)",
	[0x2007] = "no matching RTR option (RFC 6581)",
}
local t_layer = ProtoField.uint8("rdmap_terminate.layer", "Layer", base.DEC, layers, 0xf0)
local t_type = ProtoField.uint8("rdmap_terminate.type", "Error type", base.DEC, nil, 0x0f)
local t_code = ProtoField.uint8("rdmap_terminate.code", "Error code", base.HEX)
local t_meaning = ProtoField.string("rdmap_terminate.meaning", "Meaning")
local t_m = ProtoField.bool("rdmap_terminate.m", "Segment length follows (M)", 8, nil, 0x80)
local t_d = ProtoField.bool("rdmap_terminate.d", "DDP header follows (D)", 8, nil, 0x40)
local t_r = ProtoField.bool("rdmap_terminate.r", "Read Request header follows (R)", 8, nil, 0x20)
local t_length = ProtoField.uint16("rdmap_terminate.segment_length", "Length of the segment at fault")
local t_ddp = ProtoField.bytes("rdmap_terminate.ddp_header", "DDP header of the segment at fault")
local t_opcode = ProtoField.uint8("rdmap_terminate.opcode", "Its opcode", base.HEX, nil, 0x0f)
local t_stag = ProtoField.uint32("rdmap_terminate.stag", "Its STag", base.HEX)
local t_to = ProtoField.uint64("rdmap_terminate.to", "Its Tagged Offset", base.HEX)
local t_qn = ProtoField.uint32("rdmap_terminate.qn", "Its queue number")
local t_msn = ProtoField.uint32("rdmap_terminate.msn", "Its MSN")
local t_mo = ProtoField.uint32("rdmap_terminate.mo", "Its message offset")
local t_read = ProtoField.bytes("rdmap_terminate.read_header", "Read Request header at fault")
local t_src_stag = ProtoField.uint32("rdmap_terminate.source_stag", "Its source STag", base.HEX)
local t_src_to = ProtoField.uint64("rdmap_terminate.source_to", "Its source Tagged Offset", base.HEX)
local t_size = ProtoField.uint32("rdmap_terminate.read_size", "Its size")
local t_short = ProtoExpert.new("rdmap_terminate.short", "Terminate shorter than its control bits say",
	expert.group.PROTOCOL, expert.severity.WARN)
term.fields = { t_layer, t_type, t_code, t_meaning, t_m, t_d, t_r, t_length, t_ddp, t_opcode, t_stag,
	t_to, t_qn, t_msn, t_mo, t_read, t_src_stag, t_src_to, t_size }
term.experts = { t_short }

local f_term = field("iwarp_rdma.term_ctrl")

local function meaning_of(value)
	if math.floor(value / 256) == 0x00 then
		return "local catastrophic" -- whatever the code
	end
	return named(meanings, value)
end

-- Layer, type and code are the first two octets of @range.
local function add_meaning(range, pinfo, tree)
	local value = range(0, 2):uint()
	local triple = string.format("%d/%d/%02x", math.floor(value / 4096), math.floor(value / 256) % 16,
		value % 256)
	local sub = tree:add(term, range)
	sub:add(t_layer, range(0, 1))
	sub:add(t_type, range(0, 1))
	sub:add(t_code, range(1, 1))
	sub:add(t_meaning, range(0, 2), meaning_of(value)):set_generated()
	sub:append_text(": " .. triple .. ", " .. meaning_of(value))
	pinfo.cols.info:append(" [" .. triple .. " " .. meaning_of(value) .. "]")
	return sub
end

local function add_ddp_header(range, tree)
	local sub = tree:add(t_ddp, range)
	sub:add(t_opcode, range(1, 1))
	if range:len() == 14 then
		sub:add(t_stag, range(2, 4))
		sub:add(t_to, range(6, 8))
	else
		sub:add(t_qn, range(6, 4))
		sub:add(t_msn, range(10, 4))
		sub:add(t_mo, range(14, 4))
	end
end

-- @range: what follows the DDP header.  The headers at its end are there as its bits say.
local function add_terminate(range, pinfo, tree)
	local sub = add_meaning(range(0, math.min(4, range:len())), pinfo, tree)
	if range:len() < 4 then
		sub:add_proto_expert_info(t_short)
		return
	end
	local bits, at = range(2, 1), 4
	local function take(len)
		if range:len() < at + len then
			sub:add_proto_expert_info(t_short)
			return nil
		end
		at = at + len
		return range(at - len, len)
	end
	sub:add(t_m, bits)
	sub:add(t_d, bits)
	sub:add(t_r, bits)
	if bits:bitfield(0, 1) == 1 then
		local len = take(2)
		if not len then return end
		sub:add(t_length, len)
	end
	if bits:bitfield(1, 1) == 1 then
		local tagged = range:len() > at and range(at, 1):bitfield(0, 1) == 1
		local head = take(tagged and 14 or 18)
		if not head then return end
		add_ddp_header(head, sub)
	end
	if bits:bitfield(2, 1) == 1 then
		local head = take(28)
		if not head then return end
		local read = sub:add(t_read, head)
		read:add(t_size, head(12, 4))
		read:add(t_src_stag, head(16, 4))
		read:add(t_src_to, head(20, 8))
	end
end

-- ---- DDP segments ----

local rdmap = Dissector.get("iwarp_ddp_rdmap")
local TERMINATE, TERMINATE_MIN = 7, 20

local function tagged(seg)
	return seg(0, 1):bitfield(0, 1) == 1
end

-- The shortest untagged segment of that opcode, in octets, DDP header included.
local UNTAGGED_MIN = { [1] = 46, [TERMINATE] = TERMINATE_MIN, [8] = 26, [9] = 26, [10] = 70, [11] = 30 }
local TAGGED_MIN = 14
local goes_tagged = { [0] = true, [2] = true }

-- Whether it has the length and the model of its opcode; RFC 5040 4.1 says which.
local function well_formed(seg)
	if seg:len() < TAGGED_MIN then
		return false
	end
	local opcode = seg(1, 1):bitfield(4, 4)
	if tagged(seg) then
		return goes_tagged[opcode] or false
	end
	return seg:len() >= (UNTAGGED_MIN[opcode] or 18)
end

local function is_terminate(seg)
	return not tagged(seg) and seg(1, 1):bitfield(4, 4) == TERMINATE
end

local d_bad = ProtoExpert.new("ddp_sctp.bad", "Segment without the length or buffer model of its opcode",
	expert.group.PROTOCOL, expert.severity.WARN)

-- @tree: of the segment's carrier.  @root: of the packet.  Wireshark's own dissector is not asked about
-- what it would read beyond the end of, nor about a Terminate: it takes each header that one brings to
-- have 18 octets, tagged ones too.
local function add_segment(seg, pinfo, tree, root)
	if not well_formed(seg) then
		tree:add_proto_expert_info(d_bad)
	elseif is_terminate(seg) then
		pinfo.cols.info:append(" Terminate")
		add_terminate(seg(18):range(), pinfo, root)
	else
		rdmap:call(seg:tvb(), pinfo, root)
	end
end

-- ---- DDP over SCTP (RFC 5043) ----

local segment = Proto("ddp_sctp", "DDP over SCTP, segment (RFC 5043)")
local control = Proto("ddp_sctp_session", "DDP over SCTP, session control (RFC 5043)")
local functions = {
	[1] = "Initiate", [2] = "Accept", [3] = "Reject", [4] = "Terminate",
	[5] = "Enhanced Initiate", [6] = "Enhanced Accept", [7] = "Enhanced Reject",
	[0xffff] = "experimental",
}
local d_ssn = ProtoField.uint16("ddp_sctp.ssn", "DDP-SSN", base.DEC)
segment.fields = { d_ssn }
segment.experts = { d_bad }
local c_ssn = ProtoField.uint16("ddp_sctp_session.ssn", "DDP-SSN", base.DEC)
local c_function = ProtoField.uint16("ddp_sctp_session.function", "Function", base.HEX, functions)
local c_private = ProtoField.bytes("ddp_sctp_session.private", "Private data")
local c_bad = ProtoExpert.new("ddp_sctp_session.bad", "Session control with a wrong length or function",
	expert.group.PROTOCOL, expert.severity.WARN)
control.fields = { c_ssn, c_function, c_private }
control.experts = { c_bad }

function segment.dissector(tvb, pinfo, tree)
	local sub = tree:add(segment, tvb(0, math.min(2, tvb:len())))
	pinfo.cols.protocol = "DDP/SCTP"
	if tvb:len() <= 2 then
		sub:add_proto_expert_info(d_bad)
		return tvb:len()
	end
	sub:add(d_ssn, tvb(0, 2))
	sub:append_text(", DDP-SSN " .. tvb(0, 2):uint())
	add_segment(tvb(2), pinfo, sub, tree)
	return tvb:len()
end

function control.dissector(tvb, pinfo, tree)
	local sub = tree:add(control, tvb())
	pinfo.cols.protocol = "DDP/SCTP"
	if tvb:len() < 4 then
		sub:add_proto_expert_info(c_bad)
		return tvb:len()
	end
	local code = tvb(2, 2):uint()
	local name = "Session " .. named(functions, code)
	sub:add(c_ssn, tvb(0, 2))
	sub:add(c_function, tvb(2, 2))
	sub:append_text(", " .. name)
	pinfo.cols.info = name
	if code >= 5 and code <= 7 and tvb:len() >= 8 then
		add_word(tvb(4), sub)
	elseif tvb:len() > 4 then
		sub:add(c_private, tvb(4))
	end
	local enhanced = code >= 5 and code <= 7
	if not functions[code] or tvb:len() > 516 or (code == 4 and tvb:len() > 4) or
		(enhanced and tvb:len() < 8) then
		sub:add_proto_expert_info(c_bad)
	end
	return tvb:len()
end

DissectorTable.get("sctp.ppi"):add(PPID_SEGMENT, segment)
DissectorTable.get("sctp.ppi"):add(PPID_CONTROL, control)

-- ---- SCTP inside DTLS (RFC 8261), where a key log opens the records ----

local sctp = Dissector.get("sctp")
local within = Proto("sctp_dtls", "SCTP inside DTLS (RFC 8261)")

-- DTLS has no port of SCTP's: a packet begins with ports that are not 0, a tag, a checksum, and a chunk that fits.
within:register_heuristic("dtls", function(tvb, pinfo, tree)
	local len = tvb:captured_len()
	if len < 16 or tvb(0, 2):uint() == 0 or tvb(2, 2):uint() == 0 then return false end
	local chunk, size = tvb(12, 1):uint(), tvb(14, 2):uint()
	local known = chunk <= 14 or chunk == 64 or (chunk >= 0x80 and chunk <= 0x84) or chunk >= 0xC0
	if not known or size < 4 or size > len - 12 then return false end
	sctp:call(tvb, pinfo, tree)
	return true
end)

-- ---- messages of sessctl ----

local service = Proto("sessctl", "sessctl service")
local SESSCTL_MAGIC, SESSCTL_VERSION = 0x5343, 1
local types = { "PUT", "GET", "PING", "GO", "FILE", "CHUNK", "READY", "CREDIT", "DONE", "OK", "REFUSE",
	"ERROR", "PERF", "PUT_BY", "GET_BY" }
local v_type = ProtoField.uint8("sessctl.type", "Type", base.DEC, types)
local v = {
	force = ProtoField.bool("sessctl.force", "Overwrite"),
	op = ProtoField.uint8("sessctl.op", "Operation", base.DEC,
		{ [0] = "send", [1] = "write", [2] = "read", [3] = "ping", [4] = "both" }),
	slots = ProtoField.uint8("sessctl.slots", "Slots of the window"),
	slot = ProtoField.uint8("sessctl.slot", "Slot"),
	len = ProtoField.uint32("sessctl.length", "Octets"),
	pause = ProtoField.uint32("sessctl.pause", "Longest pause, ms"),
	stag = ProtoField.uint32("sessctl.stag", "STag", base.HEX),
	to = ProtoField.uint64("sessctl.to", "Tagged offset", base.HEX),
	off = ProtoField.uint64("sessctl.offset", "Offset in the file"),
	size = ProtoField.uint64("sessctl.size", "Size of the file"),
	depth = ProtoField.uint32("sessctl.depth", "Operations under way"),
	kind = ProtoField.uint8("sessctl.digest_kind", "Kind of digest", base.DEC,
		{ [0] = "SHA-256", [1] = "CRC32c" }),
	digest = ProtoField.bytes("sessctl.digest", "Digest"),
	text = ProtoField.string("sessctl.text", "Text"),
}
local v_data = ProtoField.bytes("sessctl.data", "Data of a measurement")
service.fields = { v_type, v.force, v.op, v.slots, v.slot, v.len, v.pause, v.stag, v.to, v.off, v.size,
	v.depth, v.kind, v.digest, v.text, v_data }
-- Fields of each type, in the order of the wire, with their lengths; text takes the rest.
local layouts = {
	PUT = { "force", 1, "size", 8, "text", 0 }, GET = { "text", 0 },
	PUT_BY = { "force", 1, "size", 8, "kind", 1, "text", 0 }, GET_BY = { "kind", 1, "text", 0 },
	PING = { "op", 1, "len", 4, "pause", 4 }, PERF = { "op", 1, "len", 4, "depth", 4 },
	GO = { "slots", 1, "len", 4, "stag", 4, "to", 8 }, FILE = { "size", 8 },
	CHUNK = { "slot", 1, "len", 4, "off", 8 },
	READY = { "slot", 1, "len", 4, "stag", 4, "to", 8, "off", 8 },
	CREDIT = { "slot", 1 }, DONE = { "digest", 32 }, OK = { "digest", 32 },
	REFUSE = { "text", 0 }, ERROR = { "text", 0 },
}

-- The layout of a whole and well-formed message, and its type; nil for anything else.
local function message_layout(tvb)
	if tvb:len() < 4 or tvb(0, 2):uint() ~= SESSCTL_MAGIC or tvb(2, 1):uint() ~= SESSCTL_VERSION then
		return nil
	end
	local type = types[tvb(3, 1):uint()]
	local layout, need = layouts[type], 4
	if not layout then
		return nil
	end
	for i = 2, #layout, 2 do
		need = need + layout[i]
	end
	if layout[#layout - 1] ~= "text" then
		return tvb:len() == need and layout or nil, type
	end
	if tvb:len() < need + 3 then
		return nil
	end
	return tvb(need, 2):uint() == tvb:len() - need - 2 and layout or nil, type
end

local function add_message(tvb, layout, tree)
	local at = 4
	tree:add(v_type, tvb(3, 1))
	for i = 1, #layout, 2 do
		local name, len = layout[i], layout[i + 1]
		if name == "text" then
			tree:add(v.text, tvb(at + 2))
		else
			tree:add(v[name], tvb(at, len))
		end
		at = at + len
	end
end

-- Conversations that sessctl's services use: what else is sent there is a measurement's payload.
local in_use = {}

function service.init()
	in_use = {}
end

function service.dissector(tvb, pinfo, tree)
	local layout, type = message_layout(tvb)
	local sub = tree:add(service, tvb())
	if layout then
		in_use[conversation(pinfo)] = true
		add_message(tvb, layout, sub)
		sub:append_text(", " .. type)
		pinfo.cols.info:append(" sessctl " .. type)
	else
		sub:add(v_data, tvb())
		sub:append_text(", " .. tvb:len() .. " octets of a measurement")
	end
	return tvb:len()
end

local RPC_HEADER = 28 -- RPC over RDMA: XID, version, credits, type, three lists (RFC 8166)
local RPC_TYPES = 4

local function may_be_rpc(tvb)
	return tvb:len() >= RPC_HEADER and tvb(4, 4):uint() == 1 and tvb(12, 4):uint() <= RPC_TYPES
end

-- Wireshark takes any Send for RPC over RDMA, and calls what is too short for that malformed.
service:register_heuristic("iwarp_ddp_rdmap", function(tvb, pinfo, tree)
	if message_layout(tvb) or (in_use[conversation(pinfo)] and tvb:len() > 0) then
		service.dissector(tvb, pinfo, tree)
		return true
	end
	return not may_be_rpc(tvb)
end)

-- ---- opcodes of RFC 7306 ----

local ext = Proto("rdmap_ext", "RDMAP extension (RFC 7306)")
local opcodes = { [8] = "Immediate Data", [9] = "Immediate Data with Solicited Event",
	[10] = "Atomic Request", [11] = "Atomic Response" }
local e_opcode = ProtoField.uint8("rdmap_ext.opcode", "Opcode", base.HEX, opcodes, 0x0f)
ext.fields = { e_opcode }
local f_opcode = field("iwarp_rdma.opcode")

local function add_extension(info, pinfo, tree)
	local name, range = opcodes[info.value], octets(info)
	if name and range then
		tree:add(ext, range):add(e_opcode, range)
		pinfo.cols.info:append(" [" .. name .. "]")
	end
end

-- ---- IP over InfiniBand in CM messages (RFC 4755) ----

local ipoib = Proto("ipoib_cm", "IP over InfiniBand, connected mode (RFC 4755)")
local i_qpn = ProtoField.uint24("ipoib_cm.qpn", "UD QPN of the sender", base.HEX)
local i_mtu = ProtoField.uint32("ipoib_cm.mtu", "Receive MTU")
local i_form = ProtoField.string("ipoib_cm.service_form", "Form of the service ID")
local i_peer = ProtoField.uint24("ipoib_cm.service_qpn", "UD QPN of the responder", base.HEX)
ipoib.fields = { i_qpn, i_mtu, i_form, i_peer }

local cm = {}
for _, name in ipairs({ "req", "req.serviceid", "req.private", "rep", "rep.remotecommid", "rep.private",
	"rtu.localcommid", "rtu.private", "rej.localcommid", "rej.remotecommid", "rej.private" }) do
	cm[name] = field("infiniband.cm." .. name)
end

-- Communication IDs of those who connect by IPoIB's service IDs.
local known = {}

function ipoib.init()
	known = {}
end

local function forms(id)
	local top = id(0, 2):uint()
	if id(2, 3):uint() ~= 0 then
		return nil
	end
	return ({ [0x0100] = "RFC 4755", [0x1000] = "Linux" })[top]
end

-- Sender's UD QPN and Receive MTU are the first eight octets.
local function add_private(f, tree)
	local info = f and f()
	local range = info and octets(info)
	if not range or range:len() < 8 or range(0, 8):uint64() == UInt64(0) then
		return nil
	end
	local sub = tree:add(ipoib, range(0, 8))
	sub:add(i_qpn, range(1, 3))
	sub:add(i_mtu, range(4, 4))
	sub:append_text(string.format(", UD QPN 0x%06x, Receive MTU %d", range(1, 3):uint(),
		range(4, 4):uint()))
	return sub
end

local function value(f)
	local info = f and f()
	return info and info.value
end

local function add_ipoib(tree)
	local id = cm["req.serviceid"] and cm["req.serviceid"]()
	local range = id and octets(id)
	if range and forms(range) then
		local sub = add_private(cm["req.private"], tree) or tree:add(ipoib, range)
		known[value(cm.req) or -1] = true
		sub:add(i_form, range(0, 2), forms(range))
		sub:add(i_peer, range(5, 3))
		return
	end
	if value(cm["rep.remotecommid"]) and known[value(cm["rep.remotecommid"])] then
		known[value(cm.rep) or -1] = true
		add_private(cm["rep.private"], tree)
	elseif known[value(cm["rtu.localcommid"]) or -1] then
		add_private(cm["rtu.private"], tree)
	elseif known[value(cm["rej.remotecommid"]) or -1] or known[value(cm["rej.localcommid"]) or -1] then
		add_private(cm["rej.private"], tree)
	end
end

-- ---- what is added behind Wireshark's own tree ----

local more = Proto("ddpsess", "RDMA sessions")
local f_private = field("iwarp_mpa.privatedata")
local f_res, f_rev = field("iwarp_mpa.res"), field("iwarp_mpa.rev")
local S_BIT = 16 -- of the five bits that Wireshark shows as reserved

function more.dissector(_, pinfo, tree)
	local res, rev = all(f_res)[1], all(f_rev)[1]
	if res and rev and rev.value >= 2 and res.value >= S_BIT then
		local info = all(f_private)[1]
		local range = info and octets(info)
		if range then
			add_word(range, tree)
		end
	end
	for _, info in ipairs(all(f_term)) do
		local range = octets(info)
		if range and range:len() >= 2 then
			add_terminate(info.source:range(range:offset()), pinfo, tree)
		end
	end
	for _, info in ipairs(all(f_opcode)) do
		add_extension(info, pinfo, tree)
	end
	add_ipoib(tree)
end

register_postdissector(more)
