// SPDX-License-Identifier: Apache-2.0
/* The multicast socket and the wait loop. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <linux/sock_diag.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "source.h"

#define NEVER UINT64_MAX

/* Datagrams between two looks at what else is due. */
#define READ_LIMIT 256
#define LOOK_EVERY 64

/* The least that the kernel takes. */
#define SLICE_NS 100000

uint64_t at_boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The socket of the BPF tier has news only where something went wrong, and then ends our sleep; who
 * never sleeps looks now and then. */
static int read_some(struct at_source *s)
{
	int err = s->feed ? at_feed_read(s, READ_LIMIT) : 0;

	if (err < 0 || (s->feed && ++s->awake % LOOK_EVERY))
		return err;
	return at_socket_read(s, READ_LIMIT);
}

int at_source_catch_up(struct at_source *s)
{
	int err = s->feed ? at_feed_read(s, AT_CATCH_UP_LIMIT) : 0;

	return err < 0 ? err : at_socket_read(s, AT_CATCH_UP_LIMIT);
}

/* Both only grow. */
static uint64_t lookups_of(const struct at_engine *e)
{
	return at_engine_lookups(e) + at_engine_vrfs(e);
}

static int wake_bits(struct at_source *s)
{
	uint64_t lookups = lookups_of(s->engine);
	int bits = 0;

	if (at_engine_pending(s->engine))
		bits |= AT_WAKE_CHANGED;
	if (s->tap.used)
		bits |= AT_WAKE_TAP;
	if (lookups != s->lookups)
		bits |= AT_WAKE_LOOKUPS;
	s->lookups = lookups;
	return bits;
}

int at_source_drain(struct at_source *s)
{
	struct at_dirty dirt;
	int err = at_source_catch_up(s);

	if (err < 0)
		return err;
	return wake_bits(s) | (at_engine_dirty(s->engine, &dirt, 1) ? AT_WAKE_DIRTY : 0);
}

/* Absolute CLOCK_BOOTTIME, so that a host that slept past the deadline wakes us at once. */
static int arm(struct at_source *s, uint64_t deadline)
{
	struct itimerspec when = { 0 };

	if (deadline == s->armed)
		return 0;
	if (deadline != NEVER) {
		when.it_value.tv_sec = (time_t)(deadline / 1000000000u);
		when.it_value.tv_nsec = (long)(deadline % 1000000000u);
	}
	if (timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0)
		return -errno;
	s->armed = deadline;
	return 0;
}

/* Runs the engine's timers; AT_WAKE_TIMEOUT if the caller's deadline is over. */
static int run_timers(struct at_source *s, uint64_t deadline)
{
	uint64_t engine = at_engine_deadline(s->engine);
	uint64_t now;

	if (engine == NEVER && deadline == NEVER)
		return 0;
	now = at_boot_ns();
	if (engine <= now)
		at_engine_tick(s->engine, now);
	return deadline <= now ? AT_WAKE_TIMEOUT : 0;
}

static int sleep_until(struct at_source *s, uint64_t deadline)
{
	struct pollfd fds[] = {
		{ .fd = s->sock, .events = POLLIN },
		{ .fd = s->wake_fd, .events = POLLIN },
		{ .fd = s->timer_fd, .events = POLLIN },
		{ .fd = s->feed ? at_feed_ring(s->feed) : -1, .events = POLLIN },
		{ .fd = s->feed ? at_feed_alarm(s->feed) : -1, .events = POLLIN },
	};
	uint64_t engine = at_engine_deadline(s->engine);
	uint64_t count;
	int err = arm(s, engine < deadline ? engine : deadline);

	if (err < 0)
		return err;
	if (poll(fds, s->feed ? 5 : 3, -1) < 0)
		return errno == EINTR ? AT_WAKE_USER : -errno;
	/* Both stay readable until they are read; the timer fires once. */
	if (fds[2].revents && read(s->timer_fd, &count, sizeof(count)) == sizeof(count))
		s->armed = NEVER;
	if (fds[1].revents && read(s->wake_fd, &count, sizeof(count)) == sizeof(count))
		return AT_WAKE_USER;
	/* Also where it says no more than that there is an error, which is reported once. */
	return s->feed && fds[0].revents ? at_socket_read(s, AT_CATCH_UP_LIMIT) : 0;
}

/*
 * Where others keep all processors busy, who wakes up waits for the end of somebody's slice, unless
 * its own would end earlier. We need no more than a short one at a time, and to ask for it takes no
 * privilege (Linux 6.12; before that the kernel tells no slice here). A class or a slice that somebody
 * chose for us stays.
 */
