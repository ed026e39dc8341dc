// SPDX-License-Identifier: Apache-2.0
/* One rtnetlink message to one record. */
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include "netlink.h"
#include "parse.h"

/* Linux 5.18; not in the headers of every system that we build on. */
#define AT_IFA_PROTO 11

#define AT_FOREVER 0xffffffffu

static int parse_addr(const struct at_message *msg, struct at_addr *addr)
{
	uint8_t local[16] = { 0 }, other[16] = { 0 };
	int has_local = 0, has_other = 0, more;
	struct ifa_cacheinfo times;
	struct ifaddrmsg ifa;
	struct at_attrs attrs;
	struct at_attr attr;

	AT_TRY(at_body(msg, &ifa, sizeof(ifa), &attrs));
	if (!at_is_ip(ifa.ifa_family))
		return 0;
	if (ifa.ifa_prefixlen > at_address_len(ifa.ifa_family) * 8)
		return -EBADMSG;
	*addr = (struct at_addr){
		.ifindex = ifa.ifa_index,
		.flags = ifa.ifa_flags,
		.valid = AT_FOREVER,
		.preferred = AT_FOREVER,
		.family = ifa.ifa_family,
		.prefixlen = ifa.ifa_prefixlen,
		.scope = ifa.ifa_scope,
	};
	while ((more = at_attr_next(&attrs, &attr)) > 0) {
		switch (attr.type) {
		case IFA_LOCAL:
			AT_TRY(at_get_address(&attr, ifa.ifa_family, local));
			has_local = 1;
			break;
		case IFA_ADDRESS:
			AT_TRY(at_get_address(&attr, ifa.ifa_family, other));
			has_other = 1;
			break;
		case IFA_FLAGS:
			AT_TRY(at_attr_get(&attr, &addr->flags, sizeof(addr->flags)));
			break;
		case IFA_RT_PRIORITY:
			AT_TRY(at_attr_get(&attr, &addr->priority, sizeof(addr->priority)));
			break;
		case AT_IFA_PROTO:
			AT_TRY(at_attr_get(&attr, &addr->proto, sizeof(addr->proto)));
			break;
		case IFA_CACHEINFO:
			AT_TRY(at_attr_get(&attr, &times, sizeof(times)));
			addr->valid = times.ifa_valid;
			addr->preferred = times.ifa_prefered;
			addr->cstamp = times.cstamp;
			break;
		}
	}
	AT_TRY(more);
	if (!has_local && !has_other)
		return -EBADMSG;
	memcpy(addr->local, has_local ? local : other, sizeof(addr->local));
	if (has_local && has_other && memcmp(local, other, sizeof(local)) != 0)
		memcpy(addr->peer, other, sizeof(addr->peer));
	return sizeof(*addr);
}

static int parse_vrf(const struct at_attr *data, uint32_t *table)
{
	struct at_attrs attrs = at_attr_nested(data);
	struct at_attr attr;
	int more;

	while ((more = at_attr_next(&attrs, &attr)) > 0) {
		if (attr.type == IFLA_VRF_TABLE)
			AT_TRY(at_attr_get(&attr, table, sizeof(*table)));
	}
	return more;
}

static int parse_linkinfo(const struct at_attr *info, struct at_link *link)
{
	struct at_attrs attrs = at_attr_nested(info);
	struct at_attr attr, data = { 0 };
	int more;

	while ((more = at_attr_next(&attrs, &attr)) > 0) {
		if (attr.type == IFLA_INFO_KIND)
			at_attr_string(&attr, link->kind, sizeof(link->kind));
		else if (attr.type == IFLA_INFO_DATA)
			data = attr;
	}
	AT_TRY(more);
	return strcmp(link->kind, "vrf") == 0 ? parse_vrf(&data, &link->vrf_table) : 0;
}

static int parse_link(const struct at_message *msg, struct at_link *link)
{
	struct at_attr attr, info = { 0 };
	struct ifinfomsg ifi;
	struct at_attrs attrs;
	int more, wireless = 0;

	AT_TRY(at_body(msg, &ifi, sizeof(ifi), &attrs));
	/* A bridge port that leaves its bridge gets a DELLINK of AF_BRIDGE and lives on. */
	if (ifi.ifi_family != AF_UNSPEC)
		return 0;
	*link = (struct at_link){
		.ifindex = (uint32_t)ifi.ifi_index,
		.flags = ifi.ifi_flags,
		.type = ifi.ifi_type,
	};
	while ((more = at_attr_next(&attrs, &attr)) > 0) {
		switch (attr.type) {
		case IFLA_IFNAME:
			at_attr_string(&attr, link->name, sizeof(link->name));
			break;
		case IFLA_MTU:
			AT_TRY(at_attr_get(&attr, &link->mtu, sizeof(link->mtu)));
			break;
		case IFLA_LINK:
			AT_TRY(at_attr_get(&attr, &link->lower, sizeof(link->lower)));
			break;
		case IFLA_MASTER:
			AT_TRY(at_attr_get(&attr, &link->master, sizeof(link->master)));
			break;
		case IFLA_OPERSTATE:
			AT_TRY(at_attr_get(&attr, &link->operstate, sizeof(link->operstate)));
			break;
		case IFLA_LINKINFO:
			info = attr;
			break;
		case IFLA_WIRELESS:
			wireless = 1;
			break;
		}
	}
	AT_TRY(more);
	AT_TRY(parse_linkinfo(&info, link));
	/* An event of a wireless driver says nothing but the name: no master, kind, or MTU
	 * (wireless_nlevent_flush). */
	return wireless ? 0 : (int)sizeof(*link);
}

