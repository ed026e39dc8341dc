// SPDX-License-Identifier: Apache-2.0
/*
 * The least that somebody could do who waits for an address to come and go: what addrtracker takes
 * is compared with this.
 *
 *   floor recv ADDRESS BYTES    a loop of recv on the groups of addrtracker, with a buffer of so
 *                               many bytes; looks at each message, the address itself included
 *   floor ring ADDRESS FDS      a reader of the ring that the program fills, in C and no more
 *   floor source ADDRESS [FDS]  the source and the engine of addrtracker without Python: sees the
 *                               address become the best one, or cease to be it
 *
 * FDS: descriptors PROGRAM,RING,ALARM,COUNTS,SHARED,FILTERS,FILTER0,FILTER1,LINKS,WATCHED,TRACED and
 * the bytes of the ring. Prints a line when it is ready, and at SIGTERM, once nothing is left to
 * read, one JSON object: processor time since then, CLOCK_BOOTTIME of each sight, messages read
 * and lost.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "bpf.h"
#include "filter.h"
#include "netlink.h"

#define SIGHTS_MAX 100000
#define MAIN_TABLE 254
#define N_FDS	   12

static uint8_t wanted[4];
static uint64_t sights[SIGHTS_MAX];
static size_t n_sights;
static uint64_t messages;
static double processor_before;
static int sock = -1;
static struct at_source *source;
static struct at_bpf fds;
static uint64_t *consumed;
static const uint64_t *produced;

static void die(const char *what, int error)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(error));
	exit(1);
}

static void saw(void)
{
	if (n_sights == SIGHTS_MAX)
		die("sights", E2BIG);
	sights[n_sights++] = at_boot_ns();
}

static double processor(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void memory_of_socket(int fd, uint32_t memory[SK_MEMINFO_VARS])
{
	socklen_t size = SK_MEMINFO_VARS * sizeof(*memory);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &size) < 0)
		die("SO_MEMINFO", errno);
}

static int nothing_left(void)
{
	uint32_t memory[SK_MEMINFO_VARS];

	memory_of_socket(source ? at_source_fd(source) : sock, memory);
	return memory[SK_MEMINFO_RMEM_ALLOC] == 0 &&
	       (!consumed || __atomic_load_n(consumed, __ATOMIC_ACQUIRE) ==
				     __atomic_load_n(produced, __ATOMIC_ACQUIRE));
}

static void report(void)
{
	uint32_t memory[SK_MEMINFO_VARS];
	double taken;

	while (!nothing_left())
		usleep(1000);
	taken = processor() - processor_before;
	memory_of_socket(source ? at_source_fd(source) : sock, memory);
	printf("{\"processor\": %.6f, \"messages\": %llu, \"lost\": %u, \"sights\": [", taken,
	       (unsigned long long)messages, memory[SK_MEMINFO_DROPS]);
	for (size_t i = 0; i < n_sights; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)sights[i]);
	printf("]}\n");
	fflush(stdout);
	_exit(0);
}

static void *wait_for_end(void *set)
{
	int number;

	sigwait(set, &number);
	report();
	return NULL;
}

static void be_ready(void)
{
	printf("ready\n");
	fflush(stdout);
	processor_before = processor();
}

static void open_socket(int rcvbuf, int program)
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
	if (program >= 0 &&
	    setsockopt(sock, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)) < 0)
		die("SO_ATTACH_BPF", errno);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (setsockopt(sock, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i],
			       sizeof(groups[i])) < 0)
			die("group", errno);
}

static void look_at(struct nlmsghdr *head)
{
	struct ifaddrmsg *body = NLMSG_DATA(head);
	struct rtattr *attr = IFA_RTA(body);
	int left = IFA_PAYLOAD(head);

	messages++;
	if (head->nlmsg_type != RTM_NEWADDR && head->nlmsg_type != RTM_DELADDR)
		return;
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if (attr->rta_type == IFA_LOCAL && !memcmp(RTA_DATA(attr), wanted, sizeof(wanted)))
			saw();
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

static int is_best(struct at_engine *e)
{
	static struct at_view view;

	at_engine_view(e, 0, AF_INET, &view);
	return view.has_best && !memcmp(view.best.addr.local, wanted, sizeof(wanted));
}

static void loop_source(struct at_engine *e)
{
	int was = is_best(e), is;

	for (;;) {
		int bits = at_source_wait(source, UINT64_MAX);

		if (bits < 0)
			die("wait", -bits);
		is = is_best(e);
		if (is != was)
			saw();
		was = is;
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

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	static sigset_t end;
	pthread_t waiting;

	if (argc > 2 && inet_pton(AF_INET, argv[2], wanted) != 1)
		die(argv[2], EINVAL);
	sigaddset(&end, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	if (pthread_create(&waiting, NULL, wait_for_end, &end))
		die("thread", errno);
	if (!strcmp(what, "recv") && argc == 4) {
		open_socket(atoi(argv[3]), -1);
		be_ready();
		loop_recv();
	} else if (!strcmp(what, "ring") && argc == 4) {
		parse_fds(argv[3]);
		set_filter();
		open_socket(1 << 20, fds.prog);
		map_ring();
		be_ready();
		loop_ring();
	} else if (!strcmp(what, "source") && argc >= 3) {
		struct at_engine *e;

		if (argc == 4)
			parse_fds(argv[3]);
		e = open_source(argc == 4 ? &fds : NULL);
		be_ready();
		loop_source(e);
	}
	fprintf(stderr, "usage: floor recv ADDRESS BYTES | ring ADDRESS FDS | "
			"source ADDRESS [FDS]\n");
	return 2;
}
