// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * Socket filter for an rtnetlink multicast socket: what may concern a policy goes
 * into the ring, the rest is counted and dropped. Nothing passes to the socket
 * itself, so that there is one channel, in order.
 *
 * Links are read here, because most of what the kernel says of them is no news. All
 * else is handed over as it is: user space has the one parser, and whatever this
 * program is not sure of is for that to judge.
 *
 * One text for libbpf and for BCC (AT_BCC), so: no global variables, no
 * subprograms. A socket filter can be preempted, so: no scratch memory per CPU.
 */
#ifdef AT_BCC
#include "bcc.h"
#else
#define AT_TASKS
#include "maps.h"
#endif

#include "quiet.h"
#include "ring.h"
#include "route.h"

/* The policy that counts now; user space swaps it whole. */
static __always_inline const struct at_filter *find_filter(void)
{
	__u32 zero = 0;
	void *filter = bpf_map_lookup_elem(AT_MAP(filters), &zero);

	return filter ? bpf_map_lookup_elem(filter, &zero) : 0;
}

/* What a variant does beside the least; constants, as far as the compiler is concerned. */
struct variant {
	bool tasks; /* takes CAP_PERFMON, and BTF */
	/* Reads links. Up to Linux 6.15 that takes CAP_PERFMON as well: without it the verifier
	 * follows what a processor does that takes no end of a loop for the end. */
	bool links;
};

/*
 * `links` holds what the reader knows for certain. After a loss that is nothing: the
 * reader asks the kernel, and what differs from its answer may equal what was in
 * `links` before. Nor is it what goes by unread.
 */
static __always_inline enum verdict
pass_link(const struct message *msg, const struct at_filter *filter, const struct variant variant)
{
	const struct at_link *last;
	struct wire_ifinfo ifi;
	enum verdict verdict;
	struct at_link link;
	bool quiet, was_quiet;

	if (!load(msg, sizeof(msg->head), &ifi, sizeof(ifi)))
		return RAW;
	/* A bridge port that leaves its bridge gets a DELLINK of AF_BRIDGE and lives on. */
	if (ifi.family != WIRE_AF_UNSPEC)
		return DROP;
	if (!variant.links)
		return RAW;
	if (!read_link(msg, &link)) {
		bpf_map_delete_elem(AT_MAP(links), &link.ifindex);
		return RAW;
	}
	last = bpf_map_lookup_elem(AT_MAP(links), &link.ifindex);
	if (msg->head.type == WIRE_RTM_NEWLINK && last && same_link(&link, last))
		return DROP;
	quiet = is_quiet(filter, &link);
	/* One that gets a quiet name was chosen perhaps. */
	was_quiet = !last || last->QUIET;
	verdict = write_link(msg, &link, quiet && was_quiet, variant.tasks);
	link.QUIET = quiet;
	if (verdict != WRITTEN || msg->head.type == WIRE_RTM_DELLINK ||
	    bpf_map_update_elem(AT_MAP(links), &link.ifindex, &link, BPF_ANY))
		bpf_map_delete_elem(AT_MAP(links), &link.ifindex);
	return verdict;
}

static __always_inline enum verdict judge(struct message *msg, const struct variant variant)
{
	const struct at_filter *filter = find_filter();

	if (!filter)
		return RAW;
	switch (msg->head.type) {
	case WIRE_RTM_NEWROUTE:
	case WIRE_RTM_DELROUTE:
		return may_matter(msg, filter) ? RAW : DROP;
	case WIRE_RTM_NEWLINK:
	case WIRE_RTM_DELLINK:
		msg->boot_ns = bpf_ktime_get_boot_ns();
		return pass_link(msg, filter, variant);
	case WIRE_RTM_NEWADDR:
	case WIRE_RTM_DELADDR:
	case WIRE_RTM_NEWNEXTHOP:
	case WIRE_RTM_DELNEXTHOP:
		return RAW;
	case WIRE_RTM_NEWRULE:
	case WIRE_RTM_DELRULE:
		return filter->n_targets ? RAW : DROP;
	default:
		return DROP;
	}
}

/* An skb holds one message; what is more than that, or less, may have been anything. */
static __always_inline bool is_one_message(const struct message *msg)
{
	return msg->head.len >= sizeof(msg->head) && msg->head.len <= msg->skb->len &&
	       WIRE_ALIGN(msg->head.len) >= msg->skb->len;
}

static __always_inline int filter(struct __sk_buff *skb, const struct variant variant)
{
	struct message msg = { .skb = skb };
	enum verdict verdict = LOST;
	bool whole;
	__u32 row;
	struct at_count *count;
	bool quiet;

	load(&msg, 0, &msg.head, sizeof(msg.head));
	row = msg.head.type - WIRE_RTM_BASE;
	if (row >= AT_TYPES)
		row = AT_TYPES - 1;
	count = bpf_map_lookup_elem(AT_MAP(counts), &row);
	if (!count)
		return 0;
	add(&count->seen);
	whole = is_one_message(&msg);
	if (whole) {
		verdict = judge(&msg, variant);
		if (verdict == DROP) {
			add(&count->dropped);
			return 0;
		}
		if (verdict == RAW) {
			msg.boot_ns = bpf_ktime_get_boot_ns();
			quiet = (msg.head.type & ~1) == WIRE_RTM_NEWADDR && is_quiet_address(&msg);
			verdict = write_raw(&msg, quiet, variant.tasks);
		}
	}
	if (verdict == WRITTEN) {
		add(&count->emitted);
		return 0;
	}
	lose(whole ? scopes_of(&msg) : ALL_SCOPES | RULES);
	add(&count->lost);
	return 0;
}

SEC("socket")
int at_filter(struct __sk_buff *skb)
{
	return filter(skb, (struct variant){ .links = true });
}

#ifndef AT_BCC
SEC("socket")
int at_filter_tasks(struct __sk_buff *skb)
{
	return filter(skb, (struct variant){ .tasks = true, .links = true });
}

SEC("socket")
int at_filter_least(struct __sk_buff *skb)
{
	return filter(skb, (struct variant){});
}

/* bpf_get_current_task() and its kind are for programs that may be GPL. */
char _license[] SEC("license") = "Dual BSD/GPL";
#endif
