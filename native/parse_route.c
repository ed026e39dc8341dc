// SPDX-License-Identifier: Apache-2.0
/* Messages about routes. */
#include <linux/rtnetlink.h>

#include "parse.h"

#define AT_USER_HZ 100 /* unit of rta_expires */

/* A gateway of either family (RFC 5549). One of another family is none that IP can use. */
static int get_via(const struct at_attr *attr, struct at_leg *leg)
{
	uint16_t family;

	AT_TRY(at_attr_get(attr, &family, sizeof(family)));
	if (!at_is_ip(family))
		return 0;
	if (attr->len < sizeof(family) + at_address_len(family))
		return -EBADMSG;
	memcpy(leg->gw, attr->data + sizeof(family), at_address_len(family));
	leg->gw_family = (uint8_t)family;
	return 0;
}

static int get_gateway(const struct at_attr *attr, int family, struct at_leg *leg)
{
	AT_TRY(at_get_address(attr, family, leg->gw));
	leg->gw_family = (uint8_t)family;
	return 0;
}

static int parse_leg(struct at_attrs attrs, int family, struct at_leg *leg)
{
	struct at_attr attr;
	int more;

	while ((more = at_attr_next(&attrs, &attr)) > 0) {
		if (attr.type == RTA_GATEWAY)
			AT_TRY(get_gateway(&attr, family, leg));
		else if (attr.type == RTA_VIA)
			AT_TRY(get_via(&attr, leg));
	}
	return more;
}

/* 1 = there were more legs than a record holds. */
static int parse_multipath(const struct at_attr *list, int family, struct at_route *route)
{
	const uint8_t *next = list->data;
	size_t left = list->len;

	while (left >= sizeof(struct rtnexthop)) {
		struct rtnexthop hop;
		struct at_leg *leg;
		struct at_attrs attrs;
		size_t step;

		memcpy(&hop, next, sizeof(hop));
		if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > left)
			return -EBADMSG;
		if (route->n_legs == AT_LEGS_MAX)
			return 1;
		leg = &route->leg[route->n_legs++];
		*leg = (struct at_leg){
			.oif = (uint32_t)hop.rtnh_ifindex,
			.weight = (uint16_t)(hop.rtnh_hops + 1),
			.flags = hop.rtnh_flags,
		};
		attrs.next = next + sizeof(hop);
		attrs.left = hop.rtnh_len - sizeof(hop);
		AT_TRY(parse_leg(attrs, family, leg));
		step = RTNH_ALIGN(hop.rtnh_len);
		if (step > left)
			step = left;
		next += step;
		left -= step;
	}
	return 0;
}

/* USER_HZ ticks to seconds, rounded up: a timer of ours must not end before the kernel's. */
static uint32_t seconds(uint32_t ticks)
{
	return ticks / AT_USER_HZ + (ticks % AT_USER_HZ != 0);
}

int at_parse_route(const struct at_message *msg, struct at_route *route, int *truncated)
{
	struct at_leg single = { .weight = 1 };
	struct at_attr multipath = { 0 };
	int has_leg = 0, more;
	struct rta_cacheinfo times = { 0 };
	struct at_attrs attrs;
	struct at_attr attr;
	struct rtmsg rtm;

	AT_TRY(at_body(msg, &rtm, sizeof(rtm), &attrs));
	if (!at_is_ip(rtm.rtm_family) || (rtm.rtm_flags & RTM_F_CLONED))
		return 0;
	if (rtm.rtm_dst_len > at_address_len(rtm.rtm_family) * 8)
		return -EBADMSG;
	/* For packets of some sources only (IPv6 subtrees). */
	if (rtm.rtm_src_len != 0)
		return 0;
	*route = (struct at_route){
		.table = rtm.rtm_table,
		.rtm_flags = rtm.rtm_flags,
		.family = rtm.rtm_family,
		.dst_len = rtm.rtm_dst_len,
		.tos = rtm.rtm_tos,
		.proto = rtm.rtm_protocol,
		.type = rtm.rtm_type,
		.scope = rtm.rtm_scope,
	};
	while ((more = at_attr_next(&attrs, &attr)) > 0) {
		switch (attr.type) {
		case RTA_TABLE:
			AT_TRY(at_attr_get(&attr, &route->table, sizeof(route->table)));
			break;
		case RTA_DST:
			AT_TRY(at_get_address(&attr, rtm.rtm_family, route->dst));
			break;
		case RTA_PREFSRC:
			AT_TRY(at_get_address(&attr, rtm.rtm_family, route->prefsrc));
			break;
		case RTA_PRIORITY:
			AT_TRY(at_attr_get(&attr, &route->metric, sizeof(route->metric)));
			break;
		case RTA_PREF:
			AT_TRY(at_attr_get(&attr, &route->pref, sizeof(route->pref)));
			break;
		case RTA_NH_ID:
			AT_TRY(at_attr_get(&attr, &route->nh_id, sizeof(route->nh_id)));
			break;
		case RTA_CACHEINFO:
			AT_TRY(at_attr_get(&attr, &times, sizeof(times)));
			break;
		case RTA_OIF:
			AT_TRY(at_attr_get(&attr, &single.oif, sizeof(single.oif)));
			has_leg = 1;
			break;
		case RTA_GATEWAY:
			AT_TRY(get_gateway(&attr, rtm.rtm_family, &single));
			has_leg = 1;
			break;
		case RTA_VIA:
			AT_TRY(get_via(&attr, &single));
			has_leg = 1;
			break;
		case RTA_MULTIPATH:
			multipath = attr;
			break;
		}
	}
	AT_TRY(more);
	if (route->table == RT_TABLE_LOCAL)
		return 0;
	if (rtm.rtm_family == AF_INET6) {
		int32_t ticks = (int32_t)times.rta_expires;

		/* Over, though not collected yet: the kernel does not use it any more. */
		if (ticks < 0 && msg->head.nlmsg_type == RTM_NEWROUTE)
			return 0;
		route->expires = ticks > 0 ? seconds((uint32_t)ticks) : 0;
	}
	if (multipath.data) {
		*truncated = parse_multipath(&multipath, rtm.rtm_family, route);
		AT_TRY(*truncated);
	} else if (has_leg) {
		single.flags = (uint8_t)rtm.rtm_flags; /* the low byte is RTNH_F_* */
		route->leg[route->n_legs++] = single;
	}
	return (int)(sizeof(*route) + route->n_legs * sizeof(route->leg[0]));
}
