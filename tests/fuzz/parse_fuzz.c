// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer: any bytes as netlink messages, and what the parser makes of them
 * as events and entries of dumps for an engine. Built with clang
 * -fsanitize=fuzzer,address,undefined and everything in native/.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "netlink.h"
#include "source.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct at_engine *new_engine(void)
{
	static const struct at_policy policy = {
		.families = 3,
		.fallback = AT_FALLBACK_AUTO,
		.n_criteria = 2,
		.criteria = { AT_CRIT_DEFAULT_ROUTE, AT_CRIT_IFINDEX },
		.table = 254,
	};
	struct at_engine *engine = at_engine_new();

	CHECK(engine && at_engine_set_policy(engine, 0, &policy) == 0);
	return engine;
}

/* Each message lies alone in memory of its size, so that a read beyond it is seen. */
static void feed(struct at_engine *engine, const uint8_t *msg, size_t len, uint64_t now,
		 uint32_t flags)
{
	uint64_t record[(AT_RECORD_MAX + 7) / 8];
	struct at_header *head = (void *)record;
	uint8_t *copy = malloc(len);
	int size;

	CHECK(copy);
	memcpy(copy, msg, len);
	size = at_parse(copy, len, now, flags, record);
	free(copy);
	CHECK(size <= (int)sizeof(record));
	if (size <= 0)
		return;
	CHECK(size == head->size && size % 8 == 0 && head->boot_ns == now);
	CHECK((head->flags & ~AT_F_TRUNCATED) == flags);
	/* What the parser lets pass is never malformed for the engine. */
	CHECK(at_engine_apply(engine, record, (size_t)size) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct at_messages messages = { .next = data, .left = size };
	struct at_engine *engine = new_engine();
	struct nlmsghdr head;
	const uint8_t *msg;
	struct at_view view;
	uint64_t now = 1;

	while (at_message_next(&messages, &head, &msg) > 0)
		feed(engine, msg, head.nlmsg_len, now++, head.nlmsg_seq & 1 ? AT_F_DUMP : 0);
	/* The rest is a message whose length does not fit. */
	feed(engine, messages.next, messages.left, now, 0);
	at_engine_view(engine, 0, 2, &view);
	at_engine_view(engine, 0, 10, &view);
	at_engine_free(engine);
	return 0;
}
