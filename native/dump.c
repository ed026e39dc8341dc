// SPDX-License-Identifier: Apache-2.0
/*
 * Strict dumps (Linux 4.20), each on a socket of its own: a filter on the
 * multicast socket cannot stall them, and one that is cut short leaves nothing
 * behind. What older or odd kernels send beside what was asked for is skipped.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "source.h"

#define ATTEMPTS      6
#define ANSWER_WITHIN 5 /* seconds; the kernel answers while we ask */
#define TABLES_MAX    AT_SELECTIONS_MAX
#define SEQUENCE      1 /* one request per socket */

/* What a message of a dump means for the reader. */
enum step {
	STEP_MORE = 0,
	STEP_DONE = 1,
};

static const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

struct dump {
	struct at_source *source;
	uint32_t scope;
	uint32_t ifindex; /* 0 = all */
	uint32_t table;	  /* of the request under way */
	uint8_t protocol; /* of its routes, 0 = any */
	int sock;
	int strict;	 /* the kernel filters */
	int proven;	 /* the table under way has no more than what was read */
	uint32_t found;	 /* AT_DUMP_UNPROVEN: some table was not proven so */
	int interrupted; /* lists changed between two parts of the answer */
};

struct request {
	struct nlmsghdr head;
	union {
		struct ifinfomsg link;
		struct ifaddrmsg addr;
		struct rtmsg route;
		struct nhmsg nexthop;
		uint8_t room[64];
	};
};

static int family_of(uint32_t scope)
{
	switch (scope) {
	case AT_SCOPE_ADDR4:
	case AT_SCOPE_ROUTE4:
		return AF_INET;
	case AT_SCOPE_ADDR6:
	case AT_SCOPE_ROUTE6:
		return AF_INET6;
	default:
		return AF_UNSPEC;
	}
}

static int is_route(uint32_t scope)
{
	return scope == AT_SCOPE_ROUTE4 || scope == AT_SCOPE_ROUTE6;
}

static int is_addr(uint32_t scope)
{
	return scope == AT_SCOPE_ADDR4 || scope == AT_SCOPE_ADDR6;
}

static void mark(const struct dump *d, enum at_phase phase, uint32_t table, uint32_t flags,
		 int error)
{
	struct {
		struct at_header head;
		struct at_dump dump;
	} record = {
		.head = {
			.size = sizeof(record),
			.version = AT_RECORD_VERSION,
			.kind = AT_KIND_DUMP,
			.op = AT_OP_NEW,
			.boot_ns = at_boot_ns(),
		},
		.dump = {
			.scope = d->scope,
			.phase = phase,
			.ifindex = d->ifindex,
			.table = table,
			.flags = flags,
			.error = (uint32_t)error,
		},
	};

	at_source_emit(d->source, &record);
}

static void add_u32(struct request *r, uint16_t type, uint32_t value)
{
	struct nlattr attr = { .nla_len = NLA_HDRLEN + sizeof(value), .nla_type = type };
	uint8_t *at = (uint8_t *)r + NLMSG_ALIGN(r->head.nlmsg_len);

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + NLA_HDRLEN, &value, sizeof(value));
	r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + attr.nla_len;
}

