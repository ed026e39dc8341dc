// SPDX-License-Identifier: Apache-2.0
#include "lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/nexthop.h>
#include <sys/socket.h>

typedef void (*take)(struct lists *into, const struct nlmsghdr *head);

int list_socket(void)
{
	int sock = request_socket(), on = 1;

	if (setsockopt(sock, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on)) < 0)
		die("NETLINK_GET_STRICT_CHK", errno);
	return sock;
}

void lists_clear(struct lists *lists)
{
	lists->links.n = lists->addresses.n = lists->routes.n = 0;
	lists->nexthops.n = lists->rules.n = 0;
}

static void *add(struct list *list, size_t size)
{
	if (list->n == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		list->rows = realloc(list->rows, list->room * size);
		if (!list->rows)
			die("list", ENOMEM);
	}
	return memset((uint8_t *)list->rows + list->n++ * size, 0, size);
}

static uint32_t u32(const struct rtattr *attr)
{
	uint32_t value;

	memcpy(&value, RTA_DATA(attr), sizeof(value));
	return value;
}

static void copy(void *into, size_t room, const struct rtattr *attr)
{
	size_t size = RTA_PAYLOAD(attr);

	memcpy(into, RTA_DATA(attr), size < room ? size : room);
}

/* The attributes behind a body of so many bytes. */
#define each_attr(attr, left, head, size)                                                          \
	unsigned left = NLMSG_PAYLOAD(head, size);                                                 \
	for (struct rtattr *attr = (void *)((uint8_t *)NLMSG_DATA(head) + NLMSG_ALIGN(size));      \
	     RTA_OK(attr, left); attr = RTA_NEXT(attr, left))

static void take_link(struct lists *into, const struct nlmsghdr *head)
{
	const struct ifinfomsg *body = NLMSG_DATA(head);
	struct link_row *row = add(&into->links, sizeof(*row));

	row->ifindex = body->ifi_index;
	row->flags = body->ifi_flags;
	each_attr(attr, left, head, sizeof(*body)) if (attr->rta_type == IFLA_IFNAME)
		copy(row->name, sizeof(row->name) - 1, attr);
}

static void take_address(struct lists *into, const struct nlmsghdr *head)
{
	const struct ifaddrmsg *body = NLMSG_DATA(head);
	struct address_row *row = add(&into->addresses, sizeof(*row));
	bool local = false;

	row->inet.family = body->ifa_family;
	row->inet.prefixlen = body->ifa_prefixlen;
	row->ifindex = body->ifa_index;
	each_attr(attr, left, head, sizeof(*body))
	{
		if (attr->rta_type == IFA_LOCAL || (attr->rta_type == IFA_ADDRESS && !local))
			copy(row->inet.bytes, sizeof(row->inet.bytes), attr);
		local |= attr->rta_type == IFA_LOCAL;
		if (attr->rta_type == IFA_FLAGS)
			row->flags = u32(attr);
	}
}

static void take_gateways(struct route_row *row, const struct rtattr *multipath)
{
	const struct rtnexthop *first = RTA_DATA(multipath);
	unsigned left = first->rtnh_len - sizeof(*first);

	row->oif = first->rtnh_ifindex;
	for (struct rtattr *attr = RTNH_DATA(first); RTA_OK(attr, left);
	     attr = RTA_NEXT(attr, left))
		if (attr->rta_type == RTA_GATEWAY)
			copy(row->gateway, sizeof(row->gateway), attr);
}

static void take_route(struct lists *into, const struct nlmsghdr *head)
{
	const struct rtmsg *body = NLMSG_DATA(head);
	struct route_row *row = add(&into->routes, sizeof(*row));

	row->to.family = body->rtm_family;
	row->to.prefixlen = body->rtm_dst_len;
	each_attr(attr, left, head, sizeof(*body))
	{
		switch (attr->rta_type) {
		case RTA_DST:
			copy(row->to.bytes, sizeof(row->to.bytes), attr);
			break;
		case RTA_GATEWAY:
			copy(row->gateway, sizeof(row->gateway), attr);
			break;
		case RTA_OIF:
			row->oif = u32(attr);
			break;
		case RTA_PRIORITY:
			row->metric = u32(attr);
			break;
		case RTA_NH_ID:
			row->nexthop = u32(attr);
			break;
		case RTA_MULTIPATH:
			take_gateways(row, attr);
			break;
		}
	}
}

