// SPDX-License-Identifier: Apache-2.0
/* Capabilities: what a source needs to be opened, and no longer afterwards. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "bpf.h"
#include "map.h"

#define BIT(capability) (1ull << (capability))
#define READS_MAPS	(BIT(CAP_BPF) | BIT(CAP_SYS_ADMIN))

/* Three sets in words of 32 bits, as the kernel takes them. */
struct sets {
	struct __user_cap_data_struct word[2];
};

static long call(int number, struct sets *sets)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(number, &head, sets->word) < 0 ? -errno : 0;
}

static void clear(struct sets *sets, uint64_t mask)
{
	for (int i = 0; i < 2; i++) {
		uint32_t rest = ~(uint32_t)(mask >> 32 * i);

		sets->word[i].effective &= rest;
		sets->word[i].permitted &= rest;
		sets->word[i].inheritable &= rest; /* ambient ones go with it */
	}
}

static uint64_t permitted(const struct sets *sets)
{
	return sets->word[0].permitted | (uint64_t)sets->word[1].permitted << 32;
}

/*
 * Before Linux 5.19 unprivileged_bpf_disabled forbids every command of bpf(2), since then only
 * those that make something. The kernel looks at that before it looks at the descriptor.
 */
static int may_read_maps_without(const struct sets *now)
{
	struct sets less = *now;
	uint64_t value;
	int err;

	for (int i = 0; i < 2; i++)
		less.word[i].effective &= ~(uint32_t)(READS_MAPS >> 32 * i);
	if (call(SYS_capset, &less) < 0)
		return 0;
	err = at_map_lookup(-1, 0, &value);
	less = *now;
	call(SYS_capset, &less);
	return err != -EPERM;
}

int at_caps_drop(uint64_t *given_up)
{
	uint64_t mask = BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_NET_ADMIN) | BIT(CAP_SYS_ADMIN) |
			BIT(CAP_SYS_RESOURCE);
	struct sets now;
	uint64_t reads;
	long err;

	memset(&now, 0, sizeof(now));
	err = call(SYS_capget, &now);
	if (err < 0)
		return (int)err;
	reads = permitted(&now) & READS_MAPS;
	if (reads && !may_read_maps_without(&now))
		mask &= ~(reads & BIT(CAP_BPF) ? BIT(CAP_BPF) : reads);
	*given_up = permitted(&now) & mask;
	clear(&now, mask);
	return (int)call(SYS_capset, &now);
}
