/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The programs at the begin and the end of interrupts, handlers and softirqs, which call `begins(level)` and
 * `ends(level, id)` of the file that includes them. Those of vectors are attached to the tracepoints of all
 * vectors. */
SEC("raw_tp")
int vector_entry(struct bpf_raw_tracepoint_args *args)
{
	return begins(VECTOR);
}

SEC("raw_tp")
int vector_exit(struct bpf_raw_tracepoint_args *args)
{
	return ends(VECTOR, args->args[0]);
}

SEC("raw_tp/irq_handler_entry")
int handler_entry(struct bpf_raw_tracepoint_args *args)
{
	return begins(HANDLER);
}

SEC("raw_tp/irq_handler_exit")
int handler_exit(struct bpf_raw_tracepoint_args *args)
{
	return ends(HANDLER, args->args[0]);
}

SEC("raw_tp/softirq_entry")
int softirq_entry(struct bpf_raw_tracepoint_args *args)
{
	return begins(SOFTIRQ);
}

SEC("raw_tp/softirq_exit")
int softirq_exit(struct bpf_raw_tracepoint_args *args)
{
	return ends(SOFTIRQ, args->args[0]);
}
