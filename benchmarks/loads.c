// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "loads.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/veth.h>
#include <net/if.h>

#include "changes.h"

#define GROUP	  21	      /* of the links that are deleted together */
#define ROUTES	  0x15000000u /* 21.0.0.0: the first of the routes */
#define ADDRESSES 0x0a000000u /* 10.0.0.0/8: those that a link is filled with */
#define NETWORK	  (1u << 24)

double since(uint64_t start)
{
	return (clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
}

static void put_low(uint8_t bytes[16], size_t at, uint32_t value)
{
	uint32_t ordered = htonl(value);

	memcpy(bytes + at, &ordered, sizeof(ordered));
}

/* BIRD and zebra take routes of their own protocols for their own, and delete them. */
struct nlmsghdr *route(bool add, int family, unsigned ifindex, unsigned number)
{
	struct rtmsg body = {
		.rtm_family = family,
		.rtm_dst_len = 8 * inet_size(family),
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_UNICAST,
	};
	struct nlmsghdr *head = request(add ? RTM_NEWROUTE : RTM_DELROUTE,
					add ? NLM_F_CREATE | NLM_F_EXCL : 0, &body, sizeof(body));
	uint8_t to[16] = { 0xfd, 0x21 }; /* fd21:: */

	put_low(to, inet_size(family) - 4, family == AF_INET ? ROUTES + number : number);
	put(head, RTA_DST, to, inet_size(family));
	put_u32(head, RTA_OIF, ifindex);
	finish(head);
	return head;
}

static struct nlmsghdr *make_pair(const char *name, const char *peer, uint32_t group)
{
	struct ifinfomsg body = { 0 };
	struct nlmsghdr *head =
		request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	struct rtattr *info, *data, *other;

	put(head, IFLA_IFNAME, name, strlen(name) + 1);
	put_u32(head, IFLA_GROUP, group);
	info = put(head, IFLA_LINKINFO, NULL, 0);
	put(head, IFLA_INFO_KIND, "veth", 4);
	data = put(head, IFLA_INFO_DATA, NULL, 0);
	other = put(head, VETH_INFO_PEER, &body, sizeof(body));
	put(head, IFLA_IFNAME, peer, strlen(peer) + 1);
	end_nest(head, other);
	end_nest(head, data);
	end_nest(head, info);
	finish(head);
	return head;
}

static void move(int sock, const char *name, int netns)
{
	struct ifinfomsg body = { 0 };
	struct nlmsghdr *head = request(RTM_NEWLINK, 0, &body, sizeof(body));

	put(head, IFLA_IFNAME, name, strlen(name) + 1);
	put_u32(head, IFLA_NET_NS_FD, netns);
	finish(head);
	send_checked(sock, head, "move");
}

static struct nlmsghdr *set_up(const char *name)
{
	struct ifinfomsg body = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct nlmsghdr *head = request(RTM_NEWLINK, 0, &body, sizeof(body));

	put(head, IFLA_IFNAME, name, strlen(name) + 1);
	finish(head);
	return head;
}

static void delete_group(int sock)
{
	struct ifinfomsg body = { 0 };
	struct nlmsghdr *head = request(RTM_DELLINK, 0, &body, sizeof(body));

	put_u32(head, IFLA_GROUP, GROUP);
	finish(head);
	send_checked(sock, head, "delete");
}

static int socket_in(int netns)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), made;

	if (home < 0 || setns(netns, CLONE_NEWNET) < 0)
		die("namespace", errno);
	made = request_socket();
	if (setns(home, CLONE_NEWNET) < 0)
		die("namespace", errno);
	close(home);
	return made;
}

static void name_pair(const char *name, unsigned n, char near[IFNAMSIZ], char far[IFNAMSIZ])
{
	if (snprintf(near, IFNAMSIZ, "%s%u", name, n) >= IFNAMSIZ ||
	    snprintf(far, IFNAMSIZ, "%s%up", name, n) >= IFNAMSIZ)
		die(name, ENAMETOOLONG);
}

void load_links(int sock, const char *name, unsigned count, const char *path)
{
	int netns = open(path, O_RDONLY | O_CLOEXEC), there;
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	char near[IFNAMSIZ], far[IFNAMSIZ];

	if (netns < 0)
		die(path, errno);
	there = socket_in(netns);
	for (unsigned n = 0; n < count; n++) {
		name_pair(name, n, near, far);
		send_checked(sock, make_pair(near, far, GROUP), "veth");
		move(sock, far, netns);
		send_checked(sock, set_up(near), "up");
		send_checked(there, set_up(far), "up");
		flip_if_due(sock);
		/* One by one the kernel waits 20 ms for each. */
		if ((n + 1) % BATCH == 0 || n + 1 == count)
			delete_group(sock);
	}
	close(there);
	close(netns);
	flips_end(sock);
	printf("\"seconds\": %.6f, ", since(start));
}

