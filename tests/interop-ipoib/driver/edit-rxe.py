#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Turn a copy of Linux's soft RoCE driver into one with an InfiniBand link layer.

usage: edit-rxe.py DIRECTORY

An edit names a file, what is looked for in it (a regular expression), what is put there, and how
often it has to be found.  Found more or less often, the source is not one that these edits
are for: nothing is written, and the first edit that does not fit is named.  Where kernels differ
there is a list of edits: the first one that fits is done.
"""
import os
import re
import shutil
import sys

HEADER = "soft_ib.h"
# The head of a function's definition, its opening brace included.
FUNCTION = r"^[a-z][^;{{}}]*?\b{}\([^;{{}}]*\)\n\{{\n"

PARAMETERS = """
unsigned int soft_ib_sm_lid = 1;
module_param_named(sm_lid, soft_ib_sm_lid, uint, 0644);
union ib_gid soft_ib_mgid[SOFT_IB_GROUPS];
struct net_device *soft_ib_ndev;
"""

QUERY_GID = """static int soft_ib_query_gid(struct ib_device *dev, soft_ib_port port, int index, union ib_gid *gid)
{
	struct rxe_dev *rxe = to_rdev(dev);

	gid->global.subnet_prefix = rxe->port.subnet_prefix;
	gid->global.interface_id = rxe->port.port_guid;
	return index ? -EINVAL : 0;
}

"""

FLAGS = """
static inline int soft_ib_flags(struct rxe_pkt_info *pkt)
{
	return bth_qpn(pkt) == IB_MULTICAST_QPN ? IB_WC_GRH : 0;
}
"""

GRH = """if (1) {
				soft_ib_fill_grh(to_rdev(qp->ibqp.device), skb,
						 bth_qpn(pkt) == IB_MULTICAST_QPN, &hdr);
				err = send_data_in(qp, &hdr, sizeof(hdr));
			} else """

FILL = """soft_ib_fill_grh(to_rdev(qp->ibqp.device), PKT_TO_SKB(pkt),
					 bth_qpn(pkt) == IB_MULTICAST_QPN, &hdr);"""

ATTACHED = "\\g<0>\t*soft_ib_mgid_of(mlid) = *mgid;\n"

LAST_WQE = """
	if (qp->srq && qp->ibqp.event_handler) {
		struct ib_event ev = { .device = qp->ibqp.device, .element.qp = &qp->ibqp,
				       .event = IB_EVENT_QP_LAST_WQE_REACHED };

		qp->ibqp.event_handler(&ev, qp->ibqp.qp_context);
	}
