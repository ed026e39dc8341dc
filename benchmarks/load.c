// SPDX-License-Identifier: Apache-2.0
/*
 * Changes a network namespace as fast as the kernel lets one, and says what each change took.
 *
 *   load routes LINK COUNT ADDRESS/LENGTH MS   COUNT host routes added, then deleted, BATCH
 *                                              requests a message; ADDRESS comes or goes every
 *                                              MS milliseconds meanwhile (0: never)
 *   load flips LINK COUNT ADDRESS/LENGTH MS    ADDRESS comes or goes COUNT times, every MS
 *   load links NAME COUNT NETNS                COUNT veth pairs: made, one end moved into the
 *                                              namespace at that path, both up; every BATCH
 *                                              deleted
 *
 * Prints one JSON object: seconds of each phase, and of each flip the CLOCK_BOOTTIME in
 * nanoseconds right before the request. The address is not on the link before, nor behind.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>

#define BATCH	  100
#define BASE	  0x15000000u /* 21.0.0.0: the first of the routes */
#define GROUP	  21	      /* of the links that are deleted together */
#define FLIPS_MAX 100000

struct flipping {
	unsigned ifindex;
	uint32_t address; /* network order */
	uint8_t prefixlen;
	uint64_t every; /* ns; 0 = never */
	uint64_t next;
	bool there;
	size_t n;
	uint64_t began[FLIPS_MAX];
};

static int sock;
static uint8_t message[64 * 1024] __attribute__((aligned(NLMSG_ALIGNTO)));
static size_t used;
static uint32_t seq;
static struct flipping flips;

static void die(const char *what, int error)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(error));
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Requests are built one behind the other in `message`. */
static struct nlmsghdr *begin(uint16_t type, uint16_t flags, const void *body, size_t size)
{
	struct nlmsghdr *head = (struct nlmsghdr *)(message + used);

	*head = (struct nlmsghdr){
		.nlmsg_len = NLMSG_LENGTH(size),
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_seq = ++seq,
	};
	memcpy(NLMSG_DATA(head), body, size);
	return head;
}

static struct rtattr *put(struct nlmsghdr *head, uint16_t type, const void *value, size_t size)
{
	struct rtattr *attr =
		(struct rtattr *)((uint8_t *)head + NLMSG_ALIGN((size_t)head->nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(attr), value, size);
	head->nlmsg_len = NLMSG_ALIGN(head->nlmsg_len) + RTA_ALIGN(attr->rta_len);
	return attr;
}

static void end_nest(struct nlmsghdr *head, struct rtattr *attr)
{
	attr->rta_len = (uint8_t *)head + head->nlmsg_len - (uint8_t *)attr;
}

static void finish(const struct nlmsghdr *head)
{
	used += NLMSG_ALIGN((size_t)head->nlmsg_len);
}

/* The kernel has done all of it when send returns; the last request alone is acknowledged. */
static void send_by(int by, struct nlmsghdr *last, const char *what)
{
	static uint8_t answer[64 * 1024] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
	const struct nlmsgerr *error = NLMSG_DATA(head);

	last->nlmsg_flags |= NLM_F_ACK;
	if (send(by, message, used, 0) < 0)
		die(what, errno);
	used = 0;
	do {
		if (recv(by, answer, sizeof(answer), 0) < 0)
			die(what, errno);
		if (head->nlmsg_type == NLMSG_ERROR && error->error)
			die(what, -error->error);
	} while (head->nlmsg_type != NLMSG_ERROR || head->nlmsg_seq != seq);
}

static void send_all(struct nlmsghdr *last, const char *what)
{
	send_by(sock, last, what);
}

static void flip(void)
{
	struct ifaddrmsg body = {
		.ifa_family = AF_INET,
		.ifa_prefixlen = flips.prefixlen,
		.ifa_index = flips.ifindex,
	};
	struct nlmsghdr *head =
		begin(flips.there ? RTM_DELADDR : RTM_NEWADDR,
		      flips.there ? 0 : NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));

	put(head, IFA_LOCAL, &flips.address, sizeof(flips.address));
	put(head, IFA_ADDRESS, &flips.address, sizeof(flips.address));
	finish(head);
	if (flips.n == FLIPS_MAX)
		die("flips", E2BIG);
	flips.began[flips.n++] = clock_ns(CLOCK_BOOTTIME);
	send_all(head, "address");
	flips.there = !flips.there;
}

static void flip_if_due(void)
{
	uint64_t now = flips.every ? clock_ns(CLOCK_BOOTTIME) : 0;

	if (now < flips.next)
		return;
	if (flips.every) {
		flip();
		flips.next = now + flips.every;
	}
}

static struct nlmsghdr *route(bool add, unsigned number)
{
	struct rtmsg body = {
		.rtm_family = AF_INET,
		.rtm_dst_len = 32,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_BIRD,
		.rtm_scope = RT_SCOPE_LINK,
		.rtm_type = RTN_UNICAST,
	};
	struct nlmsghdr *head = begin(add ? RTM_NEWROUTE : RTM_DELROUTE,
				      add ? NLM_F_CREATE | NLM_F_EXCL : 0, &body, sizeof(body));
	uint32_t to = htonl(BASE + number);

	put(head, RTA_DST, &to, sizeof(to));
	put(head, RTA_OIF, &flips.ifindex, sizeof(flips.ifindex));
	finish(head);
	return head;
}

