// SPDX-License-Identifier: Apache-2.0
/*
 * The least that somebody could do who waits for addresses to come and go: what addrtracker takes
 * is compared with this. WATCH is the network of those addresses.
 *
 *   floor recv WATCH BYTES    a loop of recv on the groups of addrtracker, with a buffer of so many
 *                             bytes; looks at each message, those of addresses included
 *   floor ring WATCH FDS      a reader of the ring that the program fills, in C and no more
 *   floor source WATCH [FDS]  the source and the engine of addrtracker without Python: sees an
 *                             address become the best one, or cease to be it
 *   floor dump                asks for everything once, and keeps what an answer needs of it
 *
 * FDS: descriptors PROGRAM,RING,ALARM,COUNTS,SHARED,FILTERS,FILTER0,FILTER1,LINKS,WATCHED,TRACED and
 * the bytes of the ring. Prints a line when it is ready, and at SIGTERM what sights.h says.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "bpf.h"
#include "filter.h"
#include "lists.h"
#include "netlink.h"
#include "sights.h"

#define MAIN_TABLE 254
#define N_FDS	   12

const char *const program = "floor";

static int sock = -1;
static struct at_source *source;
static struct at_bpf fds;
static uint64_t *consumed;
static const uint64_t *produced;

static void open_socket(int rcvbuf, int filter)
{
	static const int groups[] = {
		RTNLGRP_LINK,	    RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
		RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,	 RTNLGRP_NEXTHOP,
	};
	struct sockaddr_nl local = { .nl_family = AF_NETLINK };

	sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (sock < 0 || bind(sock, (struct sockaddr *)&local, sizeof(local)) < 0)
		die("socket", errno);
	if (setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &rcvbuf, sizeof(rcvbuf)) < 0)
		die("SO_RCVBUFFORCE", errno);
	if (filter >= 0 && setsockopt(sock, SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof(filter)) < 0)
		die("SO_ATTACH_BPF", errno);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (setsockopt(sock, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i],
			       sizeof(groups[i])) < 0)
			die("group", errno);
}

static void look_at(struct nlmsghdr *head)
{
	struct ifaddrmsg *body = NLMSG_DATA(head);
	struct rtattr *attr = IFA_RTA(body), *found = NULL;
	int left = IFA_PAYLOAD(head);

	messages++;
	if (head->nlmsg_type != RTM_NEWADDR && head->nlmsg_type != RTM_DELADDR)
		return;
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if (attr->rta_type == IFA_LOCAL || (attr->rta_type == IFA_ADDRESS && !found))
			found = attr;
	if (found)
		sights_saw(body->ifa_family, RTA_DATA(found), head->nlmsg_type == RTM_NEWADDR);
}

static void loop_recv(void)
{
	static uint8_t buffer[64 * 1024] __attribute__((aligned(NLMSG_ALIGNTO)));

	for (;;) {
		ssize_t size = recv(sock, buffer, sizeof(buffer), 0);
		struct nlmsghdr *head = (struct nlmsghdr *)buffer;
		unsigned left = size > 0 ? (unsigned)size : 0;

		if (size < 0 && errno != ENOBUFS)
			die("recv", errno);
		for (; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left))
			look_at(head);
	}
}

static long bpf_set(int map, uint32_t key, const void *value)
{
	union bpf_attr attr = {
		.map_fd = (uint32_t)map,
		.key = (uint64_t)(uintptr_t)&key,
		.value = (uint64_t)(uintptr_t)value,
	};

	return syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr));
}

/* As addrtracker does it for its default policy. */
static void set_filter(void)
{
	struct at_filter filter = { .n_tables = 1, .tables = { MAIN_TABLE } };

	if (bpf_set(fds.filter[0], 0, &filter) || bpf_set(fds.filters, 0, &fds.filter[0]))
		die("filter", errno);
}

/* Nothing but the message: the program drops what else there could be. */
static void look_at_record(const struct at_header *head)
{
	if (head->kind == AT_KIND_RAW)
		look_at((struct nlmsghdr *)((struct at_raw *)(head + 1) + 1));
}

static void read_ring(const uint8_t *data)
{
	uint64_t at = *consumed;

	while (at < __atomic_load_n(produced, __ATOMIC_ACQUIRE)) {
		const uint32_t *length = (const void *)(data + (at & (fds.ring_bytes - 1)));
		uint32_t size = __atomic_load_n(length, __ATOMIC_ACQUIRE);

		if (size & BPF_RINGBUF_BUSY_BIT)
			return;
		if (!(size & BPF_RINGBUF_DISCARD_BIT))
			look_at_record((const void *)(length + BPF_RINGBUF_HDR_SZ / 4));
		size &= ~BPF_RINGBUF_DISCARD_BIT;
		at += (size + BPF_RINGBUF_HDR_SZ + 7) & ~7ull;
		__atomic_store_n(consumed, at, __ATOMIC_RELEASE);
	}
}

static void map_ring(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	consumed = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fds.ring, 0);
	produced = mmap(NULL, page + 2 * (size_t)fds.ring_bytes, PROT_READ, MAP_SHARED, fds.ring,
			(off_t)page);
	if (consumed == MAP_FAILED || produced == MAP_FAILED)
		die("ring", errno);
}

