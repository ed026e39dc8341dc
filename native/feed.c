// SPDX-License-Identifier: Apache-2.0
/*
 * The BPF tier of a source: a program on the multicast socket writes what matters
 * into a ring, as records. It tells what it lost in a page that is mapped here, so
 * that reading takes no system call; only waiting does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "map.h"
#include "ring.h"
#include "source.h"

struct watched {
	size_t n;
	uint32_t ifindex[AT_WATCHED_MAX]; /* in order */
};

struct at_feed {
	struct at_bpf bpf;
	struct at_ring ring, alarm;
	const struct at_shared *shared;
	uint64_t lost[AT_SCOPES + 1]; /* of shared->lost, what has been dealt with */
	uint64_t newest;	      /* boot_ns of the newest record */
	uint64_t reordered;
	uint64_t dropped[AT_TYPES]; /* by the reader before there was a program, lost ones too */
	struct at_window window;
	unsigned cpus;

	/* What the kernel knows. */
	int current;	   /* the filter in use */
	uint32_t policies; /* at_engine_policies() of it */
	int behind;	   /* the filter in use is not that of the policies */
	int mistrusted;	   /* `links` has what the reader does not know for certain */
	int crowded;	   /* not all links to be watched are in the map: none is quiet */
	int unsure;	   /* `watched` may differ from the map */
	int unwatched;	   /* there was an error, which may pass */
	uint32_t moves;	   /* at_engine_moves() of `watched` */
	struct at_filter filter;
	struct watched watched, next;
};

static int map(struct at_feed *f)
{
	void *page;
	int err = at_map_entries(f->bpf.ring, &f->bpf.ring_bytes);

	if (err == 0)
		err = at_ring_map(&f->ring, f->bpf.ring, f->bpf.ring_bytes);
	if (err == 0)
		err = at_ring_map(&f->alarm, f->bpf.alarm, (size_t)sysconf(_SC_PAGESIZE));
	if (err < 0)
		return err;
	page = mmap(NULL, sizeof(*f->shared), PROT_READ, MAP_SHARED, f->bpf.shared, 0);
	if (page == MAP_FAILED)
		return -errno;
	f->shared = page;
	return 0;
}

static uint64_t lost_in(const struct at_feed *f, int scope)
{
	return __atomic_load_n(&f->shared->lost[scope], __ATOMIC_ACQUIRE);
}

static void unmap(struct at_feed *f)
{
	if (f->shared)
		munmap((void *)f->shared, sizeof(*f->shared));
	at_ring_unmap(&f->ring);
	at_ring_unmap(&f->alarm);
}

/* The filter that the maps were made with, which judges nothing yet. */
static int begin_filter(struct at_feed *f, const struct at_engine *e)
{
	f->policies = at_engine_policies(e);
	at_engine_filter(e, &f->filter);
	return at_map_update(f->bpf.filter[0], 0, &f->filter);
}

static int attach(struct at_source *s, struct at_feed *f)
{
	int err = map(f);

	if (err == 0)
		err = begin_filter(f, s->engine);
	if (err == 0 &&
	    setsockopt(s->sock, SOL_SOCKET, SO_ATTACH_BPF, &f->bpf.prog, sizeof(f->bpf.prog)) < 0)
		err = -errno;
	/* What came before the program is older than all that is in the ring. */
	return err == 0 ? at_source_catch_up(s) : err;
}

int at_source_feed(struct at_source *s, const struct at_bpf *bpf)
{
	struct at_feed *f = calloc(1, sizeof(*f));
	struct at_bpf fds = *bpf;
	int err;

	if (!f) {
		at_bpf_close(&fds);
		return -ENOMEM;
	}
	f->bpf = *bpf;
	f->cpus = at_possible_cpus();
	err = attach(s, f);
	if (err < 0) {
		at_feed_close(f);
		return err;
	}
	for (int type = 0; type < AT_TYPES; type++)
		f->dropped[type] = s->counters.dropped[type] + s->counters.lost[type];
	s->feed = f;
	return 0;
}

void at_feed_close(struct at_feed *f)
{
	if (!f)
		return;
	unmap(f);
	at_bpf_close(&f->bpf);
	free(f);
}

int at_feed_ring(const struct at_feed *f)
{
	return f->bpf.ring;
}

int at_feed_alarm(const struct at_feed *f)
{
	return f->bpf.alarm;
}

/*
 * The program drops links that are as it wrote them last. What it did not see may have changed them
 * since, and the next message may say that they are so again.
 */
