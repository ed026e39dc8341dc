/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The one record layout: kernel to ring, parser to state, recording on disk.
 *
 * A record is a header, one payload and, when AT_F_TASK is set, a task trailer.
 * Every structure is naturally aligned, has no implicit padding and a size that
 * is a multiple of 8. In memory records are in native byte order; recordings
 * are little-endian.
 */
#ifndef ADDRTRACKER_RECORDS_H
#define ADDRTRACKER_RECORDS_H

#include <linux/types.h>

#define AT_RECORD_VERSION 1
#define AT_NAME_LEN	  16 /* IFNAMSIZ */
#define AT_LEGS_MAX	  64 /* legs (or group members) that a record can carry */

enum at_kind {
	AT_KIND_ADDR = 1,
	AT_KIND_LINK,
	AT_KIND_ROUTE,
	AT_KIND_NEXTHOP,
	AT_KIND_LOSS,  /* messages were lost; struct at_loss */
	AT_KIND_DUMP,  /* a dump begins or ends; struct at_dump */
	AT_KIND_RULE,  /* a policy rule; struct at_rule */
	AT_KIND_FLUSH, /* the kernel removed a route without a message; struct at_flush */
	AT_KIND_RAW,   /* in the ring alone: a message that the reader parses; struct at_raw */
	AT_KINDS,
};

enum at_op {
	AT_OP_NEW = 1,
	AT_OP_DEL,
};

/* flags of the header */
#define AT_F_DUMP      (1u << 0) /* an entry of a dump, not an event */
#define AT_F_TRUNCATED (1u << 1) /* there were more legs than the record holds */
#define AT_F_TASK      (1u << 2) /* a task trailer follows the payload */
#define AT_F_UNTRUSTED (1u << 3) /* the task is whoever was interrupted */
#define AT_F_KERNEL    (1u << 4) /* the task is a thread of the kernel */

struct at_header {
	__u16 size;   /* bytes of the whole record */
	__u8 version; /* AT_RECORD_VERSION */
	__u8 kind;    /* enum at_kind */
	__u8 op;      /* enum at_op */
	__u8 pad0;
	__u16 nl_flags; /* NLM_F_* of the message */
	__u32 seq;	/* order of records of one source */
	__u32 flags;	/* AT_F_* */
	__u64 boot_ns;	/* CLOCK_BOOTTIME when it was seen */
	__u32 portid;	/* netlink port of the requester, 0 = kernel */
	__u32 slot;	/* network namespace, 0 = the only one */
};

struct at_addr {
	__u32 ifindex;
	__u32 flags;	 /* IFA_FLAGS, else ifa_flags */
	__u32 valid;	 /* seconds, 0xffffffff = for ever */
	__u32 preferred; /* seconds, 0xffffffff = for ever */
	__u32 cstamp;	 /* created, 1/100 s since boot */
	__u32 priority;	 /* IFA_RT_PRIORITY */
	__u8 family;	 /* AF_INET or AF_INET6 */
	__u8 prefixlen;
	__u8 scope; /* RT_SCOPE_* */
	__u8 proto; /* IFAPROT_* */
	__u32 pad0;
	__u8 local[16]; /* IFA_LOCAL, else IFA_ADDRESS; IPv4 in the first 4 bytes */
	__u8 peer[16];	/* IFA_ADDRESS if it differs from local, else zero */
};

struct at_link {
	__u32 ifindex;
	__u32 flags;	 /* IFF_* */
	__u32 master;	 /* ifindex, 0 = none */
	__u32 lower;	 /* IFLA_LINK, 0 = none */
	__u32 vrf_table; /* table of a device of kind vrf, else 0 */
	__u32 mtu;
	__u16 type;	/* ARPHRD_* */
	__u8 operstate; /* IF_OPER_* */
	__u8 pad0;
	__u32 pad1;
	char name[AT_NAME_LEN];
	char kind[AT_NAME_LEN]; /* IFLA_INFO_KIND, "" = physical (or loopback) */
};

struct at_leg {
	__u32 oif;
	__u16 weight;	/* 1 or more */
	__u8 flags;	/* RTNH_F_* */
	__u8 gw_family; /* 0 = no gateway */
	__u8 gw[16];
};

struct at_route {
	__u32 table;
	__u32 metric;
	__u32 nh_id;	 /* nexthop object, 0 = none */
	__u32 expires;	 /* IPv6: seconds until it ends, 0 = never */
	__u32 rtm_flags; /* RTM_F_* | RTNH_F_* */
	__u8 family;
	__u8 dst_len;
	__u8 tos;
	__u8 proto; /* RTPROT_* */
	__u8 type;  /* RTN_* */
	__u8 scope;
	__u8 pref;   /* ICMPV6_ROUTER_PREF_*: 0 medium, 1 high, 3 low */
	__u8 n_legs; /* legs that are valid behind the payload */
	__u32 pad0;
	__u8 dst[16];
	__u8 prefsrc[16];    /* zero = none */
	struct at_leg leg[]; /* a single nexthop is a list of one */
};