static void take_nexthop(struct lists *into, const struct nlmsghdr *head)
{
	struct nexthop_row *row = add(&into->nexthops, sizeof(*row));

	each_attr(attr, left, head, sizeof(struct nhmsg))
	{
		if (attr->rta_type == NHA_ID)
			row->id = u32(attr);
		else if (attr->rta_type == NHA_OIF)
			row->oif = u32(attr);
		else if (attr->rta_type == NHA_GATEWAY)
			copy(row->gateway, sizeof(row->gateway), attr);
	}
}

static void take_rule(struct lists *into, const struct nlmsghdr *head)
{
	const struct fib_rule_hdr *body = NLMSG_DATA(head);
	struct rule_row *row = add(&into->rules, sizeof(*row));

	row->family = body->family;
	row->table = body->table;
	each_attr(attr, left, head, sizeof(*body))
	{
		if (attr->rta_type == FRA_PRIORITY)
			row->priority = u32(attr);
		else if (attr->rta_type == FRA_TABLE)
			row->table = u32(attr);
	}
}

/* What ends a dump; there is no main table before it has had a route. */
static void end_of(const struct nlmsghdr *head)
{
	int error = *(const int *)NLMSG_DATA(head);

	if (error < 0 && error != -ENOENT)
		die("dump", -error);
}

static bool dump(int sock, struct lists *into, take take)
{
	static uint8_t buffer[64 * 1024] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool whole = true;

	send_requests(sock);
	for (;;) {
		ssize_t size = recv(sock, buffer, sizeof(buffer), 0);
		unsigned left = size > 0 ? (unsigned)size : 0;

		if (size < 0)
			die("dump", errno);
		for (struct nlmsghdr *head = (void *)buffer; NLMSG_OK(head, left);
		     head = NLMSG_NEXT(head, left)) {
			whole &= !(head->nlmsg_flags & NLM_F_DUMP_INTR);
			if (head->nlmsg_type == NLMSG_DONE || head->nlmsg_type == NLMSG_ERROR) {
				end_of(head);
				return whole;
			}
			take(into, head);
		}
	}
}

bool list_links(int sock, struct lists *into)
{
	struct ifinfomsg body = { 0 };
	struct nlmsghdr *head = request(RTM_GETLINK, NLM_F_DUMP, &body, sizeof(body));

	put_u32(head, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	finish(head);
	return dump(sock, into, take_link);
}

bool list_addresses(int sock, struct lists *into, int family)
{
	struct ifaddrmsg body = { .ifa_family = family };

	finish(request(RTM_GETADDR, NLM_F_DUMP, &body, sizeof(body)));
	return dump(sock, into, take_address);
}

bool list_routes(int sock, struct lists *into, int family)
{
	struct rtmsg body = { .rtm_family = family, .rtm_table = RT_TABLE_MAIN };

	finish(request(RTM_GETROUTE, NLM_F_DUMP, &body, sizeof(body)));
	return dump(sock, into, take_route);
}

bool list_nexthops(int sock, struct lists *into)
{
	struct nhmsg body = { 0 };

	finish(request(RTM_GETNEXTHOP, NLM_F_DUMP, &body, sizeof(body)));
	return dump(sock, into, take_nexthop);
}

bool list_rules(int sock, struct lists *into, int family)
{
	struct fib_rule_hdr body = { .family = family };

	finish(request(RTM_GETRULE, NLM_F_DUMP, &body, sizeof(body)));
	return dump(sock, into, take_rule);
}