void at_feed_forget(struct at_feed *f)
{
	f->mistrusted = at_map_clear(f->bpf.links) < 0;
}

/* What the program dropped before it forgot may have been news. */
static void forget_at_last(struct at_source *s)
{
	if (!s->feed->mistrusted)
		return;
	at_feed_forget(s->feed);
	if (!s->feed->mistrusted)
		at_source_lose(s, AT_LOSS_RING, 1u << AT_SCOPE_LINK, 0);
}

/*
 * The filter that is not in use is filled and takes the place of the other as a
 * whole. The kernel returns when no program runs on the old one any more, so that
 * a dump which begins then misses nothing.
 */
static int put_filter(struct at_feed *f, const struct at_filter *filter)
{
	int next = !f->current;
	int err = at_map_update(f->bpf.filter[next], 0, filter);

	if (err == 0)
		err = at_map_update(f->bpf.filters, 0, &f->bpf.filter[next]);
	if (err < 0)
		return err;
	f->filter = *filter;
	f->current = next;
	/* Which links are quiet was judged by the old one. */
	f->mistrusted |= at_map_clear(f->bpf.links) < 0;
	return 0;
}

/* Tells the kernel of new policies. Where memory is short for a while, the next read tries again;
 * what the old filter drops until then is a loss, and so is what it dropped when that is over. */
static int sync_filter(struct at_source *s)
{
	uint32_t policies = at_engine_policies(s->engine);
	struct at_feed *f = s->feed;
	struct at_filter filter;
	int behind = f->behind, err = 0;

	if (f->policies == policies)
		return 0;
	at_engine_filter(s->engine, &filter);
	if (f->crowded)
		filter.n_quiet_names = filter.n_quiet_kinds = 0;
	if (memcmp(&filter, &f->filter, sizeof(filter)))
		err = put_filter(f, &filter);
	if (err < 0 && err != -ENOMEM)
		return err;
	f->behind = err < 0;
	if (f->behind != behind)
		at_source_lose(s, AT_LOSS_RING, AT_ALL_SCOPES | AT_RULES, 0);
	if (!f->behind)
		f->policies = policies;
	return 0;
}

static void malformed(struct at_source *s)
{
	s->counters.malformed++;
	at_source_lose(s, AT_LOSS_MALFORMED, AT_ALL_SCOPES, 1);
}

/* A message that the program did not take apart, counted there as emitted. */
static void take_raw(struct at_source *s, const struct at_header *head, size_t size)
{
	const struct at_raw *raw = (const void *)(head + 1);
	struct at_messages one = { .next = raw->message, .left = size - sizeof(*raw) };
	struct nlmsghdr msg;
	const uint8_t *bytes;
	unsigned type;

	if (size < sizeof(*raw) || at_message_next(&one, &msg, &bytes) <= 0) {
		malformed(s);
		return;
	}
	type = at_type_of(&msg);
	switch (at_source_take(s, &msg, bytes, head->boot_ns, head->flags & AT_F_KERNEL,
			       head->flags & AT_F_TASK ? &raw->task : NULL)) {
	case AT_FATE_DROPPED:
		s->counters.dropped[type]++;
		break;
	case AT_FATE_LOST:
		s->counters.lost[type]++;
		break;
	case AT_FATE_EMITTED:
		break;
	}
}

/* One record of the ring, which may be longer than the record in it. */
static void take(struct at_source *s, const struct at_sample *sample)
{
	const struct at_header *head = (const void *)sample->record;

	if (sample->size < sizeof(*head) || head->size < sizeof(*head) ||
	    head->size > sample->size) {
		malformed(s);
	} else if (head->kind == AT_KIND_RAW) {
		take_raw(s, head, head->size - sizeof(*head));
	} else if (head->size > sizeof(s->record)) {
		malformed(s);
	} else {
		memcpy(s->record, head, head->size);
		if (at_source_emit(s, s->record) == -EINVAL)
			malformed(s);
	}
}

static void read_ring(struct at_source *s, unsigned limit)
{
	struct at_window *w = &s->feed->window;
	uint64_t began, now = 0;
	unsigned n = 0;

	do {
		s->feed->reordered += at_ring_window(&s->feed->ring, w, &s->feed->newest);
		if (w->n && !now)
			now = at_boot_ns();
		for (size_t i = 0; i < w->n; i++) {
			began = now;
			take(s, &w->sample[i]);
			now = at_boot_ns();
			at_source_applied(s, now - began);
		}
		at_ring_release(&s->feed->ring, w);
		n += w->n;
	} while (w->n && n < limit);
}