struct at_member {
	__u32 id;
	__u16 weight;
	__u16 pad0;
};

struct at_nexthop {
	__u32 id;
	__u32 oif;
	__u32 flags; /* RTNH_F_* */
	__u8 family;
	__u8 proto;
	__u8 gw_family; /* 0 = no gateway */
	__u8 blackhole; /* 1 = NHA_BLACKHOLE */
	__u8 fdb;	/* 1 = NHA_FDB */
	__u8 n_members; /* > 0: a group */
	__u16 pad0;
	__u32 pad1;
	__u8 gw[16];
	struct at_member member[];
};

/* What a message of type RTM_NEWRULE or RTM_DELRULE is about. Which packets it takes is not in here:
 * whoever depends on rules asks the kernel again. */
struct at_rule {
	__u32 table;	/* of FR_ACT_TO_TBL, 0 = none */
	__u32 priority; /* FRA_PRIORITY */
	__u8 family;
	__u8 action; /* FR_ACT_* */
	__u16 pad0;
	__u32 pad1;
};

/* Seen by the trace tier alone. */
struct at_flush {
	__u32 table;
	__u32 metric;
	__u32 oif; /* of the first leg, 0 = unknown */
	__u8 family;
	__u8 dst_len;
	__u8 tos;
	__u8 type; /* RTN_* */
	__u8 dst[16];
};

enum at_loss_cause {
	AT_LOSS_OVERRUN = 1, /* ENOBUFS on the socket */
	AT_LOSS_RING,	     /* a reserve in the ring failed */
	AT_LOSS_MALFORMED,   /* a message could not be parsed */
	AT_LOSS_UNFILTERED,  /* a message got past the filter, which somebody detached */
};

struct at_loss {
	__u32 cause;  /* enum at_loss_cause */
	__u32 scopes; /* mask of 1 << enum at_scope that may be wrong; AT_SCOPES: policy rules */
	__u64 count;  /* messages, 0 = unknown */
};

enum at_scope {
	AT_SCOPE_LINK = 0,
	AT_SCOPE_ADDR4,
	AT_SCOPE_ADDR6,
	AT_SCOPE_NEXTHOP,
	AT_SCOPE_ROUTE4,
	AT_SCOPE_ROUTE6,
	AT_SCOPES,
};

enum at_phase {
	AT_DUMP_BEGIN = 1,
	AT_DUMP_END,  /* complete: sweep what was not shown */
	AT_DUMP_FAIL, /* incomplete: keep what there is */
};

#define AT_DUMP_AUDIT	 (1u << 0) /* count every difference as drift */
#define AT_DUMP_UNPROVEN (1u << 1) /* END of routes: perhaps the kernel stopped at one too large */

struct at_dump {
	__u32 scope;   /* enum at_scope */
	__u32 phase;   /* enum at_phase */
	__u32 ifindex; /* address scopes: only this link, 0 = all */
	__u32 table;   /* route scopes: only this table, 0 = all wanted */
	__u32 flags;   /* AT_DUMP_* */
	__u32 error;   /* errno of a failed dump */
};

struct at_task {
	__u32 tgid;
	__u32 pad0;
	char comm[16];
};

struct at_raw {
	struct at_task task; /* zero without AT_F_TASK */
	__u8 message[];	     /* from struct nlmsghdr on */
};

#define AT_RECORD_MAX                                                                              \
	(sizeof(struct at_header) + sizeof(struct at_route) +                                      \
	 AT_LEGS_MAX * sizeof(struct at_leg) + sizeof(struct at_task))

#ifndef __cplusplus
_Static_assert(sizeof(struct at_header) == 32, "header");
_Static_assert(sizeof(struct at_addr) == 64, "addr");
_Static_assert(sizeof(struct at_link) == 64, "link");
_Static_assert(sizeof(struct at_leg) == 24, "leg");
_Static_assert(sizeof(struct at_route) == 64, "route");
_Static_assert(sizeof(struct at_member) == 8, "member");
_Static_assert(sizeof(struct at_nexthop) == 40, "nexthop");
_Static_assert(sizeof(struct at_rule) == 16, "rule");
_Static_assert(sizeof(struct at_flush) == 32, "flush");
_Static_assert(sizeof(struct at_loss) == 16, "loss");
_Static_assert(sizeof(struct at_dump) == 24, "dump");
_Static_assert(sizeof(struct at_task) == 24, "task");
_Static_assert(sizeof(struct at_raw) == 24, "raw");
#endif

#endif
