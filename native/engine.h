/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State and ranking: records in, the best candidate of every selection out.
 *
 * An engine is plain memory: no sockets, no clock of its own (time comes with
 * the records and with at_engine_tick). It is not thread safe. The rules are
 * written down in docs/engine.md; tracker/engine/reference.py is the same rules
 * in Python. What needs cffi is in native/engine.cdef, kept equal by a test.
 */
#ifndef ADDRTRACKER_ENGINE_H
#define ADDRTRACKER_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "../bpf/records.h"

#define AT_CRITERIA_MAX	  24
#define AT_SELECTIONS_MAX 16
#define AT_PATTERN_LEN	  128
#define AT_GROUNDS_MAX	  128

/* Why an address is no candidate; 0 = it is one. Order = order of the checks. */
enum at_reject {
	AT_REJECT_NONE = 0,
	AT_REJECT_FAMILY,	      /* family-not-wanted */
	AT_REJECT_UNSPECIFIED,	      /* unspecified */
	AT_REJECT_LOOPBACK,	      /* loopback */
	AT_REJECT_LINK_LOCAL,	      /* link-local */
	AT_REJECT_MULTICAST,	      /* multicast */
	AT_REJECT_RESERVED,	      /* reserved */
	AT_REJECT_DAD_FAILED,	      /* dad-failed */
	AT_REJECT_TENTATIVE,	      /* tentative */
	AT_REJECT_LINK_DOWN,	      /* link-down */
	AT_REJECT_EXCLUDED_ADDRESS,   /* excluded-address */
	AT_REJECT_EXCLUDED_NETWORK,   /* excluded-network */
	AT_REJECT_OTHER_VRF,	      /* other-vrf */
	AT_REJECT_EXCLUDED_INTERFACE, /* excluded-interface; not if named as prefsrc */
	/* given by tiers, see docs/engine.md */
	AT_REJECT_NOT_IN_MODE,	    /* not-in-mode */
	AT_REJECT_NO_DEFAULT_ROUTE, /* no-default-route */
};

/* What ranks candidates; lower values are better. The policy gives the order. */
enum at_criterion {
	AT_CRIT_STATIC = 1,    /* position in the list, its length if absent */
	AT_CRIT_MODE,	       /* the same for the mode's list; 0 without one */
	AT_CRIT_INTERNAL,      /* 0 inside networks.internal, 1 outside; 0 if not configured */
	AT_CRIT_DEFAULT_ROUTE, /* dead << 34 | metric << 2 | pref; AT_NO_ROUTE without one */
	AT_CRIT_PREFSRC,       /* 0 named by that route */
	AT_CRIT_NOT_DEPRECATED,
	AT_CRIT_NOT_VIP_LIKE,
	AT_CRIT_NOT_TEMPORARY,
	AT_CRIT_ASSIGNED,
	AT_CRIT_INCUMBENT, /* 0 the present answer */
	AT_CRIT_GATEWAY_ON_LINK,
	AT_CRIT_PRIMARY_FLAG,
	AT_CRIT_GLOBAL_BEFORE_ULA,
	AT_CRIT_NEXTHOP_WEIGHT, /* 65535 - weight */
	AT_CRIT_IFINDEX,
	AT_CRIT_AGE,	 /* cstamp: oldest first */
	AT_CRIT_ADDRESS, /* always last and implied; its value is not in values[] */
};

#define AT_NO_ROUTE ((uint64_t)1 << 35)

enum at_tier {
	AT_TIER_ROUTE = 0, /* over a default route's link, or named by one; or in the mode */
	AT_TIER_LOOPBACK,  /* on lo, while a default route exists; or by it, outside the mode */
	AT_TIER_FALLBACK,  /* the rest, as policy.fallback says */
};

enum at_fallback {
	AT_FALLBACK_NONE = 0,
	AT_FALLBACK_AUTO,
	AT_FALLBACK_PHYSICAL,
	AT_FALLBACK_INTERFACE,
	AT_FALLBACK_DEFAULT_ROUTE, /* what mode default-route would take */
};

enum at_mode {
	AT_MODE_DEFAULT_ROUTE = 0,
	AT_MODE_LIST, /* names of links and networks of addresses, in order of preference */
};

struct at_network {
	uint8_t family;
	uint8_t prefixlen;
	uint8_t address[16];
};

/* A source address that the kernel answered with. */
struct at_ground {
	uint32_t ifindex; /* of the way; 0: the route names the address, whatever the link has */
	uint8_t family;
	uint8_t pad[3];
	uint8_t address[16];
};

/* What the kernel's answers rest on. */
struct at_grounds {
	uint32_t n_links, n_nexthops, n_sources; /* AT_GROUNDS_MAX at most */
	uint8_t any_address[2]; /* the kernel took what it found on some link: IPv4, IPv6 */
	uint8_t any_nexthop;
	uint8_t pad;
	uint32_t links[AT_GROUNDS_MAX];	   /* that the ways lead over */
	uint32_t nexthops[AT_GROUNDS_MAX]; /* ids of the objects in use */
	struct at_ground sources[AT_GROUNDS_MAX];
};

