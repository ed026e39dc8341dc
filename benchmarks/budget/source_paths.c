// SPDX-License-Identifier: Apache-2.0
/* A source that reads: dumps, the socket, and the ring that the filter in the kernel fills. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "counted.h"
#include "netlink.h"

#define EVENTS	   256
#define DEFAULTS   64
#define DATAGRAM   (32 * 1024) /* as the kernel fills them for a dump */
#define RING_BYTES (1u << 20)

struct reading {
	struct at_engine *engine;
	struct at_source *source;
	uint32_t scope;
	uint8_t *bytes; /* of the datagrams */
	struct datagram *datagrams;
	size_t n, used;
};

/* A source on an engine that has seen n addresses, or none. */
static void open_source(struct reading *r, uint32_t addresses, const struct at_bpf *bpf)
{
	static const struct datagram none;

	*r = (struct reading){ .engine = host_new(0, addresses, PER_LINK) };
	must(at_source_open(r->engine, 1 << 16, &r->source) == 0, "a source is opened");
	must(!bpf || at_source_feed(r->source, bpf) == 0, "it is fed");
	host_clean(r->engine);
	kernel_says(at_source_fd(r->source), &none, 0);
}

static void close_source(struct reading *r)
{
	at_source_close(r->source);
	at_engine_free(r->engine);
	free(r->bytes);
	free(r->datagrams);
}

static void make_room(struct reading *r, size_t messages)
{
	free(r->bytes);
	free(r->datagrams);
	r->bytes = calloc(messages, 256);
	r->datagrams = calloc(messages, sizeof(*r->datagrams));
	must(r->bytes && r->datagrams, "there is memory");
	r->n = r->used = 0;
}

/* Behind the others of a datagram while it has room, or in one of its own. */
static void say(struct reading *r, const struct message *m, bool alone)
{
	struct datagram *last = r->n ? &r->datagrams[r->n - 1] : NULL;

	if (!last || alone || last->size + m->size > DATAGRAM) {
		last = &r->datagrams[r->n++];
		*last = (struct datagram){ .data = r->bytes + r->used };
	}
	memcpy(r->bytes + r->used, m->words, m->size);
	r->used += m->size;
	last->size += m->size;
}

static void say_done(struct reading *r)
{
	struct message m;
	int error = 0;

	message_begin(&m, NLMSG_DONE, &error, sizeof(error));
	say(r, &m, false);
}

static void dump(void *arg)
{
	struct reading *r = arg;

	must(at_source_dump(r->source, r->scope, 0, 0, 0) == 0, "a dump is read");
}

/* Of n entries every `step`th. */
static void answer_addresses(struct reading *r, uint32_t n, uint32_t step)
{
	struct message m;

	make_room(r, n + 1);
	for (uint32_t i = 0; i < n; i += step) {
		message_addr(&m, AT_OP_NEW, FIRST_LINK + i / PER_LINK, i, IFA_F_PERMANENT);
		say(r, &m, false);
	}
	say_done(r);
	kernel_answers(r->datagrams, r->n);
}

/* Defaults that differ in their metric: what a dump of IPv4 routes is kept of. */
static void answer_defaults(struct reading *r, uint32_t n, uint32_t step)
{
	struct message m;

	make_room(r, n + 1);
	for (uint32_t i = 0; i < n; i += step) {
		message_default(&m, FIRST_LINK, 100 + i);
		say(r, &m, false);
	}
	say_done(r);
	kernel_answers(r->datagrams, r->n);
}

static void answer_routes(struct reading *r, uint32_t n, uint32_t step)
{
	struct message m;

	make_room(r, n + 1);
	for (uint32_t i = 0; i < n; i += step) {
		message_route(&m, AF_INET6, i);
		say(r, &m, false);
	}
	say_done(r);
	kernel_answers(r->datagrams, r->n);
}

/* What is new, what is known, and what goes because the dump lacks it. */
static void count_dumps(uint32_t scope, uint32_t n, const char *const names[3],
			void (*answer)(struct reading *r, uint32_t n, uint32_t step))
{
	struct path path = { .n = n, .units = n };
	struct reading r;

	open_source(&r, PER_LINK, NULL);
	r.scope = scope;
	for (int i = 0; i < 3 && names[i]; i++) {
		path.name = names[i];
		answer(&r, n, i == 2 ? 2 : 1);
		count(&path, dump, &r);
	}
	close_source(&r);
}

void dump_paths(uint32_t n)
{
	static const char *const addresses[] = { "dump of new addresses", "dump of known addresses",
						 "dump that lacks half of the addresses" };
	static const char *const routes[3] = { "dump of IPv6 routes of nobody" };

	count_dumps(AT_SCOPE_ADDR4, n, addresses, answer_addresses);
	count_dumps(AT_SCOPE_ROUTE6, n, routes, answer_routes);
}

/* Each one more makes a change dearer, so there are as many as somebody may have. */
void default_paths(void)
{
	static const char *const defaults[] = { "dump of new default routes",
						"dump of known default routes",
						"dump that lacks half of the default routes" };

	count_dumps(AT_SCOPE_ROUTE4, DEFAULTS, defaults, answer_defaults);
}

