// SPDX-License-Identifier: Apache-2.0
#include "changes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/if_addr.h>
#include <net/if.h>
#include <sys/socket.h>

#define CHANGES_MAX 100000

struct change {
	uint64_t boot_ns;
	struct inet inet;
	bool add;
};

static struct change changes[CHANGES_MAX];
static size_t n_changes;

/*
 * IPv6 alone: an address that comes is announced by a worker, later than the kernel's answer, and
 * not at all where it has gone again by then.
 */
static int announcements = -1;

static struct {
	unsigned ifindex;
	struct inet first;
	struct inet now;
	unsigned turn;	/* of ROTATION */
	uint64_t every; /* ns */
	uint64_t next;
	bool there;
	bool announced;
} flips;

void change_address(int sock, unsigned ifindex, const struct inet *inet, bool add)
{
	struct ifaddrmsg body = {
		.ifa_family = inet->family,
		.ifa_prefixlen = inet->prefixlen,
		.ifa_index = ifindex,
		.ifa_flags = inet->family == AF_INET6 ? IFA_F_NODAD : 0,
	};
	struct nlmsghdr *head = request(add ? RTM_NEWADDR : RTM_DELADDR,
					add ? NLM_F_CREATE | NLM_F_EXCL : 0, &body, sizeof(body));

	put(head, IFA_LOCAL, inet->bytes, inet_size(inet->family));
	put(head, IFA_ADDRESS, inet->bytes, inet_size(inet->family));
	finish(head);
	send_checked(sock, head, "address");
}

void change_told(int sock, unsigned ifindex, const struct inet *inet, bool add)
{
	if (n_changes == CHANGES_MAX)
		die("changes", E2BIG);
	changes[n_changes++] = (struct change){ clock_ns(CLOCK_BOOTTIME), *inet, add };
	change_address(sock, ifindex, inet, add);
}

static void listen_to_ipv6(void)
{
	int group = RTNLGRP_IPV6_IFADDR;

	announcements = request_socket();
	if (setsockopt(announcements, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) <
	    0)
		die("group", errno);
}

void flips_plan(const char *link, const char *address, unsigned ms)
{
	flips.first = parse_inet(address);
	flips.now = flips.first;
	if (flips.first.family == AF_INET6 && flips.first.prefixlen % 8)
		die(address, EINVAL);
	flips.ifindex = if_nametoindex(link);
	if (!flips.ifindex)
		die(link, errno);
	if (flips.first.family == AF_INET6)
		listen_to_ipv6();
	flips.every = ms * 1000000ull;
	flips.next = clock_ns(CLOCK_BOOTTIME) + flips.every;
}

static void rotate(void)
{
	uint32_t ipv4;

	flips.turn = (flips.turn + 1) % ROTATION;
	flips.now = flips.first;
	if (flips.first.family == AF_INET6) {
		flips.now.bytes[flips.first.prefixlen / 8 - 1] += flips.turn;
		return;
	}
	memcpy(&ipv4, flips.first.bytes, sizeof(ipv4));
	ipv4 = htonl(ntohl(ipv4) + ((uint32_t)flips.turn << (32 - flips.first.prefixlen)));
	memcpy(flips.now.bytes, &ipv4, sizeof(ipv4));
}

static bool announces(const struct nlmsghdr *head)
{
	const struct ifaddrmsg *body = NLMSG_DATA(head);
	const struct rtattr *attr = IFA_RTA(body);
	int left = IFA_PAYLOAD(head);

	for (; head->nlmsg_type == RTM_NEWADDR && RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if (attr->rta_type == IFA_ADDRESS &&
		    !memcmp(RTA_DATA(attr), flips.now.bytes, inet_size(AF_INET6)))
			return true;
	return false;
}

/* Whether the next flip may come: 0, or MSG_DONTWAIT. */
static bool is_announced(int flags)
{
	static uint8_t message[8192] __attribute__((aligned(NLMSG_ALIGNTO)));

	while (flips.there && announcements >= 0 && !flips.announced) {
		if (recv(announcements, message, sizeof(message), flags) >= 0)
			flips.announced = announces((struct nlmsghdr *)message);
		else if (errno == ENOBUFS)
			flips.announced = true; /* what was lost may have been it */
		else if (errno == EAGAIN)
			return false;
		else
			die("announcements", errno);
	}
	return true;
}

static void flip(int sock)
{
	flips.next = clock_ns(CLOCK_BOOTTIME) + flips.every;
	change_told(sock, flips.ifindex, &flips.now, !flips.there);
	if (flips.there)
		rotate();
	flips.there = !flips.there;
	flips.announced = false;
}

void flip_if_due(int sock)
{
	if (flips.every && clock_ns(CLOCK_BOOTTIME) >= flips.next && is_announced(MSG_DONTWAIT))
		flip(sock);
}

void flip_when_due(int sock)
{
	struct timespec t = {
		.tv_sec = flips.next / 1000000000u,
		.tv_nsec = flips.next % 1000000000u,
	};

	/* Never two in a row: a reader may take them for none. */
	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
	is_announced(0);
	flip(sock);
}

void flips_end(int sock)
{
	is_announced(0);
	if (flips.there)
		flip(sock);
}

void changes_print(void)
{
	char text[INET6_ADDRSTRLEN];

	printf("\"changes\": [");
	for (size_t i = 0; i < n_changes; i++) {
		const struct change *c = &changes[i];

		inet_ntop(c->inet.family, c->inet.bytes, text, sizeof(text));
		printf("%s[%llu, \"%c%s\"]", i ? ", " : "", (unsigned long long)c->boot_ns,
		       c->add ? '+' : '-', text);
	}
	printf("]");
}