/* Sets it to 1. */
static void set(const char *family, const char *link, const char *what)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family, link, what);
	file = fopen(path, "w");
	if (!file || fputs("1", file) < 0 || fclose(file))
		die(path, errno);
}

static struct inet host_of(const struct inet *network, unsigned host)
{
	struct inet made = *network;
	uint32_t base;

	memcpy(&base, network->bytes, sizeof(base));
	put_low(made.bytes, 0, ntohl(base) + 1 + host);
	return made;
}

/*
 * The first address of a link's network is its primary one, and the next one follows where it goes.
 * So each deletion takes the primary. What went comes back as the last, but some deletions later:
 * so long it is not there for those who look at the state alone, too.
 */
void load_promotions(int sock, const char *link, unsigned count, const char *network,
		     unsigned hosts)
{
	unsigned ifindex = if_nametoindex(link), away = hosts / 10;
	struct inet of = parse_inet(network), host;
	uint64_t start;

	if (!ifindex)
		die(link, errno);
	if (of.family != AF_INET || hosts < 10)
		die(network, EINVAL);
	set("ipv4", link, "promote_secondaries");
	start = clock_ns(CLOCK_MONOTONIC);
	for (unsigned n = 0; n < hosts; n++) {
		host = host_of(&of, n);
		change_address(sock, ifindex, &host, true);
	}
	printf("\"add_seconds\": %.6f, ", since(start));
	start = clock_ns(CLOCK_MONOTONIC);
	for (unsigned n = 0; n < count; n++) {
		host = host_of(&of, n % hosts);
		change_told(sock, ifindex, &host, false);
		if (n < away)
			continue;
		host = host_of(&of, (n - away) % hosts);
		change_address(sock, ifindex, &host, true);
	}
	printf("\"seconds\": %.6f, ", since(start));
}

/* The address in this place of a link: all links have a network of each family, of a size. */
static struct nlmsghdr *fill_address(int family, unsigned ifindex, unsigned link, unsigned place,
				     unsigned bits)
{
	struct ifaddrmsg body = {
		.ifa_family = family,
		.ifa_prefixlen = family == AF_INET ? 32 - bits : 64,
		.ifa_index = ifindex,
		.ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0,
	};
	struct nlmsghdr *head =
		request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	uint8_t bytes[16] = { 0 };

	if (family == AF_INET) {
		put_low(bytes, 0, ADDRESSES + (link << bits) + place + 1);
	} else {
		bytes[0] = 0xfd;
		put_low(bytes, 4, link);
		put_low(bytes, 12, place + 1);
	}
	put(head, IFA_LOCAL, bytes, inet_size(family));
	put(head, IFA_ADDRESS, bytes, inet_size(family));
	finish(head);
	return head;
}

static unsigned bits_for(unsigned hosts)
{
	unsigned bits = 2;

	while ((1u << bits) < hosts + 2)
		bits++;
	return bits;
}

/* Sends what was built where a message is full or the last one is reached. */
static void send_filled(int sock, struct nlmsghdr *last, unsigned n, unsigned count)
{
	if ((n + 1) % BATCH == 0 || n + 1 == count)
		send_checked(sock, last, "fill");
}

void load_fill(int sock, const char *name, unsigned links, unsigned addresses, unsigned routes)
{
	unsigned bits = bits_for(addresses / 2 / (links ? links : 1) + 1);
	static unsigned indexes[NETWORK >> 2];
	char near[IFNAMSIZ], far[IFNAMSIZ];
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	if (!links || links > NETWORK >> bits)
		die("links", EINVAL);
	/* No link-local addresses, which come when their DAD is over. */
	set("ipv6", "default", "addr_gen_mode");
	for (unsigned n = 0; n < links; n++) {
		name_pair(name, n, near, far);
		make_pair(near, far, 0);
		set_up(near);
		send_filled(sock, set_up(far), n, links);
	}
	for (unsigned n = 0; n < links; n++) {
		name_pair(name, n, near, far);
		indexes[n] = if_nametoindex(near);
	}
	printf("\"link_seconds\": %.6f, ", since(start));
	start = clock_ns(CLOCK_MONOTONIC);
	for (unsigned n = 0; n < addresses; n++) {
		unsigned link = n / 2 % links;

		send_filled(sock,
			    fill_address(n % 2 ? AF_INET6 : AF_INET, indexes[link], link,
					 n / 2 / links, bits),
			    n, addresses);
	}
	printf("\"address_seconds\": %.6f, ", since(start));
	start = clock_ns(CLOCK_MONOTONIC);
	for (unsigned n = 0; n < routes; n++)
		send_filled(sock,
			    route(true, n % 2 ? AF_INET6 : AF_INET, indexes[n / 2 % links], n / 2),
			    n, routes);
	printf("\"route_seconds\": %.6f, ", since(start));
}
