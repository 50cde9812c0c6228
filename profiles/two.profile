# SPDX-License-Identifier: BSD-2-Clause
# Two adapters.  The second has two ports, of which the second has no cable.
device rnic0
guid 0200:0000:0000:0001
port 1
interface lo
mtu 1024
width 4
speed 10

device rnic1
guid 0200:0000:0000:0002
face roce
port 1
mtu 4096
width 4
speed 50
port 2
state down
