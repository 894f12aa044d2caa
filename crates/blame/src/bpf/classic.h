/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The same at classic tracepoints: programs that perf runs, on the event's record rather
 * than on the kernel's own structures. Only the lab loads them, to compare costs. */
#ifndef NOISEFLOOR_CLASSIC_H
#define NOISEFLOOR_CLASSIC_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct trace_event_raw_x86_irq_vector {
	int vector;
};

struct trace_event_raw_irq_handler_exit {
	int irq;
};

struct trace_event_raw_softirq {
	unsigned int vec;
};

struct trace_event_raw_hrtimer_expire_entry {
	void *function;
};

struct trace_event_raw_nmi_handler {
	void *handler;
	__s64 delta_ns;
};

struct trace_event_raw_sched_switch {
	int next_pid;
};

#pragma clang attribute pop

SEC("tp")
int classic_vector_entry(void *event)
{
	return begin(event, VECTOR);
}

SEC("tp")
int classic_vector_exit(struct trace_event_raw_x86_irq_vector *event)
{
	return end(event, VECTOR, event->vector);
}

SEC("tp")
int classic_handler_entry(void *event)
{
	return begin(event, HANDLER);
}

SEC("tp")
int classic_handler_exit(struct trace_event_raw_irq_handler_exit *event)
{
	return end(event, HANDLER, event->irq);
}

SEC("tp")
int classic_softirq_entry(void *event)
{
	return begin(event, SOFTIRQ);
}

SEC("tp")
int classic_softirq_exit(struct trace_event_raw_softirq *event)
{
	return end(event, SOFTIRQ, event->vec);
}

SEC("tp")
int classic_timer_expired(struct trace_event_raw_hrtimer_expire_entry *event)
{
	struct slot *slot = unnamed_timer();

	if (slot)
		slot->detail = (__u64)event->function;
	return 0;
}

SEC("tp")
int classic_nmi(struct trace_event_raw_nmi_handler *event)
{
	return end_of_nmi(event, (__u64)event->handler, event->delta_ns);
}

/* The next thread is only a number here: a spinner's is known once it has left the CPU. */
static __always_inline int leave_for(void *context, __u32 next, struct task_struct *running,
				     enum access access)
{
	struct lane *lane = lane_here();

	if (!lane)
		return 0;
	if (spins(lane, running, access))
		lane->spinner = RUNNING(access, running, pid);
	return leave(context, lane, running, access,
		     lane->spinner && lane->spinner == next, 0);
}

SEC("tp")
int classic_switched(struct trace_event_raw_sched_switch *event)
{
	return leave_for(event, event->next_pid, bpf_get_current_task_btf(), DIRECT);
}

SEC("tp")
int classic_switched_copied(struct trace_event_raw_sched_switch *event)
{
	return leave_for(event, event->next_pid, (void *)bpf_get_current_task(), COPIED);
}

#endif
