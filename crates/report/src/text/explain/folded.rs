//! Folded stacks: one line for each stack, `outermost;...;innermost number`, as read by
//! `flamegraph.pl` and similar tools.

use std::collections::BTreeMap;

use summary::CallStack;
use units::Instructions;

/// Stacks as folded lines, sorted; equal stacks are added up.
pub fn folded_stacks(stacks: &[CallStack<'_>]) -> String {
    let mut lines: BTreeMap<String, Instructions> = BTreeMap::new();
    for stack in stacks {
        let sum = lines.entry(line(stack)).or_default();
        *sum = *sum + stack.own();
    }
    lines.iter().map(|(frames, own)| format!("{frames} {own}\n")).collect()
}

/// Stacks of two sides in the format of `difffolded.pl`: a line for each stack,
/// `outer;inner 123 145`, sorted.
pub fn folded_stacks_diff(before: &[CallStack<'_>], after: &[CallStack<'_>]) -> String {
    let mut lines: BTreeMap<String, [Instructions; 2]> = BTreeMap::new();
    for (side, stacks) in [before, after].into_iter().enumerate() {
        for stack in stacks {
            let sums = lines.entry(line(stack)).or_default();
            sums[side] = sums[side] + stack.own();
        }
    }
    lines.iter().map(|(frames, [a, b])| format!("{frames} {a} {b}\n")).collect()
}

fn line(stack: &CallStack<'_>) -> String {
    let frames: Vec<String> = stack.frames().iter().map(|name| escape(name)).collect();
    frames.join(";")
}

/// The name with `_` for characters that have a meaning in the format.
fn escape(name: &str) -> String {
    name.replace(|c: char| c == ';' || c.is_control(), "_")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::example::cell as cell_example;

    /// Check the lines of a tick.
    #[test]
    fn tick() {
        assert_snapshot!(folded_stacks(&cell_example::old_tick()), @r#"
    asm_sysvec_apic_timer_interrupt 61
    asm_sysvec_apic_timer_interrupt;error_entry 28
    asm_sysvec_apic_timer_interrupt;error_entry;sync_regs 12
    asm_sysvec_apic_timer_interrupt;error_return 19
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt 34
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt 22
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt 118
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_get_next_event 33
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_get_next_event;__hrtimer_next_event_base 44
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues 132
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;__remove_hrtimer 27
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;__remove_hrtimer;timerqueue_del 43
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;__remove_hrtimer;timerqueue_del;rb_erase 38
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;enqueue_hrtimer 24
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;enqueue_hrtimer;timerqueue_add 31
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;enqueue_hrtimer;timerqueue_add;rb_insert_color 11
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer 48
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;hrtimer_forward 37
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;ktime_get 49
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_do_update_jiffies64 71
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_do_update_jiffies64;calc_global_load 9
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_do_update_jiffies64;update_wall_time 6
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_do_update_jiffies64;update_wall_time;timekeeping_advance 223
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0 21
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times 42
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;account_process_tick 29
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;account_process_tick;account_user_time 53
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;account_process_tick;account_user_time;acct_account_cputime 21
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;account_process_tick;account_user_time;acct_account_cputime;__acct_update_integrals 44
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;account_process_tick;account_user_time;cpuacct_account_field 19
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;rcu_sched_clock_irq 121
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;rcu_sched_clock_irq;rcu_segcblist_ready_cbs 12
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;run_local_timers 35
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;run_local_timers;hrtimer_run_queues 33
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;run_local_timers;raise_softirq 31
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;run_posix_cpu_timers 38
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick 87
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;arch_scale_freq_tick 7
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;calc_global_load_tick 14
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;task_tick_fair 60
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;task_tick_fair;__update_load_avg_cfs_rq 77
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;task_tick_fair;__update_load_avg_se 89
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;task_tick_fair;hrtimer_active 16
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;task_tick_fair;update_curr 102
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;task_tick_fair;update_curr;__cgroup_account_cputime 21
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;task_tick_fair;update_curr;cpuacct_charge 17
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;task_tick_fair;update_load_avg 44
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;trigger_load_balance 24
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;__hrtimer_run_queues;tick_sched_timer;tick_sched_handle.isra.0;update_process_times;scheduler_tick;update_rq_clock.part.0 41
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;_raw_spin_lock_irqsave 13
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;ktime_get_update_offsets_now 61
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;ktime_get_update_offsets_now;kvm_clock_get_cycles 17
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;tick_program_event 17
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;tick_program_event;clockevents_program_event 51
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;__sysvec_apic_timer_interrupt;hrtimer_interrupt;tick_program_event;clockevents_program_event;lapic_next_deadline 12
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;irq_enter_rcu 22
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;irq_exit_rcu 38
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;irq_exit_rcu;__do_softirq 74
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;irq_exit_rcu;__do_softirq;rcu_core 44
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;irq_exit_rcu;__do_softirq;run_timer_softirq 27
    asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;irq_exit_rcu;__do_softirq;run_timer_softirq;__run_timers.part.0 58
    "#);
    }

    /// Check that equal stacks are added up, and that separators in names are replaced.
    #[test]
    fn odd() {
        let stack = |frames: &[&'static str], own| {
            CallStack::new(frames.to_vec(), Instructions::new(own))
        };
        let stacks = [stack(&["b"], 1), stack(&["a;c", "d\n"], 2), stack(&["b"], 3)];
        assert_eq!(folded_stacks(&stacks), "a_c;d_ 2\nb 4\n");
    }
}