/* 1 = there were more members than a record holds. */
static int parse_group(const struct at_attr *group, struct at_nexthop *nh)
{
	size_t count = group->len / sizeof(struct nexthop_grp);

	if (group->len % sizeof(struct nexthop_grp) != 0)
		return -EBADMSG;
	for (size_t i = 0; i < count && i < AT_LEGS_MAX; i++) {
		const uint8_t *entry = group->data + i * sizeof(struct nexthop_grp);
		/* Behind the low byte of the weight: its high byte (Linux 6.12), 0 before. */
		uint32_t weight = entry[4] + ((uint32_t)entry[5] << 8) + 1;
		struct at_member *member = &nh->member[nh->n_members++];

		memset(member, 0, sizeof(*member));
		memcpy(&member->id, entry, sizeof(member->id));
		member->weight = weight > UINT16_MAX ? UINT16_MAX : (uint16_t)weight;
	}
	return count > AT_LEGS_MAX;
}

static int parse_nexthop(const struct at_message *msg, struct at_nexthop *nh, int *truncated)
{
	struct at_attr group = { 0 };
	int more;
	struct at_attrs attrs;
	struct at_attr attr;
	struct nhmsg nhm;

	AT_TRY(at_body(msg, &nhm, sizeof(nhm), &attrs));
	if (nhm.nh_family != AF_UNSPEC && !at_is_ip(nhm.nh_family))
		return 0;
	*nh = (struct at_nexthop){
		.flags = nhm.nh_flags,
		.family = nhm.nh_family,
		.proto = nhm.nh_protocol,
	};
	while ((more = at_attr_next(&attrs, &attr)) > 0) {
		switch (attr.type) {
		case NHA_ID:
			AT_TRY(at_attr_get(&attr, &nh->id, sizeof(nh->id)));
			break;
		case NHA_OIF:
			AT_TRY(at_attr_get(&attr, &nh->oif, sizeof(nh->oif)));
			break;
		case NHA_GATEWAY:
			if (nhm.nh_family == AF_UNSPEC)
				return -EBADMSG;
			AT_TRY(at_get_address(&attr, nhm.nh_family, nh->gw));
			nh->gw_family = nhm.nh_family;
			break;
		case NHA_GROUP:
			group = attr;
			break;
		case NHA_BLACKHOLE:
			nh->blackhole = 1;
			break;
		case NHA_FDB:
			nh->fdb = 1;
			break;
		}
	}
	AT_TRY(more);
	if (!nh->id)
		return -EBADMSG;
	if (group.data) {
		*truncated = parse_group(&group, nh);
		AT_TRY(*truncated);
	}
	return (int)(sizeof(*nh) + nh->n_members * sizeof(nh->member[0]));
}

static int parse_rule(const struct at_message *msg, struct at_rule *rule)
{
	struct fib_rule_hdr frh;
	struct at_attrs attrs;
	struct at_attr attr;
	int more;

	AT_TRY(at_body(msg, &frh, sizeof(frh), &attrs));
	/* Multicast routing has rules of its own. */
	if (!at_is_ip(frh.family))
		return 0;
	*rule = (struct at_rule){
		.table = frh.table,
		.family = frh.family,
		.action = frh.action,
	};
	while ((more = at_attr_next(&attrs, &attr)) > 0) {
		if (attr.type == FRA_TABLE)
			AT_TRY(at_attr_get(&attr, &rule->table, sizeof(rule->table)));
		else if (attr.type == FRA_PRIORITY)
			AT_TRY(at_attr_get(&attr, &rule->priority, sizeof(rule->priority)));
	}
	AT_TRY(more);
	if (frh.action != FR_ACT_TO_TBL)
		rule->table = 0;
	return sizeof(*rule);
}

int at_parse(const void *data, size_t len, uint64_t boot_ns, uint32_t flags, void *out)
{
	void *payload = (uint8_t *)out + sizeof(struct at_header);
	int truncated = 0, kind, size;
	struct at_message msg;

	if (len < sizeof(msg.head))
		return -EBADMSG;
	memcpy(&msg.head, data, sizeof(msg.head));
	if (msg.head.nlmsg_len < sizeof(msg.head) || msg.head.nlmsg_len > len)
		return -EBADMSG;
	msg.body = (const uint8_t *)data + NLMSG_HDRLEN;
	msg.len = msg.head.nlmsg_len - NLMSG_HDRLEN;

	switch (msg.head.nlmsg_type) {
	case RTM_NEWADDR:
	case RTM_DELADDR:
		kind = AT_KIND_ADDR;
		size = parse_addr(&msg, payload);
		break;
	case RTM_NEWLINK:
	case RTM_DELLINK:
		kind = AT_KIND_LINK;
		size = parse_link(&msg, payload);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		kind = AT_KIND_ROUTE;
		size = at_parse_route(&msg, payload, &truncated);
		break;
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		kind = AT_KIND_NEXTHOP;
		size = parse_nexthop(&msg, payload, &truncated);
		break;
	case RTM_NEWRULE:
	case RTM_DELRULE:
		kind = AT_KIND_RULE;
		size = parse_rule(&msg, payload);
		break;
	default:
		return 0;
	}
	if (size <= 0)
		return size;
	size += (int)sizeof(struct at_header);
	*(struct at_header *)out = (struct at_header){
		.size = (uint16_t)size,
		.version = AT_RECORD_VERSION,
		.kind = (uint8_t)kind,
		/* Of every kind the new message has an even type, the deletion the next one. */
		.op = msg.head.nlmsg_type & 1 ? AT_OP_DEL : AT_OP_NEW,
		.nl_flags = msg.head.nlmsg_flags,
		.flags = flags | (truncated ? AT_F_TRUNCATED : 0),
		.boot_ns = boot_ns,
		.portid = msg.head.nlmsg_pid,
	};
	return size;
}
