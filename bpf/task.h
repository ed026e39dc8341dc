/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Who makes the change: a message is sent in the context of whoever asked for it. */
#ifndef ADDRTRACKER_TASK_H
#define ADDRTRACKER_TASK_H

#include <bpf/bpf_core_read.h>

#include "records.h"

#define PF_KTHREAD 0x00200000

struct task_struct {
	unsigned int flags;
	int tgid;
	char comm[16];
} __attribute__((preserve_access_index));

/* Fills the trailer; returns the flags of the header that follow. bpf_get_current_pid_tgid()
 * is refused to socket filters before Linux 6.10. */
static __always_inline __u32 read_task(struct at_task *task)
{
	struct task_struct *current = (void *)bpf_get_current_task();
	unsigned int flags = 0;

	__builtin_memset(task, 0, sizeof(*task));
	bpf_core_read(&task->tgid, sizeof(task->tgid), &current->tgid);
	bpf_core_read_str(task->comm, sizeof(task->comm), &current->comm);
	bpf_core_read(&flags, sizeof(flags), &current->flags);
	return AT_F_TASK | (flags & PF_KTHREAD ? AT_F_KERNEL : 0);
}

#endif
