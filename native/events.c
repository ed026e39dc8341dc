// SPDX-License-Identifier: Apache-2.0
/* What the multicast socket says, message by message. */
#include <errno.h>
#include <string.h>

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "nlattr.h"
#include "source.h"

#define IFAPROT_KERNEL_RA 2 /* <linux/if_addr.h> has it since 5.18 */

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
	if (applied != -EINVAL && s->tap.size && !at_tap_push(&s->tap, record, head->size))
		s->counters.tap_lost++;
	return applied < 0 ? applied : 0;
}

void at_source_lose(struct at_source *s, enum at_loss_cause cause, uint32_t scopes, uint64_t count)
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
	case RTM_NEWRULE:
	case RTM_DELRULE:
		return AT_RULES;
	default:
		return 1u << AT_SCOPE_NEXTHOP;
	}
}

/* With targets: whether a route is a default or may cover one. The parser sees to the rest. */
static int is_any_way(const struct at_source *s, const struct nlmsghdr *head, const uint8_t *msg,
		      const struct rtmsg *rtm)
{
	struct at_attrs attrs = {
		.next = msg + NLMSG_LENGTH(sizeof(*rtm)),
		.left = head->nlmsg_len - NLMSG_LENGTH(sizeof(*rtm)),
	};
	uint8_t dst[16] = { 0 };
	struct at_attr attr;
	size_t length = rtm->rtm_family == AF_INET ? 4 : 16;

	if (rtm->rtm_dst_len == 0)
		return 1;
	while (at_attr_next(&attrs, &attr) > 0) {
		if (attr.type == RTA_DST && attr.len == length) {
			memcpy(dst, attr.data, length);
			return at_engine_covers_target(s->engine, RT_TABLE_UNSPEC, rtm->rtm_family,
						       rtm->rtm_dst_len, dst);
		}
	}
	return 1;
}

/* A full BGP table passes here: without targets, of a route that is no default nothing but the header is read. */
static int may_matter(const struct at_source *s, const struct nlmsghdr *head, const uint8_t *msg)
{
	struct rtmsg rtm;

	if (head->nlmsg_type == RTM_NEWRULE || head->nlmsg_type == RTM_DELRULE)
		return at_engine_has_targets(s->engine);
	if (head->nlmsg_type != RTM_NEWROUTE && head->nlmsg_type != RTM_DELROUTE)
		return 1;
	if (head->nlmsg_len < NLMSG_LENGTH(sizeof(rtm)))
		return 1; /* the parser will say that it is malformed */
	memcpy(&rtm, msg + NLMSG_HDRLEN, sizeof(rtm));
	if (rtm.rtm_flags & RTM_F_CLONED)
		return 0;
	if (at_engine_has_targets(s->engine))
		return is_any_way(s, head, msg, &rtm);
	if (rtm.rtm_dst_len != 0)
		return 0;
	return rtm.rtm_table == RT_TABLE_UNSPEC || rtm.rtm_table == RT_TABLE_COMPAT ||
	       at_engine_wants_table(s->engine, rtm.rtm_table);
}

static int is_wanted(const struct at_source *s, const void *record)
{
	const struct at_header *head = record;
	const struct at_route *route = (const void *)(head + 1);

	return head->kind != AT_KIND_ROUTE ||
	       (route->dst_len == 0 && at_engine_wants_table(s->engine, route->table)) ||
	       at_engine_covers_target(s->engine, route->table, route->family, route->dst_len,
				       route->dst);
}

void at_source_applied(struct at_source *s, uint64_t ns)
{
	unsigned i = 0;

	while (i < AT_APPLY_BUCKETS - 1 && ns > (uint64_t)64 << i)
		i++;
	s->counters.apply_ns_bucket[i]++;
	s->counters.apply_ns_sum += ns;
}

unsigned at_type_of(const struct nlmsghdr *head)
{
	unsigned type = (unsigned)head->nlmsg_type - RTM_BASE;

	return type < AT_SEEN_TYPES ? type : AT_SEEN_TYPES - 1;
}