static void build(const struct dump *d, struct request *r)
{
	*r = (struct request){
		.head = { .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = SEQUENCE },
	};
	switch (d->scope) {
	case AT_SCOPE_LINK:
		r->head.nlmsg_type = RTM_GETLINK;
		r->head.nlmsg_len = NLMSG_LENGTH(sizeof(r->link));
		add_u32(r, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
		break;
	case AT_SCOPE_ADDR4:
	case AT_SCOPE_ADDR6:
		r->head.nlmsg_type = RTM_GETADDR;
		r->head.nlmsg_len = NLMSG_LENGTH(sizeof(r->addr));
		r->addr.ifa_family = (uint8_t)family_of(d->scope);
		r->addr.ifa_index = d->ifindex;
		break;
	case AT_SCOPE_ROUTE4:
	case AT_SCOPE_ROUTE6:
		r->head.nlmsg_type = RTM_GETROUTE;
		r->head.nlmsg_len = NLMSG_LENGTH(sizeof(r->route));
		r->route.rtm_family = (uint8_t)family_of(d->scope);
		r->route.rtm_protocol = d->protocol;
		add_u32(r, RTA_TABLE, d->table);
		break;
	default:
		r->head.nlmsg_type = RTM_GETNEXTHOP;
		r->head.nlmsg_len = NLMSG_LENGTH(sizeof(r->nexthop));
		break;
	}
}

/*
 * The kernel makes each part of an answer as large as the largest buffer that this socket was read
 * with, and makes the first one before there was any read: in 4 KiB then. An entry that is larger,
 * such as a route over some 240 gateways, does not fit, and ends the answer as if it were complete.
 * So something small is asked for and read first: a message of type NOOP does nothing and takes no
 * lock, and its acknowledgement is there when sendto() returns. 32 KiB is the most that the kernel
 * makes of it.
 */
static int prime(struct dump *d)
{
	struct nlmsghdr nothing = {
		.nlmsg_len = sizeof(nothing),
		.nlmsg_type = NLMSG_NOOP,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
	};

	if (sendto(d->sock, &nothing, sizeof(nothing), 0, (const struct sockaddr *)&kernel,
		   sizeof(kernel)) < 0)
		return -errno;
	/* Whoever emulates the kernel may say nothing to this: then it is as it would be without. */
	recv(d->sock, d->source->dump, AT_DATAGRAM_MAX, MSG_DONTWAIT);
	return 0;
}

static int ask(struct dump *d)
{
	struct timeval patience = { .tv_sec = ANSWER_WITHIN };
	struct request request;
	int on = 1, err;

	d->sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (d->sock < 0)
		return -errno;
	d->strict = setsockopt(d->sock, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on)) == 0;
	if (setsockopt(d->sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	err = prime(d);
	if (err < 0)
		return err;
	build(d, &request);
	if (sendto(d->sock, &request, request.head.nlmsg_len, 0, (const struct sockaddr *)&kernel,
		   sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

/* Errors that say: there is nothing of this kind. */
static int is_empty(const struct dump *d, int error)
{
	if (error == -EAFNOSUPPORT || error == -EOPNOTSUPP)
		return d->scope == AT_SCOPE_NEXTHOP || family_of(d->scope) == AF_INET6;
	if (is_route(d->scope))
		return error == -ENOENT; /* no such table */
	if (is_addr(d->scope))
		return error == -ENODEV && d->ifindex;		 /* the link has gone */
	return d->scope == AT_SCOPE_NEXTHOP && error == -EINVAL; /* before Linux 5.3 */
}

static int finish(struct dump *d, const uint8_t *msg, size_t len)
{
	int error = 0;

	/* Since Linux 4.20 the end of a dump carries its error. */
	if (len >= NLMSG_LENGTH(sizeof(error)))
		memcpy(&error, msg + NLMSG_HDRLEN, sizeof(error));
	if (error < 0 && !is_empty(d, error))
		return error;
	d->proven = error < 0;
	return STEP_DONE;
}

static int malformed(const struct dump *d)
{
	d->source->counters.malformed++;
	return -EBADMSG;
}

/* Whether the record that was just parsed is what we asked for. */
static int is_asked_for(const struct dump *d)
{
	const struct at_header *head = (const void *)d->source->record;
	const struct at_route *route = (const void *)(head + 1);
	const struct at_addr *addr = (const void *)(head + 1);

	if (is_route(d->scope))
		return route->table == d->table;
	if (is_addr(d->scope))
		return addr->family == family_of(d->scope) &&
		       (!d->ifindex || addr->ifindex == d->ifindex);
	return 1;
}

static int take(const struct dump *d, const uint8_t *msg, size_t len, uint64_t now)
{
	int size = at_parse(msg, len, now, AT_F_DUMP, d->source->record);
	int err = 0;

	if (size > 0 && is_asked_for(d))
		err = at_source_emit(d->source, d->source->record);
	if (size < 0 || err == -EINVAL)
		return malformed(d);
	return err < 0 ? err : STEP_MORE;
}

/*
 * Neither family can be asked for default routes alone. IPv4 walks a trie by
 * destination, so they are in its first leaf, behind 0.0.0.0/1 and the like:
 * the first other destination ends it. IPv6 shows ::/0 last: of all others
 * nothing but the header is read.
 */
static int pass_prefix(struct dump *d, const uint8_t *msg, size_t len)
{
	static const uint8_t zero[16];
	const struct at_header *head = (const void *)d->source->record;
	const struct at_route *route = (const void *)(head + 1);

	if (d->scope == AT_SCOPE_ROUTE6 || !d->strict)
		return STEP_MORE;
	if (at_parse(msg, len, 0, AT_F_DUMP, d->source->record) <= 0)
		return STEP_MORE;
	if (!memcmp(route->dst, zero, sizeof(zero)))
		return STEP_MORE;
	d->proven = 1;
	return STEP_DONE;
}

static int take_route(struct dump *d, const uint8_t *msg, size_t len, uint64_t now)
{
	struct rtmsg rtm;

	if (len < NLMSG_LENGTH(sizeof(rtm)))
		return malformed(d);
	memcpy(&rtm, msg + NLMSG_HDRLEN, sizeof(rtm));
	if (rtm.rtm_family != family_of(d->scope))
		return STEP_MORE;
	return rtm.rtm_dst_len ? pass_prefix(d, msg, len) : take(d, msg, len, now);
}

static int read_message(struct dump *d, const struct nlmsghdr *head, const uint8_t *msg,
			uint64_t now)
{
	if (head->nlmsg_seq != SEQUENCE)
		return STEP_MORE;
	if (head->nlmsg_flags & NLM_F_DUMP_INTR)
		d->interrupted = 1;
	switch (head->nlmsg_type) {
	case NLMSG_DONE:
	case NLMSG_ERROR:
		return finish(d, msg, head->nlmsg_len);
	case RTM_NEWROUTE:
		return is_route(d->scope) ? take_route(d, msg, head->nlmsg_len, now) : STEP_MORE;
	case RTM_NEWADDR:
		return is_addr(d->scope) ? take(d, msg, head->nlmsg_len, now) : STEP_MORE;
	case RTM_NEWLINK:
		return d->scope == AT_SCOPE_LINK ? take(d, msg, head->nlmsg_len, now) : STEP_MORE;
	case RTM_NEWNEXTHOP:
		return d->scope == AT_SCOPE_NEXTHOP ? take(d, msg, head->nlmsg_len, now) :
						      STEP_MORE;
	default:
		return STEP_MORE;
	}
}

static int read_datagram(struct dump *d, size_t size)
{
	struct at_messages messages = { .next = d->source->dump, .left = size };
	uint64_t now = at_boot_ns();
	struct nlmsghdr head;
	const uint8_t *msg;
	int more;

	while ((more = at_message_next(&messages, &head, &msg)) > 0) {
		int step = read_message(d, &head, msg, now);

		if (step != STEP_MORE)
			return step;
	}
	return more < 0 ? malformed(d) : STEP_MORE;
}

static int read_answer(struct dump *d, int last)
{
	uint8_t *buf = d->source->dump;

	while (last || !d->interrupted) {
		struct sockaddr_nl from = { 0 };
		socklen_t from_len = sizeof(from);
		ssize_t size = recvfrom(d->sock, buf, AT_DATAGRAM_MAX, MSG_TRUNC,
					(struct sockaddr *)&from, &from_len);
		int step;

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (from.nl_pid != 0)
			continue;
		if (size > AT_DATAGRAM_MAX)
			return -EMSGSIZE;
		step = read_datagram(d, (size_t)size);
		if (step != STEP_MORE)
			return step < 0 ? step : 0;
		step = at_source_catch_up(d->source);
		if (step < 0)
			return step;
	}
	return 0;
}

static int dump_once(struct dump *d, int last)
{
	int err = ask(d);

	if (err == 0)
		err = read_answer(d, last);
	if (d->sock >= 0)
		close(d->sock);
	return err;
}

static int attempt(struct dump *d, uint32_t table, uint32_t flags, int last)
{
	uint32_t tables[TABLES_MAX] = { table };
	size_t n = 1;
	int err = at_source_catch_up(d->source);

	if (err < 0)
		return err;
	d->interrupted = 0;
	d->found = 0;
	/* Whatever else there is no rule has cast doubt on. */
	if (d->scope == AT_SCOPE_ROUTE6 && table && !(flags & AT_DUMP_AUDIT))
		d->protocol = at_engine_protocol(d->source->engine, table);
	mark(d, AT_DUMP_BEGIN, table, flags, 0);
	if (is_route(d->scope) && !table)
		n = at_engine_tables(d->source->engine, tables, TABLES_MAX);
	for (size_t i = 0; i < n && err == 0 && (last || !d->interrupted); i++) {
		d->table = tables[i];
		d->proven = 0;
		err = dump_once(d, last);
		if (is_route(d->scope) && !d->proven)
			d->found = AT_DUMP_UNPROVEN;
	}
	if (err == 0)
		err = at_source_catch_up(d->source);
	return err == 0 && d->interrupted ? -EAGAIN : err;
}

int at_source_dump(struct at_source *s, uint32_t scope, uint32_t ifindex, uint32_t table,
		   uint32_t flags)
{
	struct dump d = { .source = s, .scope = scope };
	int err = -EAGAIN;

	if (scope >= AT_SCOPES)
		return -EINVAL;
	/* Narrower than a scope is cut only where that is meant to be. */
	d.ifindex = is_addr(scope) ? ifindex : 0;
	table = is_route(scope) ? table : 0;
	s->counters.dumps[scope]++;
	for (int i = 1; i <= ATTEMPTS && err == -EAGAIN; i++)
		err = attempt(&d, table, flags, i == ATTEMPTS);
	if (err < 0)
		s->counters.dump_failures[scope]++;
	/* An interrupted dump may have missed what was there all the time, so it sweeps nothing. */
	if (err < 0)
		mark(&d, AT_DUMP_FAIL, table, flags, -err);
	else
		mark(&d, AT_DUMP_END, table, flags | d.found, 0);
	return err;
}
