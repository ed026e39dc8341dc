// SPDX-License-Identifier: Apache-2.0
/* The multicast socket and the wait loop. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "source.h"

#define NEVER UINT64_MAX

/* Datagrams between two looks at what else is due. */
#define READ_LIMIT 256
/* More than any socket buffer holds: what was queued when we began has been read then. */
#define CATCH_UP_LIMIT (1u << 17)
/* New dirt behind this many entries wakes nobody; its reader looks again by itself. */
#define DIRT_MAX 64

uint64_t at_boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int at_message_next(struct at_messages *messages, struct nlmsghdr *head, const uint8_t **msg)
{
	size_t step;

	if (messages->left == 0)
		return 0;
	if (messages->left < sizeof(*head))
		return -EBADMSG;
	memcpy(head, messages->next, sizeof(*head));
	if (head->nlmsg_len < sizeof(*head) || head->nlmsg_len > messages->left)
		return -EBADMSG;
	*msg = messages->next;
	step = NLMSG_ALIGN((size_t)head->nlmsg_len);
	if (step > messages->left)
		step = messages->left;
	messages->next += step;
	messages->left -= step;
	return 1;
}

int at_source_emit(struct at_source *s, void *record)
{
	struct at_header *head = record;
	int applied;

	head->seq = ++s->seq;
	applied = at_engine_apply(s->engine, record, head->size);
	if (s->tap.size && !at_tap_push(&s->tap, record, head->size))
		s->counters.tap_lost++;
	return applied < 0 ? applied : 0;
}

static void lose(struct at_source *s, enum at_loss_cause cause, uint32_t scopes, uint64_t count)
{
	struct {
		struct at_header head;
		struct at_loss loss;
	} record = {
		.head = {
			.size = sizeof(record),
			.version = AT_RECORD_VERSION,
			.kind = AT_KIND_LOSS,
			.op = AT_OP_NEW,
			.boot_ns = at_boot_ns(),
		},
		.loss = {.cause = cause, .scopes = scopes, .count = count},
	};

	at_source_emit(s, &record);
}

/* The scopes that a message which could not be read may have been about. */
static uint32_t scopes_of(const struct nlmsghdr *head, const uint8_t *msg)
{
	/* The family is the first byte of every one of these messages. */
	int family = head->nlmsg_len > NLMSG_HDRLEN ? msg[NLMSG_HDRLEN] : AF_UNSPEC;

	switch (head->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return 1u << AT_SCOPE_LINK;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		return family == AF_INET  ? 1u << AT_SCOPE_ADDR4 :
		       family == AF_INET6 ? 1u << AT_SCOPE_ADDR6 :
					    1u << AT_SCOPE_ADDR4 | 1u << AT_SCOPE_ADDR6;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		return family == AF_INET  ? 1u << AT_SCOPE_ROUTE4 :
		       family == AF_INET6 ? 1u << AT_SCOPE_ROUTE6 :
					    1u << AT_SCOPE_ROUTE4 | 1u << AT_SCOPE_ROUTE6;
	default:
		return 1u << AT_SCOPE_NEXTHOP;
	}
}

/* A full BGP table passes here: of a route that is no default nothing but the header is read. */
static int may_matter(const struct at_source *s, const struct nlmsghdr *head, const uint8_t *msg)
{
	struct rtmsg rtm;

	if (head->nlmsg_type != RTM_NEWROUTE && head->nlmsg_type != RTM_DELROUTE)
		return 1;
	if (head->nlmsg_len < NLMSG_LENGTH(sizeof(rtm)))
		return 1; /* the parser will say that it is malformed */
	memcpy(&rtm, msg + NLMSG_HDRLEN, sizeof(rtm));
	if (rtm.rtm_dst_len != 0 || rtm.rtm_flags & RTM_F_CLONED)
		return 0;
	return rtm.rtm_table == RT_TABLE_UNSPEC || rtm.rtm_table == RT_TABLE_COMPAT ||
	       at_engine_wants_table(s->engine, rtm.rtm_table);
}

static int is_wanted(const struct at_source *s, const void *record)
{
	const struct at_header *head = record;
	const struct at_route *route = (const void *)(head + 1);

	return head->kind != AT_KIND_ROUTE || at_engine_wants_table(s->engine, route->table);
}

static void count_apply(struct at_source *s, uint64_t ns)
{
	unsigned i = 0;

	while (i < AT_APPLY_BUCKETS - 1 && ns > (uint64_t)64 << i)
		i++;
	s->counters.apply_ns_bucket[i]++;
	s->counters.apply_ns_sum += ns;
}