"""


def start_of(function):
    return FUNCTION.format(function)


# File, pattern, replacement ("\g<0>" is what was found), count.
EDITS = [
    ("rxe.h", r"#endif[^\n]*\n\Z", '#include "%s"\n\\g<0>' % HEADER, 1),
    ("rxe.c", r"^MODULE_LICENSE.*\n", "\\g<0>" + PARAMETERS, 1),
    ("rxe.c", start_of("rxe_newlink"), "\\g<0>\tsoft_ib_ndev = ndev;\n", 1),
    # the port: one GID, InfiniBand without QP 0, LIDs; speed and width are nobody's business
    ("rxe_param.h", r"(RXE_PORT_GID_TBL_LEN\s*= )\d+", r"\g<1>1", 1),
    ("rxe_param.h", r"(RXE_PORT_SUBNET_TIMEOUT\s*= )\d+", r"\g<1>18", 1),
    ("rxe_verbs.c", r"\bIB_LINK_LAYER_ETHERNET\b", "IB_LINK_LAYER_INFINIBAND", 1),
    ("rxe_verbs.c", r"\bRDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP\b",
     "RDMA_CORE_PORT_IBA_IB & ~RDMA_CORE_CAP_IB_SMI", 1),
    ("rxe_verbs.c", r"(\*attr = (rxe->)?port(->|\.)attr|memcpy\(attr, &rxe->port\.attr, [^;]*);\n",
     "\\g<0>\tattr->lid = soft_ib_own_lid(soft_ib_ndev);\n\tattr->sm_lid = soft_ib_sm_lid;\n", 1),
    ("rxe_verbs.c", r"(rc|ret) = ib_get_eth_speed\([^;]*;",
     "attr->active_width = IB_WIDTH_4X;\n\tattr->active_speed = IB_SPEED_QDR;\n\t\\g<1> = 0;", 1),
    ("rxe_verbs.c", r"^static int rxe_modify_device\(", QUERY_GID + r"\g<0>", 1),
    ("rxe_verbs.c", r"\t\.query_device = \w+,\n", "\\g<0>\t.query_gid = soft_ib_query_gid,\n", 1),
    # address handles have a LID; addresses come when the device is known
    ("rxe_av.c", r"rxe_av_fill_ip_info\(av, attr\);", "soft_ib_set_av(av, attr);", 1),
    ("rxe_av.c", r"\tmemcpy\(av->dmac, [^;]*;\n", "", 1),
    ("rxe_av.c", r"if \(rdma_ah_get_ah_flags\(attr\) & IB_AH_GRH\)", "if (0)", 1),
    ("rxe_av.c", r"\trdma_ah_set_port_num\([^;]*;\n", "\\g<0>\tsoft_ib_get_av(av, attr);\n", 1),
    ("rxe_net.c", start_of("rxe_prepare"), "\\g<0>\tsoft_ib_set_addresses(SOFT_IB_AV, skb->dev);\n", 1),
    [("rxe_net.c", r"ether_addr_equal\(skb->dev->dev_addr, av->dmac\)",
      "soft_ib_to_itself(SOFT_IB_AV)", 1),
     # 5.10: looked up where it is needed
     ("rxe_net.c", r"ether_addr_equal\(skb->dev->dev_addr, rxe_get_av\(pkt\)->dmac\)",
      "soft_ib_to_itself(SOFT_IB_AV)", 1)],
    ("rxe_net.c", r"cpu_to_be16\(qp->src_port\)",
     "cpu_to_be16(soft_ib_source_port(av, qp->src_port))", 2),
    # GIDs of InfiniBand belong to no network device
    ("rxe_net.c", r"ndev = rdma_read_gid_attr_ndev_rcu\(attr\);", "ndev = soft_ib_ndev;", 1),
    ("rxe_net.c", r"(rdma_get_gid_attr\(&rxe->ib_dev, port_num, )[^)]*\)", r"\g<1>0)", 1),
    # in: IP has looked at the addresses; the group is that of the MLID
    ("rxe_recv.c", start_of("rxe_chk_dgid"), "\\g<0>\treturn 0;\n", 1),
    ("rxe_recv.c", start_of("check_addr"), "\\g<0>\treturn 0;\n", 1),
    ("rxe_recv.c", r"^\t/\* lookup mcast group",
     "\tdgid = *soft_ib_mgid_of(be16_to_cpu(udp_hdr(skb)->source));\n\\g<0>", 1),
    [("rxe_mcast.c", start_of("rxe_attach_mcast"), ATTACHED, 1),
     ("rxe_verbs.c", start_of("rxe_attach_mcast"), ATTACHED, 1)],
    # completions: the sender, and a GRH with what came for a group
    ("rxe_resp.c", r'^#include "rxe_queue\.h"\n', "\\g<0>" + FLAGS, 1),
    ("rxe_resp.c", r"uwc->wc_flags = IB_WC_GRH;",
     "uwc->wc_flags = soft_ib_flags(pkt);\n\t\t\tuwc->slid = soft_ib_sender(PKT_TO_SKB(pkt));", 1),
    ("rxe_resp.c", r"wc->wc_flags = IB_WC_GRH \| IB_WC_WITH_NETWORK_HDR_TYPE;",
     "wc->wc_flags = soft_ib_flags(pkt);\n\t\t\twc->slid = soft_ib_sender(skb);", 1),
    [("rxe_resp.c", r"if \(skb->protocol == htons\(ETH_P_IP\)\) \{\n", lambda m: GRH + m.group(0), 1),
     # 5.10: in a function of its own
     ("rxe_resp.c", r"build_rdma_network_hdr\(&hdr, pkt\);", FILL, 1)],
    # IPoIB waits 5 s for this event when an interface goes down.  Since 6.11 the driver says it, but
    # with the queue pair locked, and IPoIB sends on that from its handler: the processor waits for
    # itself.  So it is said where the queue pair is not locked any more.
    [("rxe_resp.c", r"if \(notify && qp->ibqp\.event_handler\)", "if (0)", 1),
     ("rxe_resp.c", r"\A", "", 1)],
    [("rxe_qp.c", r"^\tspin_unlock_irqrestore\(&qp->state_lock, flags\);\n(?=\}\n\nstatic void rxe_qp_sqd)",
      "\\g<0>" + LAST_WQE, 1),
     # before 6.4: no such lock
     ("rxe_qp.c", r"^\tqp->attr\.qp_state = IB_QPS_ERR;\n(?=\n\t/\* drain)", "\\g<0>" + LAST_WQE, 1)],
]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory, text = sys.argv[1], {}
    for edit in EDITS:
        for name, pattern, new, count in edit if isinstance(edit, list) else [edit]:
            if name not in text:
                with open(os.path.join(directory, name), encoding="utf-8") as f:
                    text[name] = f.read()
            changed, found = re.subn(pattern, new, text[name], flags=re.M)
            if found == count:
                text[name] = changed
                break
        else:
            sys.exit("edit-rxe.py: this is another source: %s has %r %d times, not %d"
                     % (name, pattern, found, count))
    for name, content in text.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
            f.write(content)
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), HEADER), directory)


main()