static void loop_ring(void)
{
	const uint8_t *data = (const uint8_t *)produced + sysconf(_SC_PAGESIZE);
	struct pollfd ring = { .fd = fds.ring, .events = POLLIN };

	for (;;) {
		read_ring(data);
		if (poll(&ring, 1, -1) < 0 && errno != EINTR)
			die("poll", errno);
	}
}

/* The criteria that the flips of benchmarks/load.c need: a /24 is better than a /32. */
static void set_policy(struct at_engine *e)
{
	struct at_policy p = {
		.families = 3,
		.fallback = AT_FALLBACK_AUTO,
		.table = MAIN_TABLE,
		.n_criteria = 3,
		.criteria = { AT_CRIT_DEFAULT_ROUTE, AT_CRIT_NOT_VIP_LIKE, AT_CRIT_IFINDEX },
	};

	if (at_engine_set_policy(e, 0, &p))
		die("policy", EINVAL);
}

static void dump_dirty(struct at_engine *e)
{
	struct at_dirty dirt[64];
	size_t n = at_engine_dirty(e, dirt, 64);

	for (size_t i = 0; i < n && i < 64; i++)
		at_source_dump(source, dirt[i].scope, dirt[i].ifindex, dirt[i].table, 0);
}

/* The best address of each family, or none of it. */
struct best {
	bool is;
	uint8_t address[16];
};

static void look_at_best(struct at_engine *e, int family, struct best *was)
{
	static struct at_view view;
	struct best is = { 0 };

	at_engine_view(e, 0, family, &view);
	is.is = view.has_best;
	if (is.is)
		memcpy(is.address, view.best.addr.local, sizeof(is.address));
	if (is.is == was->is && !memcmp(is.address, was->address, sizeof(is.address)))
		return;
	if (was->is)
		sights_saw(family, was->address, false);
	if (is.is)
		sights_saw(family, is.address, true);
	*was = is;
}

static void loop_source(struct at_engine *e)
{
	struct best ipv4 = { 0 }, ipv6 = { 0 };

	for (;;) {
		int bits = at_source_wait(source, UINT64_MAX);

		if (bits < 0)
			die("wait", -bits);
		look_at_best(e, AF_INET, &ipv4);
		look_at_best(e, AF_INET6, &ipv6);
		at_engine_changed(e);
		if (bits & AT_WAKE_DIRTY)
			dump_dirty(e);
	}
}

static struct at_engine *open_source(const struct at_bpf *bpf)
{
	struct at_engine *e = at_engine_new();
	int error;

	set_policy(e);
	error = at_source_open(e, 8 << 20, &source);
	if (!error && bpf)
		error = at_bpf_place(bpf);
	if (!error && bpf)
		error = at_source_feed(source, bpf);
	if (error)
		die("source", -error);
	dump_dirty(e);
	at_engine_changed(e);
	return e;
}

static void parse_fds(char *text)
{
	int *into[N_FDS - 1] = {
		&fds.prog,	&fds.ring,	&fds.alarm, &fds.counts,  &fds.shared, &fds.filters,
		&fds.filter[0], &fds.filter[1], &fds.links, &fds.watched, &fds.traced,
	};
	char *word = strtok(text, ",");

	for (size_t i = 0; i < N_FDS - 1 && word; i++, word = strtok(NULL, ","))
		*into[i] = atoi(word);
	if (!word)
		die("descriptors", EINVAL);
	fds.ring_bytes = strtoul(word, NULL, 10);
}

static void dump_once(void)
{
	static struct lists lists;
	int asking = list_socket();
	char line[160];
	bool whole = list_links(asking, &lists) && list_addresses(asking, &lists, AF_UNSPEC) &&
		     list_nexthops(asking, &lists);

	for (int i = 0; i < 2; i++) {
		int family = i ? AF_INET6 : AF_INET;

		whole = whole && list_routes(asking, &lists, family) &&
			list_rules(asking, &lists, family);
	}
	if (!whole)
		die("the host changed meanwhile", EAGAIN);
	snprintf(line, sizeof(line),
		 "{\"links\": %zu, \"addresses\": %zu, \"routes\": %zu, \"nexthops\": %zu, "
		 "\"rules\": %zu}",
		 lists.links.n, lists.addresses.n, lists.routes.n, lists.nexthops.n, lists.rules.n);
	sights_ready(line, -1);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	sights_of(argc > 2 ? argv[2] : "0.0.0.0/0");
	if (!strcmp(what, "recv") && argc == 4) {
		open_socket(atoi(argv[3]), -1);
		sights_ready("ready", sock);
		loop_recv();
	} else if (!strcmp(what, "ring") && argc == 4) {
		parse_fds(argv[3]);
		set_filter();
		open_socket(1 << 20, fds.prog);
		map_ring();
		sights_ready("ready", sock);
		loop_ring();
	} else if (!strcmp(what, "source") && (argc == 3 || argc == 4)) {
		struct at_engine *e;

		if (argc == 4)
			parse_fds(argv[3]);
		e = open_source(argc == 4 ? &fds : NULL);
		messages = UNCOUNTED;
		sights_ready("ready", at_source_fd(source));
		loop_source(e);
	} else if (!strcmp(what, "dump") && argc == 2) {
		dump_once();
	}
	fprintf(stderr, "usage: floor recv WATCH BYTES | ring WATCH FDS | source WATCH [FDS] | "
			"dump\n");
	return 2;
}