/* A router advertisement is handled in the context of whatever task it interrupts. */
static int is_from_ra(const void *record)
{
	const struct at_header *head = record;
	const struct at_route *route = (const void *)(head + 1);
	const struct at_addr *addr = (const void *)(head + 1);

	if (head->kind == AT_KIND_ROUTE)
		return route->proto == RTPROT_RA;
	return head->kind == AT_KIND_ADDR && addr->proto == IFAPROT_KERNEL_RA;
}

static void add_task(void *record, const struct at_task *task)
{
	struct at_header *head = record;

	if (is_from_ra(record))
		head->flags |= AT_F_UNTRUSTED;
	memcpy((uint8_t *)record + head->size, task, sizeof(*task));
	head->size += sizeof(*task);
	head->flags |= AT_F_TASK;
}

enum at_fate at_source_take(struct at_source *s, const struct nlmsghdr *head, const uint8_t *msg,
			    uint64_t boot_ns, uint32_t flags, const struct at_task *task)
{
	int result = at_parse(msg, head->nlmsg_len, boot_ns, flags, s->record);

	if (result == 0 || (result > 0 && !is_wanted(s, s->record)))
		return AT_FATE_DROPPED;
	if (result > 0 && task)
		add_task(s->record, task);
	if (result > 0)
		result = at_source_emit(s, s->record);
	if (result >= 0)
		return AT_FATE_EMITTED;
	/* Without memory the engine itself takes every scope for lost. */
	if (result != -ENOMEM) {
		s->counters.malformed++;
		at_source_lose(s, AT_LOSS_MALFORMED, scopes_of(head, msg), 1);
	}
	return AT_FATE_LOST;
}

/* *now is the time of the datagram, 0 = not read yet: most messages do not need it. */
static void read_message(struct at_source *s, const struct nlmsghdr *head, const uint8_t *msg,
			 uint64_t *now)
{
	unsigned type = at_type_of(head);
	uint64_t began;

	s->counters.seen[type]++;
	if (!may_matter(s, head, msg)) {
		s->counters.dropped[type]++;
		return;
	}
	if (*now == 0)
		*now = at_boot_ns();
	began = *now;
	switch (at_source_take(s, head, msg, began, 0, NULL)) {
	case AT_FATE_DROPPED:
		s->counters.dropped[type]++;
		break;
	case AT_FATE_LOST:
		s->counters.lost[type]++;
		break;
	case AT_FATE_EMITTED:
		s->counters.emitted[type]++;
		*now = at_boot_ns();
		at_source_applied(s, *now - began);
	}
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
		at_source_lose(s, AT_LOSS_MALFORMED, AT_ALL_SCOPES, 0);
	}
}

static int receive(struct at_source *s, unsigned limit)
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
		/* EMSGSIZE: the kernel could not make a message, larger than it had thought, and tells
		 * whoever waits for it by an error, once (rtnl_set_sk_err). */
		if (size < 0 && (errno == ENOBUFS || errno == EMSGSIZE)) {
			s->counters.overruns++;
			s->congested = 1;
			if (s->feed)
				at_feed_forget(s->feed);
			at_source_lose(s, AT_LOSS_OVERRUN, AT_ALL_SCOPES, 0);
			continue;
		}
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return -errno;
		if (from.nl_pid != 0)
			continue; /* not from the kernel */
		if (s->feed) {
			/* The filter lets nothing through, so it is gone, and with it an order
			 * between what is here and what is in the ring. */
			s->counters.unfiltered++;
			continue;
		}
		if ((size_t)size > sizeof(s->events)) {
			s->counters.malformed++;
			at_source_lose(s, AT_LOSS_MALFORMED, AT_ALL_SCOPES, 0);
			continue;
		}
		read_datagram(s, (size_t)size);
	}
	return 0;
}

int at_socket_read(struct at_source *s, unsigned limit)
{
	uint64_t before = s->counters.unfiltered;
	int err = receive(s, limit);

	if (s->counters.unfiltered == before)
		return err;
	at_feed_forget(s->feed);
	at_source_lose(s, AT_LOSS_UNFILTERED, AT_ALL_SCOPES, s->counters.unfiltered - before);
	return err;
}