/* Behind the records that did get room: what was lost is no older. */
static void check_losses(struct at_source *s)
{
	struct at_feed *f = s->feed;

	/* The last one is that of policy rules: AT_RULES. */
	for (int scope = 0; scope <= AT_SCOPES; scope++) {
		uint64_t lost = lost_in(f, scope);

		if (lost == f->lost[scope])
			continue;
		at_source_lose(s, AT_LOSS_RING, 1u << scope, lost - f->lost[scope]);
		f->lost[scope] = lost;
	}
}

int at_feed_read(struct at_source *s, unsigned limit)
{
	int err = sync_filter(s);

	if (err < 0)
		return err;
	forget_at_last(s);
	at_ring_skip(&s->feed->alarm);
	read_ring(s, limit);
	check_losses(s);
	return 0;
}

static int is_in(const struct watched *w, uint32_t ifindex)
{
	size_t low = 0, high = w->n, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (w->ifindex[middle] < ifindex)
			low = middle + 1;
		else
			high = middle;
	}
	return low < w->n && w->ifindex[low] == ifindex;
}

/* Brings the kernel from `watched` to `next`; what goes makes room for what comes. 1 if links came,
 * else 0, or -errno. */
static int exchange(struct at_feed *f)
{
	uint32_t yes = 1;
	int came = 0, err = 0;

	if (f->unsure) {
		err = at_map_clear(f->bpf.watched);
		f->watched.n = 0;
	}
	for (size_t i = 0; i < f->watched.n && err == 0; i++) {
		if (!is_in(&f->next, f->watched.ifindex[i]))
			err = at_map_delete(f->bpf.watched, f->watched.ifindex[i]);
	}
	for (size_t i = 0; i < f->next.n && err == 0; i++) {
		if (is_in(&f->watched, f->next.ifindex[i]))
			continue;
		err = at_map_update(f->bpf.watched, f->next.ifindex[i], &yes);
		came = 1;
	}
	f->unsure = err < 0;
	if (err < 0)
		return err;
	f->watched = f->next;
	return came;
}

/* As exchange(); -E2BIG: there are too many. */
static int watch(struct at_source *s)
{
	struct at_feed *f = s->feed;
	int n = at_engine_watched(s->engine, f->next.ifindex, AT_WATCHED_MAX);

	if (n < 0)
		return n;
	if (n > AT_WATCHED_MAX)
		return -E2BIG;
	f->next.n = (size_t)n;
	return exchange(f);
}

int at_feed_watch(struct at_source *s)
{
	uint32_t moves = at_engine_moves(s->engine);
	struct at_feed *f = s->feed;
	int came, crowded;

	if (moves == f->moves && !f->unwatched)
		return 0;
	came = watch(s);
	crowded = came < 0;
	f->unwatched = crowded && came != -E2BIG;
	f->moves = moves;
	if (crowded == f->crowded)
		return came > 0;
	f->crowded = crowded;
	f->policies--; /* so that the filter is written again */
	return 1;
}

void at_feed_counters(const struct at_feed *f, struct at_source_counters *out)
{
	struct at_count *counts = calloc(f->cpus, sizeof(*counts));
	struct at_traced *traced = calloc(f->cpus, sizeof(*traced));
	uint32_t type;
	unsigned cpu;

	for (type = 0; counts && type < AT_TYPES; type++) {
		uint64_t emitted = 0;
		uint64_t taken_back = out->dropped[type] + out->lost[type] - f->dropped[type];

		if (at_map_lookup(f->bpf.counts, type, counts) < 0)
			break;
		for (cpu = 0; cpu < f->cpus; cpu++) {
			out->seen[type] += counts[cpu].seen;
			out->dropped[type] += counts[cpu].dropped;
			emitted += counts[cpu].emitted;
			out->lost[type] += counts[cpu].lost;
		}
		/* Of what the program hands over raw, some comes to nothing here. It counts a
		 * message when it has written it, so the reader may be first. */
		out->emitted[type] += emitted > taken_back ? emitted - taken_back : 0;
	}
	if (traced && at_map_lookup(f->bpf.traced, 0, traced) == 0) {
		for (cpu = 0; cpu < f->cpus; cpu++) {
			out->traced.flushed += traced[cpu].flushed;
			out->traced.unreported += traced[cpu].unreported;
			out->traced.overruns += traced[cpu].overruns;
		}
	}
	out->ring_bytes = f->bpf.ring_bytes;
	out->reordered = f->reordered;
	free(counts);
	free(traced);
}