static void drain(void *arg)
{
	struct reading *r = arg;

	at_source_drain(r->source);
}

static void event_address(struct message *m, uint32_t i)
{
	message_addr(m, AT_OP_NEW, FIRST_LINK, 1, IFA_F_PERMANENT | (i & 1 ? 0 : IFA_F_DEPRECATED));
}

static void event_best(struct message *m, uint32_t i)
{
	message_addr(m, AT_OP_NEW, FIRST_LINK, 0, IFA_F_PERMANENT | (i & 1 ? 0 : IFA_F_DEPRECATED));
}

static void event_route(struct message *m, uint32_t i)
{
	message_route(m, AF_INET, i);
}

static const struct {
	const char *socket, *ring;
	void (*make)(struct message *m, uint32_t i);
} events[] = {
	{ "socket: address", "ring: address", event_address },
	{ "socket: best address", "ring: best address", event_best },
	{ "socket: route of nobody", "ring: route of nobody", event_route },
};

void event_paths(void)
{
	struct path path = { .units = EVENTS, .event = true };
	struct message m;
	struct reading r;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		open_source(&r, PER_LINK, NULL);
		make_room(&r, EVENTS);
		for (uint32_t n = 0; n < EVENTS; n++) {
			events[i].make(&m, n);
			say(&r, &m, true);
		}
		path.name = events[i].socket;
		/* Once before, for arrays to grow. */
		kernel_says(at_source_fd(r.source), r.datagrams, r.n);
		drain(&r);
		kernel_says(at_source_fd(r.source), r.datagrams, r.n);
		count(&path, drain, &r);
		close_source(&r);
	}
}

/* Laid out as the kernel's: the reader's page, the writer's page, data. */
struct ring {
	int fd;
	uint8_t *memory;
	size_t page, used;
};

static int memory_of(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	must(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "there is memory for a ring");
	return fd;
}

static void open_ring(struct ring *ring)
{
	size_t size;

	ring->page = (size_t)sysconf(_SC_PAGESIZE);
	size = 2 * ring->page + 2 * RING_BYTES;
	ring->fd = memory_of("ring", size);
	ring->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	must(ring->memory != MAP_FAILED, "a ring is mapped");
	ring->used = 0;
}

static void close_ring(struct ring *ring)
{
	munmap(ring->memory, 2 * ring->page + 2 * RING_BYTES);
}

static void ring_put(struct ring *ring, const void *record, size_t size)
{
	uint8_t *at = ring->memory + 2 * ring->page + ring->used;
	uint32_t length = (uint32_t)size;

	memcpy(at, &length, sizeof(length));
	memcpy(at + BPF_RINGBUF_HDR_SZ, record, size);
	ring->used += BPF_RINGBUF_HDR_SZ + (size + 7) / 8 * 8;
	must(ring->used < RING_BYTES, "the ring has room");
}

/* The same records once more: nobody has read so far. */
static void ring_publish(struct ring *ring)
{
	unsigned long none = 0, all = ring->used;

	memcpy(ring->memory, &none, sizeof(none));
	memcpy(ring->memory + ring->page, &all, sizeof(all));
}

/* A message as the filter hands it over. */
static void ring_put_message(struct ring *ring, const struct message *m)
{
	struct {
		struct at_header head;
		struct at_task task; /* and the message: struct at_raw */
		uint8_t message[sizeof(m->words)];
	} record = { .head = {
			     .version = AT_RECORD_VERSION, .kind = AT_KIND_RAW, .op = AT_OP_NEW } };
	static uint64_t now = 7200ull * 1000000000;
	size_t size = sizeof(record.head) + sizeof(record.task) + m->size;

	record.head.size = (uint16_t)size;
	record.head.boot_ns = now += 10000;
	memcpy(record.message, m->words, m->size);
	ring_put(ring, &record, size);
}

static void put_links(struct ring *ring)
{
	for (uint32_t i = 0; i < EVENTS; i++) {
		struct made link = made_link(FIRST_LINK, true, 1500 + (i & 1));

		ring_put(ring, &link, link.h.size);
	}
}

static void count_ring(const struct path *path, struct ring *ring)
{
	struct at_bpf bpf = {
		.prog = -1,
		.ring = ring->fd,
		.alarm = memory_of("alarm", 4 * ring->page),
		.shared = memory_of("shared", ring->page),
		.counts = -1,
		.filters = -1,
		.filter = { -1, -1 },
		.links = -1,
		.watched = -1,
		.traced = -1,
	};
	struct reading r;

	open_source(&r, PER_LINK, &bpf);
	for (int i = 0; i < 2; i++) {
		ring_publish(ring);
		if (i == 0)
			drain(&r);
	}
	count(path, drain, &r);
	close_source(&r);
	close_ring(ring);
}

void ring_paths(void)
{
	struct path path = { .units = EVENTS, .event = true };
	struct message m;
	struct ring ring;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		open_ring(&ring);
		for (uint32_t n = 0; n < EVENTS; n++) {
			events[i].make(&m, n);
			ring_put_message(&ring, &m);
		}
		path.name = events[i].ring;
		count_ring(&path, &ring);
	}
	open_ring(&ring);
	put_links(&ring);
	path.name = "ring: link";
	count_ring(&path, &ring);
}
