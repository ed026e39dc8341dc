/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * rtnetlink on the wire, as much of it as the filter reads: the same text has to
 * compile against the system's headers, a kernel's and none. A test compares it
 * with the UAPI.
 */
#ifndef ADDRTRACKER_WIRE_H
#define ADDRTRACKER_WIRE_H

#include <linux/types.h>

#define WIRE_AF_UNSPEC 0
#define WIRE_AF_INET   2
#define WIRE_AF_INET6  10

#define WIRE_RTM_BASE	    16
#define WIRE_RTM_NEWLINK    16
#define WIRE_RTM_DELLINK    17
#define WIRE_RTM_NEWADDR    20
#define WIRE_RTM_DELADDR    21
#define WIRE_RTM_NEWROUTE   24
#define WIRE_RTM_DELROUTE   25
#define WIRE_RTM_NEWRULE    32
#define WIRE_RTM_DELRULE    33
#define WIRE_RTM_NEWNEXTHOP 104
#define WIRE_RTM_DELNEXTHOP 105

struct wire_nlmsg {
	__u32 len;
	__u16 type;
	__u16 flags;
	__u32 seq;
	__u32 pid;
};

struct wire_attr {
	__u16 len;
	__u16 type;
};

#define WIRE_ALIGN(size)    (((size) + 3) & ~3u)
#define WIRE_ATTR_TYPE_MASK 0x3fff /* without NLA_F_NESTED and NLA_F_NET_BYTEORDER */

struct wire_ifaddr {
	__u8 family;
	__u8 prefixlen;
	__u8 flags;
	__u8 scope;
	__u32 index;
};

struct wire_ifinfo {
	__u8 family;
	__u8 pad0;
	__u16 type;
	__s32 index;
	__u32 flags;
	__u32 change;
};

#define WIRE_IFLA_IFNAME    3
#define WIRE_IFLA_MTU	    4
#define WIRE_IFLA_LINK	    5
#define WIRE_IFLA_MASTER    10
#define WIRE_IFLA_WIRELESS  11
#define WIRE_IFLA_OPERSTATE 16
#define WIRE_IFLA_LINKINFO  18

#define WIRE_IFLA_INFO_KIND 1

struct wire_rtmsg {
	__u8 family;
	__u8 dst_len;
	__u8 src_len;
	__u8 tos;
	__u8 table;
	__u8 protocol;
	__u8 scope;
	__u8 type;
	__u32 flags;
};

#define WIRE_RTA_DST	    1
#define WIRE_RTA_TABLE	    15
#define WIRE_RTM_F_CLONED   0x200
#define WIRE_RT_TABLE_LOCAL 255

#endif