static void be_prompt(struct at_source *s)
{
	struct sched_attr attr = { 0 };

	if (s->prompt)
		return;
	s->prompt = 1;
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
	    attr.sched_policy != SCHED_NORMAL || attr.sched_runtime <= SLICE_NS)
		return;
	attr.sched_runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

int at_source_wait(struct at_source *s, uint64_t deadline_ns)
{
	uint32_t dirtied = at_engine_dirtied(s->engine);
	int bits = 0;

	be_prompt(s);
	for (;;) {
		int err = read_some(s);

		if (err < 0)
			return err;
		bits |= run_timers(s, deadline_ns) | wake_bits(s);
		if (at_engine_dirtied(s->engine) != dirtied)
			bits |= AT_WAKE_DIRTY;
		if (bits)
			return bits;
		err = s->feed ? at_feed_watch(s) : 0;
		if (err > 0)
			continue;
		if (err == 0)
			err = sleep_until(s, deadline_ns);
		if (err < 0)
			return err;
		bits = err;
	}
}

int at_source_wait_glance(struct at_source *s, uint64_t deadline_ns, struct at_glance *out)
{
	int bits = at_source_wait(s, deadline_ns);

	out->changed = 0;
	if (bits > 0 && bits & AT_WAKE_CHANGED)
		at_engine_glance(s->engine, out);
	return bits;
}

void at_source_wake(struct at_source *s)
{
	uint64_t one = 1;
	ssize_t done = write(s->wake_fd, &one, sizeof(one));

	(void)done; /* a counter that is full wakes as well */
}

static int join(int sock)
{
	static const int groups[] = {
		RTNLGRP_LINK,	    RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
		RTNLGRP_IPV6_ROUTE, RTNLGRP_NEXTHOP,	 RTNLGRP_IPV4_RULE,   RTNLGRP_IPV6_RULE,
	};
	size_t n = sizeof(groups) / sizeof(groups[0]);

	for (size_t i = 0; i < n; i++) {
		if (setsockopt(sock, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i],
			       sizeof(groups[i])) == 0)
			continue;
		/* Before Linux 5.3 there are no nexthop objects, and no group for them. */
		if (groups[i] != RTNLGRP_NEXTHOP || errno != EINVAL)
			return -errno;
	}
	return 0;
}

static void set_rcvbuf(struct at_source *s, uint32_t bytes)
{
	int size = bytes > INT32_MAX ? INT32_MAX : (int)bytes;
	socklen_t len = sizeof(size);

	/* Beyond net.core.rmem_max it takes CAP_NET_ADMIN. */
	if (setsockopt(s->sock, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(s->sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (getsockopt(s->sock, SOL_SOCKET, SO_RCVBUF, &size, &len) == 0)
		s->counters.rcvbuf = (uint64_t)size;
}

static int open_fds(struct at_source *s, uint32_t rcvbuf)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK };

	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return -errno;
	s->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->timer_fd < 0)
		return -errno;
	s->sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (s->sock < 0)
		return -errno;
	set_rcvbuf(s, rcvbuf);
	if (bind(s->sock, (struct sockaddr *)&local, sizeof(local)) < 0)
		return -errno;
	return join(s->sock);
}

int at_source_open(struct at_engine *e, uint32_t rcvbuf, struct at_source **out)
{
	struct at_source *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->engine = e;
	s->lookups = lookups_of(e);
	s->sock = s->wake_fd = s->timer_fd = -1;
	s->armed = NEVER;
	err = open_fds(s, rcvbuf);
	if (err < 0) {
		at_source_close(s);
		return err;
	}
	at_engine_lose(e, AT_ALL_SCOPES);
	*out = s;
	return 0;
}

void at_source_close(struct at_source *s)
{
	if (!s)
		return;
	if (s->sock >= 0)
		close(s->sock);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	if (s->timer_fd >= 0)
		close(s->timer_fd);
	at_feed_close(s->feed);
	free(s->tap.ring);
	free(s);
}

void at_source_counters(const struct at_source *s, struct at_source_counters *out)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(memory);

	*out = s->counters;
	if (getsockopt(s->sock, SOL_SOCKET, SO_MEMINFO, memory, &len) == 0)
		out->overrun = memory[SK_MEMINFO_DROPS];
	if (s->feed)
		at_feed_counters(s->feed, out);
}

int at_source_fd(const struct at_source *s)
{
	return s->sock;
}