/* *now is the time of the datagram, 0 = not read yet: most messages do not need it. */
static void read_message(struct at_source *s, const struct nlmsghdr *head, const uint8_t *msg,
			 uint64_t *now)
{
	unsigned type = (unsigned)head->nlmsg_type - RTM_BASE;
	uint64_t began;
	int size;

	if (type >= AT_SEEN_TYPES)
		type = AT_SEEN_TYPES - 1;
	s->counters.seen[type]++;
	if (!may_matter(s, head, msg)) {
		s->counters.dropped[type]++;
		return;
	}
	if (*now == 0)
		*now = at_boot_ns();
	began = *now;
	size = at_parse(msg, head->nlmsg_len, began, 0, s->record);
	if (size == 0 || (size > 0 && !is_wanted(s, s->record))) {
		s->counters.dropped[type]++;
		return;
	}
	/* Without memory the engine itself takes every scope for lost. */
	if (size < 0 || at_source_emit(s, s->record) == -EINVAL) {
		s->counters.malformed++;
		lose(s, AT_LOSS_MALFORMED, scopes_of(head, msg), 1);
		return;
	}
	*now = at_boot_ns();
	count_apply(s, *now - began);
}

static void read_datagram(struct at_source *s, size_t size)
{
	struct at_messages messages = { .next = s->events, .left = size };
	struct nlmsghdr head;
	const uint8_t *msg;
	uint64_t now = 0;
	int more;

	while ((more = at_message_next(&messages, &head, &msg)) > 0)
		read_message(s, &head, msg, &now);
	if (more < 0) {
		s->counters.malformed++;
		lose(s, AT_LOSS_MALFORMED, AT_ALL_SCOPES, 0);
	}
}

int at_source_read(struct at_source *s, unsigned limit)
{
	for (unsigned n = 0; n < limit || s->congested; n++) {
		struct sockaddr_nl from = { 0 };
		socklen_t from_len = sizeof(from);
		ssize_t size =
			recvfrom(s->sock, s->events, sizeof(s->events), MSG_DONTWAIT | MSG_TRUNC,
				 (struct sockaddr *)&from, &from_len);

		if (size < 0 && errno == EAGAIN) {
			s->congested = 0;
			return 0;
		}
		if (size < 0 && errno == ENOBUFS) {
			s->counters.overruns++;
			s->congested = 1;
			lose(s, AT_LOSS_OVERRUN, AT_ALL_SCOPES, 0);
			continue;
		}
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return -errno;
		if (from.nl_pid != 0)
			continue; /* not from the kernel */
		if ((size_t)size > sizeof(s->events)) {
			s->counters.malformed++;
			lose(s, AT_LOSS_MALFORMED, AT_ALL_SCOPES, 0);
			continue;
		}
		read_datagram(s, (size_t)size);
	}
	return 0;
}

int at_source_catch_up(struct at_source *s)
{
	return at_source_read(s, CATCH_UP_LIMIT);
}

static int wake_bits(const struct at_source *s)
{
	int bits = 0;

	if (at_engine_pending(s->engine))
		bits |= AT_WAKE_CHANGED;
	if (s->tap.used)
		bits |= AT_WAKE_TAP;
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

struct dirt {
	size_t n;
	struct at_dirty entry[DIRT_MAX];
};

static void look_at_dirt(const struct at_source *s, struct dirt *dirt)
{
	dirt->n = at_engine_dirty(s->engine, dirt->entry, DIRT_MAX);
	if (dirt->n > DIRT_MAX)
		dirt->n = DIRT_MAX;
}

static int has_new_dirt(const struct at_source *s, const struct dirt *known)
{
	struct dirt now;

	look_at_dirt(s, &now);
	for (size_t i = 0; i < now.n; i++) {
		size_t k = 0;

		while (k < known->n &&
		       memcmp(&now.entry[i], &known->entry[k], sizeof(now.entry[i])) != 0)
			k++;
		if (k == known->n)
			return 1;
	}
	return 0;
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
	};
	uint64_t engine = at_engine_deadline(s->engine);
	uint64_t count;
	int err = arm(s, engine < deadline ? engine : deadline);

	if (err < 0)
		return err;
	if (poll(fds, 3, -1) < 0)
		return errno == EINTR ? AT_WAKE_USER : -errno;
	/* Both stay readable until they are read; the timer fires once. */
	if (fds[2].revents && read(s->timer_fd, &count, sizeof(count)) == sizeof(count))
		s->armed = NEVER;
	if (fds[1].revents && read(s->wake_fd, &count, sizeof(count)) == sizeof(count))
		return AT_WAKE_USER;
	return 0;
}

int at_source_wait(struct at_source *s, uint64_t deadline_ns)
{
	struct dirt known;
	int bits = 0;

	look_at_dirt(s, &known);
	for (;;) {
		int err = at_source_read(s, READ_LIMIT);

		if (err < 0)
			return err;
		bits |= run_timers(s, deadline_ns) | wake_bits(s);
		if (has_new_dirt(s, &known))
			bits |= AT_WAKE_DIRTY;
		if (bits)
			return bits;
		err = sleep_until(s, deadline_ns);
		if (err < 0)
			return err;
		bits = err;
	}
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
		RTNLGRP_LINK,	    RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
		RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,	 RTNLGRP_NEXTHOP,
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
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
	free(s->tap.ring);
	free(s);
}

void at_source_counters(const struct at_source *s, struct at_source_counters *out)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(memory);

	*out = s->counters;
	if (getsockopt(s->sock, SOL_SOCKET, SO_MEMINFO, memory, &len) == 0)
		out->lost = memory[SK_MEMINFO_DROPS];
}

int at_source_fd(const struct at_source *s)
{
	return s->sock;
}