/* A policy is a table that the engine runs. All pointers are copied. */
struct at_policy {
	uint8_t families; /* bit 0 IPv4, bit 1 IPv6 */
	uint8_t fallback; /* enum at_fallback */
	uint8_t mode;	  /* enum at_mode */
	uint8_t n_criteria;
	uint8_t criteria[AT_CRITERIA_MAX];   /* enum at_criterion, in order, without ADDRESS */
	uint8_t displacing[AT_CRITERIA_MAX]; /* 1 = marked D */
	uint32_t table;			     /* routing table of the default routes */
	uint32_t n_exclude_names, n_keep_names, n_exclude_kinds;
	uint32_t n_exclude, n_static, n_internal;
	uint32_t n_mode_names, n_mode_networks, n_hints;
	const char (*exclude_names)[AT_PATTERN_LEN]; /* fnmatch(3) patterns */
	/* patterns that win over exclude_names and kinds */
	const char (*keep_names)[AT_PATTERN_LEN];
	const char (*exclude_kinds)[AT_NAME_LEN];
	const struct at_network *exclude; /* host length: excluded-address, else excluded-network */
	const struct at_network *statics;
	const struct at_network *internal;
	const char (*mode_names)[AT_PATTERN_LEN]; /* AT_MODE_LIST: fnmatch(3) patterns, */
	const struct at_network *mode_networks;	  /* and what follows them */
	/* of host length: of a family that has some, only subnets that hold one count */
	const struct at_network *hints;
	char fallback_name[AT_PATTERN_LEN]; /* fnmatch pattern of AT_FALLBACK_INTERFACE */
};

struct at_row {
	struct at_addr addr;
	uint8_t reject;			  /* enum at_reject; the final answer, tiers considered */
	uint8_t own_reject;		  /* the same without the two that tiers give */
	uint8_t tier;			  /* enum at_tier */
	uint8_t carrier;		  /* the link is IFF_UP and IFF_LOWER_UP */
	uint32_t rank;			  /* 1 = best; 0 = rejected */
	uint64_t values[AT_CRITERIA_MAX]; /* by position in policy.criteria */
	char link[AT_NAME_LEN];
};

struct at_view {
	uint8_t has_best;
	uint8_t has_incumbent;	/* an address equal to the incumbent is on this host */
	uint8_t default_routes; /* saturating count: unicast defaults in the table, this family */
	uint8_t other_defaults; /* saturating: same for the other family */
	uint8_t bad_defaults; /* saturating: defaults of another type (unreachable, blackhole ...) */
	uint8_t default_links; /* saturating: links with an eligible candidate that defaults lead over */
	uint8_t best_undeprecated; /* best exists and is not deprecated */
	uint8_t rival;		 /* another network ties with best on all criteria before INCUMBENT,
				 * or differs first at one behind GLOBAL_BEFORE_ULA */
	int32_t first_diff;	 /* position of the first criterion on which best and incumbent
				 * differ; -1 same address or one is missing; -2 the tier;
				 * n_criteria: the address itself */
	uint32_t fallback_count; /* distinct addresses of tier AT_TIER_FALLBACK */
	uint64_t last_change_ns; /* boot time of the last change to any row of this family */
	struct at_row best;
	struct at_row incumbent; /* its best entry, rejected or not */
	uint32_t cause_size;	 /* bytes of cause; 0 = none */
	uint32_t pad0;
	uint8_t cause[160]; /* the record that last changed best or incumbent, without legs */
};

struct at_glance {
	uint32_t changed; /* at_engine_pending() */
	uint8_t first;	  /* its lowest bit, and the view of that; if there is one */
	uint8_t dirty;	  /* a scope is dirty */
	uint16_t pad0;
	struct at_view view;
};

struct at_dirty {
	uint32_t scope;	  /* enum at_scope */
	uint32_t ifindex; /* address scopes: only this link, 0 = all */
	uint32_t table;	  /* route scopes: 0 = all wanted */
	uint32_t lost;	  /* 1 = messages were lost or a dump failed: answers are stale;
				 * 0 = a rule fired and wants to be confirmed */
	uint32_t rule;	  /* n of Rn; 0 = loss or failed dump */
};

struct at_counters {
	uint64_t applied[AT_KINDS][3]; /* by enum at_kind and enum at_op */
	uint64_t ignored;	    /* deletes of unknown keys, messages without effect on keys */
	uint64_t malformed;	    /* records refused */
	uint64_t inferred[11];	    /* removals by rule R1..R10 */
	uint64_t flushed;	    /* defaults that the trace tier saw removed silently */
	uint64_t drift[AT_SCOPES];  /* differences found by audits */
	uint64_t voided[AT_SCOPES]; /* dumps voided by a loss or a rule */
	uint64_t links, addresses, routes, nexthops; /* entries now */
	uint64_t rebuilds;			     /* full rankings */
};

struct at_engine;

struct at_engine *at_engine_new(void); /* NULL: no memory */
void at_engine_free(struct at_engine *e);