/* Seconds for all routes; flips between two messages count as well, and are few. */
static double routes(bool add, unsigned count)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	for (unsigned done = 0; done < count;) {
		struct nlmsghdr *last = NULL;

		for (unsigned n = 0; n < BATCH && done < count; n++)
			last = route(add, done++);
		send_all(last, "route");
		flip_if_due();
	}
	return (clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
}

static void wait_until(uint64_t boot_ns)
{
	struct timespec t = { .tv_sec = boot_ns / 1000000000u, .tv_nsec = boot_ns % 1000000000u };

	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void make_pair(const char *name, const char *peer)
{
	struct ifinfomsg body = { 0 }, none = { 0 };
	struct nlmsghdr *head = begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));
	struct rtattr *info, *data, *other;

	put(head, IFLA_IFNAME, name, strlen(name) + 1);
	put(head, IFLA_GROUP, &(uint32_t){ GROUP }, sizeof(uint32_t));
	info = put(head, IFLA_LINKINFO, NULL, 0);
	put(head, IFLA_INFO_KIND, "veth", 4);
	data = put(head, IFLA_INFO_DATA, NULL, 0);
	other = put(head, VETH_INFO_PEER, &none, sizeof(none));
	put(head, IFLA_IFNAME, peer, strlen(peer) + 1);
	end_nest(head, other);
	end_nest(head, data);
	end_nest(head, info);
	finish(head);
	send_all(head, "veth");
}

static void move(const char *name, int netns)
{
	struct ifinfomsg body = { 0 };
	struct nlmsghdr *head = begin(RTM_NEWLINK, 0, &body, sizeof(body));

	put(head, IFLA_IFNAME, name, strlen(name) + 1);
	put(head, IFLA_NET_NS_FD, &netns, sizeof(netns));
	finish(head);
	send_all(head, "move");
}

static void set_up(int by, const char *name)
{
	struct ifinfomsg body = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct nlmsghdr *head = begin(RTM_NEWLINK, 0, &body, sizeof(body));

	put(head, IFLA_IFNAME, name, strlen(name) + 1);
	finish(head);
	send_by(by, head, "up");
}

static void delete_group(void)
{
	struct ifinfomsg body = { 0 };
	struct nlmsghdr *head = begin(RTM_DELLINK, 0, &body, sizeof(body));

	put(head, IFLA_GROUP, &(uint32_t){ GROUP }, sizeof(uint32_t));
	finish(head);
	send_all(head, "delete");
}

static int open_socket(void)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK };
	int made = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (made < 0 || bind(made, (struct sockaddr *)&local, sizeof(local)) < 0)
		die("socket", errno);
	return made;
}

static int socket_in(int netns)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), made;

	if (home < 0 || setns(netns, CLONE_NEWNET) < 0)
		die("namespace", errno);
	made = open_socket();
	if (setns(home, CLONE_NEWNET) < 0)
		die("namespace", errno);
	close(home);
	return made;
}

static double links(const char *name, unsigned count, const char *path)
{
	int netns = open(path, O_RDONLY | O_CLOEXEC), there;
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	char near[IFNAMSIZ], far[IFNAMSIZ];

	if (netns < 0)
		die(path, errno);
	there = socket_in(netns);
	for (unsigned n = 0; n < count; n++) {
		snprintf(near, sizeof(near), "%.8s%u", name, n);
		snprintf(far, sizeof(far), "%.8s%up", name, n);
		make_pair(near, far);
		move(far, netns);
		set_up(sock, near);
		set_up(there, far);
		/* One by one the kernel waits 20 ms for each. */
		if ((n + 1) % BATCH == 0 || n + 1 == count)
			delete_group();
	}
	close(there);
	close(netns);
	return (clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
}

static void plan_flips(const char *link, const char *address, unsigned ms)
{
	char text[INET_ADDRSTRLEN + 4];
	char *slash;

	snprintf(text, sizeof(text), "%s", address);
	slash = strchr(text, '/');
	if (!slash)
		die(address, EINVAL);
	*slash = '\0';
	if (inet_pton(AF_INET, text, &flips.address) != 1)
		die(address, EINVAL);
	flips.prefixlen = strtoul(slash + 1, NULL, 10);
	flips.ifindex = if_nametoindex(link);
	if (!flips.ifindex)
		die(link, errno);
	flips.every = ms * 1000000ull;
	flips.next = clock_ns(CLOCK_BOOTTIME) + flips.every;
}

static void print_flips(void)
{
	printf("\"flips\": [");
	for (size_t i = 0; i < flips.n; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)flips.began[i]);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	unsigned count = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;

	sock = open_socket();
	if (!strcmp(what, "links") && argc == 5) {
		printf("{\"seconds\": %.6f}\n", links(argv[2], count, argv[4]));
		return 0;
	}
	if (argc != 6) {
		fprintf(stderr, "usage: load routes|flips LINK COUNT ADDRESS/LENGTH MS\n"
				"       load links NAME COUNT NETNS\n");
		return 2;
	}
	plan_flips(argv[2], argv[4], strtoul(argv[5], NULL, 10));
	if (!strcmp(what, "routes")) {
		double add = routes(true, count), del = routes(false, count);

		if (flips.there)
			flip();
		printf("{\"add_seconds\": %.6f, \"delete_seconds\": %.6f, ", add, del);
	} else {
		for (unsigned n = 0; n < count; n++) {
			/* Never two in a row: a reader may take them for none. */
			wait_until(flips.next);
			flips.next = clock_ns(CLOCK_BOOTTIME) + flips.every;
			flip();
		}
		printf("{");
	}
	print_flips();
	return 0;
}
