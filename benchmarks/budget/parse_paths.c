// SPDX-License-Identifier: Apache-2.0
/* Messages of each kind to records; none is applied. */
#include <string.h>

#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "counted.h"
#include "netlink.h"

#define LEGS 8

static const uint8_t address6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

static void address_ipv6(struct message *m)
{
	struct ifaddrmsg ifa = { .ifa_family = AF_INET6, .ifa_prefixlen = 64, .ifa_index = 2 };
	struct ifa_cacheinfo times = { .ifa_prefered = 3600, .ifa_valid = 7200, .cstamp = 100 };
	uint32_t flags = IFA_F_MANAGETEMPADDR;
	uint8_t proto = 2;

	message_begin(m, RTM_NEWADDR, &ifa, sizeof(ifa));
	message_put(m, IFA_ADDRESS, address6, sizeof(address6));
	message_put(m, IFA_CACHEINFO, &times, sizeof(times));
	message_put(m, IFA_FLAGS, &flags, sizeof(flags));
	message_put(m, 11 /* IFA_PROTO */, &proto, sizeof(proto));
}

static void address_ipv4(struct message *m)
{
	message_addr(m, AT_OP_NEW, 2, 1, IFA_F_PERMANENT);
}

/* As long as the kernel's, most of which is skipped. */
static void link_of_kind(struct message *m, const char *kind)
{
	struct ifinfomsg ifi = { .ifi_index = 2, .ifi_flags = IFF_UP | 1u << 16, .ifi_type = 1 };
	uint32_t mtu = 1500, table = 100;
	struct {
		struct nlattr kind;
		char name[8];
		struct nlattr data, table;
		uint32_t value;
	} info = {
		.kind = { sizeof(info.kind) + sizeof(info.name), IFLA_INFO_KIND },
		.data = { sizeof(info.data) + sizeof(info.table) + 4, IFLA_INFO_DATA },
		.table = { sizeof(info.table) + 4, IFLA_VRF_TABLE },
		.value = table,
	};
	uint8_t operstate = 6, rest[256] = { 0 };

	strncpy(info.name, kind, sizeof(info.name) - 1);
	message_begin(m, RTM_NEWLINK, &ifi, sizeof(ifi));
	message_put(m, IFLA_IFNAME, "eth0", 5);
	message_put(m, IFLA_TXQLEN, &mtu, sizeof(mtu));
	message_put(m, IFLA_OPERSTATE, &operstate, sizeof(operstate));
	message_put(m, IFLA_MTU, &mtu, sizeof(mtu));
	message_put(m, IFLA_MAP, rest, 28);
	message_put(m, IFLA_ADDRESS, rest, 6);
	message_put(m, IFLA_BROADCAST, rest, 6);
	message_put(m, IFLA_STATS64, rest, 200);
	message_put(m, IFLA_LINKINFO, &info, sizeof(info));
	message_put(m, IFLA_AF_SPEC, rest, sizeof(rest));
}

static void link_veth(struct message *m)
{
	link_of_kind(m, "veth");
}

static void link_vrf(struct message *m)
{
	link_of_kind(m, "vrf");
}

static void route_default(struct message *m)
{
	message_default(m, 2, 100);
}

static void route_multipath(struct message *m)
{
	struct rtmsg rtm = {
		.rtm_family = AF_INET6,
		.rtm_table = MAIN_TABLE,
		.rtm_protocol = RTPROT_BGP,
		.rtm_type = RTN_UNICAST,
	};
	struct {
		struct rtnexthop nh;
		struct nlattr attr;
		uint8_t gateway[16];
	} legs[LEGS];
	uint32_t table = MAIN_TABLE;

	for (int i = 0; i < LEGS; i++) {
		legs[i].nh = (struct rtnexthop){ sizeof(legs[i]), 0, 0, 2 + i };
		legs[i].attr = (struct nlattr){ sizeof(legs[i].attr) + 16, RTA_GATEWAY };
		memcpy(legs[i].gateway, address6, sizeof(address6));
	}
	message_begin(m, RTM_NEWROUTE, &rtm, sizeof(rtm));
	message_put(m, RTA_TABLE, &table, sizeof(table));
	message_put(m, RTA_MULTIPATH, legs, sizeof(legs));
}

static void route_local(struct message *m)
{
	struct rtmsg rtm = { .rtm_family = AF_INET,
			     .rtm_table = RT_TABLE_LOCAL,
			     .rtm_type = RTN_LOCAL };

	message_begin(m, RTM_NEWROUTE, &rtm, sizeof(rtm));
	message_put(m, RTA_DST, address6, 4);
}

static void nexthop_single(struct message *m)
{
	struct nhmsg nhm = { .nh_family = AF_INET6, .nh_protocol = RTPROT_BGP };
	uint32_t id = 7, oif = 2;

	message_begin(m, RTM_NEWNEXTHOP, &nhm, sizeof(nhm));
	message_put(m, NHA_ID, &id, sizeof(id));
	message_put(m, NHA_OIF, &oif, sizeof(oif));
	message_put(m, NHA_GATEWAY, address6, sizeof(address6));
}

static void nexthop_group(struct message *m)
{
	struct nhmsg nhm = { .nh_protocol = RTPROT_BGP };
	struct nexthop_grp members[LEGS] = { 0 };
	uint32_t id = 7;

	for (int i = 0; i < LEGS; i++)
		members[i].id = 100 + (uint32_t)i;
	message_begin(m, RTM_NEWNEXTHOP, &nhm, sizeof(nhm));
	message_put(m, NHA_ID, &id, sizeof(id));
	message_put(m, NHA_GROUP, members, sizeof(members));
}

static void rule(struct message *m)
{
	struct fib_rule_hdr frh = { .family = AF_INET, .table = 100, .action = FR_ACT_TO_TBL };
	uint32_t priority = 1000;

	message_begin(m, RTM_NEWRULE, &frh, sizeof(frh));
	message_put(m, FRA_PRIORITY, &priority, sizeof(priority));
	message_put(m, FRA_TABLE, &priority, sizeof(priority));
}

struct parsed {
	const struct message *message;
	int size;
};

static void parse(void *arg)
{
	uint64_t record[(AT_RECORD_MAX + 7) / 8];
	struct parsed *p = arg;

	p->size = at_parse(p->message->words, p->message->size, 1, 0, record);
}

static void count_one(const char *name, const struct message *m, int sign)
{
	struct path path = { .name = name, .units = 1, .event = true };
	struct parsed p = { .message = m };

	count(&path, parse, &p);
	must((p.size > 0) - (p.size < 0) == sign, name);
}

void parse_paths(void)
{
	static const struct {
		const char *good, *malformed;
		void (*make)(struct message *m);
	} kinds[] = {
		{ "parse IPv4 address", "parse malformed IPv4 address", address_ipv4 },
		{ "parse IPv6 address", "parse malformed IPv6 address", address_ipv6 },
		{ "parse link", "parse malformed link", link_veth },
		{ "parse VRF link", "parse malformed VRF link", link_vrf },
		{ "parse default route", "parse malformed default route", route_default },
		{ "parse route of 8 legs", "parse malformed route of 8 legs", route_multipath },
		{ "parse nexthop", "parse malformed nexthop", nexthop_single },
		{ "parse nexthop group of 8", "parse malformed nexthop group", nexthop_group },
		{ "parse rule", "parse malformed rule", rule },
	};
	struct message m;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		kinds[i].make(&m);
		count_one(kinds[i].good, &m, 1);
		message_spoil(&m);
		count_one(kinds[i].malformed, &m, -1);
	}
	route_local(&m);
	count_one("parse route of the local table", &m, 0);
}