/* Sets or replaces selection `sel` and ranks it anew. -EINVAL, -ENOMEM. */
int at_engine_set_policy(struct at_engine *e, unsigned sel, const struct at_policy *p);
int at_engine_drop_policy(struct at_engine *e, unsigned sel);
/* Replaces the networks of the mode alone. -EINVAL, -ENOMEM: nothing changed. */
int at_engine_set_mode_networks(struct at_engine *e, unsigned sel, const struct at_network *list,
				uint32_t n);
/* The present answer, by address; NULL = none. */
int at_engine_set_incumbent(struct at_engine *e, unsigned sel, int family, const uint8_t *addr);
/* IPv6 routes vanish silently on link down (net.ipv6.route.skip_notify_on_dev_down). */
void at_engine_set_v6_silent_down(struct at_engine *e, int on);

/* Applies the records in buf, one after the other. The number applied, or -EINVAL where one is
 * malformed (it and what follows is not applied; counted), or -ENOMEM (one was not applied, nor
 * what follows; every scope is lost). */
int at_engine_apply(struct at_engine *e, const void *buf, size_t size);
/* Runs what is due: routes of router advertisements end (R10), tombstones are reaped. */
void at_engine_tick(struct at_engine *e, uint64_t now_ns);
uint64_t at_engine_deadline(const struct at_engine *e); /* boot time; UINT64_MAX = none */

/* Bit 2 * sel + (family == AF_INET6) for each view that changed since the last call:
 * best, its row, the incumbent's row, first_diff, counts of defaults or the rival. */
uint32_t at_engine_changed(struct at_engine *e);
uint32_t at_engine_pending(const struct at_engine *e); /* the same, without taking it off */
int at_engine_view(struct at_engine *e, unsigned sel, int family, struct at_view *out);
/* What whoever was woken up has to know first, at once. */
void at_engine_glance(struct at_engine *e, struct at_glance *out);
/* Ranked rows: candidates first, then rejected ones by address. Returns how many there are. */
size_t at_engine_rows(struct at_engine *e, unsigned sel, int family, struct at_row *out,
		      size_t max);

/* Scopes to be dumped, lost ones first; how many there are. A begin mark of a dump takes its scope
 * off. */
size_t at_engine_dirty(const struct at_engine *e, struct at_dirty *out, size_t max);
/* Counts marks of dirt that was not there before: compare it with an earlier one. */
uint32_t at_engine_dirtied(const struct at_engine *e);
/* Marks every scope as lost: start, resume, overrun. */
void at_engine_lose(struct at_engine *e, uint32_t scopes);

/* The protocol to which a dump of a table's IPv6 routes may be narrowed, where rules made it dirty;
 * 0: it may not, or it is not dirty. */
uint8_t at_engine_protocol(const struct at_engine *e, uint32_t table);

/* 1 if routes of this table matter to any selection. */
int at_engine_wants_table(const struct at_engine *e, uint32_t table);
size_t at_engine_tables(const struct at_engine *e, uint32_t *out, size_t max);
/* Counts changes of the policies and targets: compare it with an earlier one. */
uint32_t at_engine_policies(const struct at_engine *e);

/* Addresses whose way the kernel is asked for, of host length, AT_TARGETS_MAX at most. -EINVAL. */
int at_engine_set_targets(struct at_engine *e, const struct at_network *list, uint32_t n);
int at_engine_has_targets(const struct at_engine *e);
/* What the kernel's answers rest on; NULL: nobody knows, so everything counts. */
void at_engine_set_grounds(struct at_engine *e, const struct at_grounds *grounds);
/* Grows when the kernel may answer otherwise for a target. */
uint64_t at_engine_lookups(const struct at_engine *e);
/* Grows when a VRF's name leads to another link or table. */
uint64_t at_engine_vrfs(const struct at_engine *e);
/* 1 if a route to this destination matters to a target. */
int at_engine_covers_target(const struct at_engine *e, uint32_t table, unsigned family,
			    unsigned dst_len, const uint8_t *dst);
/* Ifindex and table of the VRF of that name, 0 = there is none. */
uint32_t at_engine_vrf(const struct at_engine *e, const char *name, uint32_t *table);
/* A nexthop object as a record (AT_RECORD_MAX bytes); its size, 0 = it is not known. */
size_t at_engine_nexthop(const struct at_engine *e, uint32_t id, void *out);

/* The state as records of one kind (AT_F_DUMP, op NEW), by key; bytes needed. */
size_t at_engine_snapshot(struct at_engine *e, int kind, void *buf, size_t max);
/* Name of a link (AT_NAME_LEN bytes); -ENOENT. */
int at_engine_link_name(const struct at_engine *e, uint32_t ifindex, char *out);
/* Records of the newest keys (at most 16) on which audits differed, and forgets them: the dump's
 * entry, or the state's with op DEL where the dump lacked it. Bytes written. */
size_t at_engine_drifts(struct at_engine *e, void *buf, size_t max);
void at_engine_counters(const struct at_engine *e, struct at_counters *out);

#endif
