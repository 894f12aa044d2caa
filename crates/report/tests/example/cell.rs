//! Cells and profiles for the tests of this crate, similar to real ones.

use std::path::PathBuf;

use recording::{
    Answer, Body, Call, CallTimes, Called, CallsSeries, Cell, Code, Counts, CpuCounts,
    Doubt, Ending, Episode, Interruption, Level, Mode, PhaseCalls, PhaseCounts, Profile,
    Recording, Stack, What,
};
use summary::{CallStack, Frequency, Typical};
use units::{Cpu, Instructions, Nanos, Span, TscHz};

use crate::example;

pub(crate) const TIMER: &str = "asm_sysvec_apic_timer_interrupt";
/// Names of kernels, as in the lab.
pub(crate) const OLD: &str = "6.1.0-56-cloud-amd64 (6.1.192-2)";
pub(crate) const NEW: &str = "6.12.117+deb12-cloud-amd64 (6.12.117-1~bpo12+1)";

/// A guest with one CPU.
const GUEST: &str = r#""cpus": {"online": "0"}, "tick": {"hz": 250}"#;

/// One tick of an old kernel: one function per line, below its caller, with its own
/// instructions.
const OLD_TICK: &str = "\
asm_sysvec_apic_timer_interrupt 61
 error_entry 28
  sync_regs 12
 error_return 19
 sysvec_apic_timer_interrupt 34
  __sysvec_apic_timer_interrupt 22
   hrtimer_interrupt 118
    _raw_spin_lock_irqsave 13
    ktime_get_update_offsets_now 61
     kvm_clock_get_cycles 17
    __hrtimer_run_queues 132
     __remove_hrtimer 27
      timerqueue_del 43
       rb_erase 38
     tick_sched_timer 48
      ktime_get 49
      tick_do_update_jiffies64 71
       calc_global_load 9
       update_wall_time 6
        timekeeping_advance 223
      tick_sched_handle.isra.0 21
       update_process_times 42
        account_process_tick 29
         account_user_time 53
          acct_account_cputime 21
           __acct_update_integrals 44
          cpuacct_account_field 19
        run_local_timers 35
         hrtimer_run_queues 33
         raise_softirq 31
        rcu_sched_clock_irq 121
         rcu_segcblist_ready_cbs 12
        scheduler_tick 87
         arch_scale_freq_tick 7
         update_rq_clock.part.0 41
         task_tick_fair 60
          update_curr 102
           cpuacct_charge 17
           __cgroup_account_cputime 21
          __update_load_avg_se 89
          __update_load_avg_cfs_rq 77
          update_load_avg 44
          hrtimer_active 16
         calc_global_load_tick 14
         trigger_load_balance 24
        run_posix_cpu_timers 38
      hrtimer_forward 37
     enqueue_hrtimer 24
      timerqueue_add 31
       rb_insert_color 11
    __hrtimer_get_next_event 33
     __hrtimer_next_event_base 44
    tick_program_event 17
     clockevents_program_event 51
      lapic_next_deadline 12
  irq_enter_rcu 22
  irq_exit_rcu 38
   __do_softirq 74
    run_timer_softirq 27
     __run_timers.part.0 58
    rcu_core 44";

/// One tick of a newer kernel.
const NEW_TICK: &str = "\
asm_sysvec_apic_timer_interrupt 61
 error_entry 28
  sync_regs 12
 error_return 19
 sysvec_apic_timer_interrupt 39
  __sysvec_apic_timer_interrupt 22
   hrtimer_interrupt 121
    _raw_spin_lock_irqsave 13
    ktime_get_update_offsets_now 58
     kvm_clock_get_cycles 17
    __hrtimer_run_queues 127
     __remove_hrtimer 27
      timerqueue_del 43
       rb_erase 38
     tick_nohz_handler 66
      ktime_get 49
      tick_do_update_jiffies64 69
       calc_global_load 9
       update_wall_time 6
        timekeeping_advance 236
      update_process_times 51
       account_process_tick 29
        account_user_time 53
         acct_account_cputime 21
          __acct_update_integrals 44
       hrtimer_run_queues 35
       rcu_sched_clock_irq 133
       sched_tick 96
        arch_scale_freq_tick 7
        update_rq_clock 52
        task_tick_fair 66
         update_curr 121
          update_curr_se 37
          update_deadline 29
          cpuacct_charge 17
          dl_server_update 58
           update_curr_dl_se 93
         __update_load_avg_se 92
         __update_load_avg_cfs_rq 81
         update_load_avg.constprop.0 49
        calc_global_load_tick 14
        sched_balance_trigger 26
       run_posix_cpu_timers 38
      hrtimer_forward 37
     enqueue_hrtimer 24
      timerqueue_add 31
       rb_insert_color 11
    __hrtimer_get_next_event 33
     __hrtimer_next_event_base 44
    tick_program_event 17
     clockevents_program_event 51
      lapic_next_deadline 12
  irq_enter_rcu 22
  irq_exit_rcu 44
   handle_softirqs 81
    run_timer_softirq 29
     __run_timers 63
     timer_expire_remote 19
    rcu_core 45";

/// One tick of the old kernel.
pub(crate) fn old_tick() -> Vec<CallStack<'static>> {
    stacks(OLD_TICK)
}

/// One tick of the newer kernel.
pub(crate) fn new_tick() -> Vec<CallStack<'static>> {
    stacks(NEW_TICK)
}

fn stacks(lines: &'static str) -> Vec<CallStack<'static>> {
    let mut open: Vec<&str> = Vec::new();
    let stack = |line: &'static str| {
        let (name, own) = line.trim_start().split_once(' ').unwrap();
        open.truncate(line.len() - line.trim_start().len());
        open.push(name);
        CallStack::new(open.clone(), Instructions::new(own.parse().unwrap()))
    };
    lines.lines().map(stack).collect()
}

/// The typical event of a cell: 112 of 239.
pub(crate) fn typical<'a>(cell: &'a Cell, stacks: Vec<CallStack<'a>>) -> Typical<'a> {
    let frequency = Frequency { times: 112, of: 239 };
    Typical { cell, call: None, place: 0, median: None, stacks, frequency }
}

/// An exact cell with the given ending.
pub(crate) fn cell(name: &str, kernel: &str, ending: Ending) -> Cell {
    Cell {
        name: name.to_owned(),
        asked: String::new(),
        kernel: kernel.to_owned(),
        image_bytes: None,
        machine: "pc, 1 CPU of qemu64,-rdrand, 256 MiB".to_owned(),
        params: String::new(),
        settings: Vec::new(),
        services: Vec::new(),
        workload: "noise on CPU 0 for 1 s".to_owned(),
        watch: None,
        mode: Mode::Exact,
        repeat: 1,
        identity: identity(name, kernel),
        cached: false,
        ending,
        variations: Vec::new(),
    }
}

/// A value in the format of a hash.
pub(crate) fn identity(name: &str, kernel: &str) -> String {
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().chain(kernel.bytes()).fold(0xcbf2_9ce4_8422_2325, mix);
    format!("{hash:016x}").repeat(4)
}

pub(crate) fn lost() -> Ending {
    Ending::Lost {
        why: "the kernel panicked: VFS: Unable to mount root fs on unknown-block(0,0)"
            .to_owned(),
        console: PathBuf::from("/home/me/.cache/noisefloor/lost/5e1f0c.console"),
    }
}

pub(crate) fn done(recording: Recording, counts: Option<Counts>) -> Ending {
    Ending::Done(Box::new(Answer { recording, counts, profile: None, host: None }))
}

fn values(pairs: &[(u64, u64)]) -> Vec<(Instructions, u64)> {
    pairs.iter().map(|&(value, count)| (Instructions::new(value), count)).collect()
}

/// Counts of CPU 0 in one phase: steps, and timer interrupts of the given level.
pub(crate) fn phase(
    steps: &[(u64, u64)],
    from: Level,
    timer: &[(u64, u64)],
) -> PhaseCounts {
    let entry =
        |entry: &str, kernel| Interruption { entry: entry.to_owned(), from, kernel };
    let interruptions = vec![
        entry("asm_common_interrupt", values(&[(9_911, 1)])),
        entry(TIMER, values(timer)),
    ];
    let kernel = timer.iter().map(|(value, count)| value * count).sum();
    let cpu = CpuCounts {
        cpu: Cpu::new(0),
        user: Instructions::new(1_000),
        kernel: Instructions::new(kernel),
        steps: values(steps),
        interruptions,
        groups: Vec::new(),
        idle_ns: None,
    };
    PhaseCounts { cpus: vec![cpu] }
}

/// A busy CPU: the lengths of gaps measured by the loop (a pass takes 13 instructions), and of ticks
/// counted by the counter.
pub(crate) fn tick_cost(gaps: &[u64], ticks: &[(u64, u64)]) -> Ending {
    let mut recording = example::noise(GUEST, 1);
    recording.doubts.clear();
    if let Body::Noise { series, .. } = &mut recording.body {
        series.clock_hz = TscHz::new(999_999_813).unwrap();
        let cpu = &mut series.cpus[0];
        cpu.loop_ns = Nanos::from_nanos(13);
        let gap = |(at, gap): (usize, &u64)| Span {
            start: Nanos::from_millis(4 * at as u64),
            length: Nanos::from_nanos(gap - 13),
        };
        cpu.gaps = gaps.iter().enumerate().map(gap).collect();
    }
    let counts = Counts { phases: vec![phase(&[], Level::User, ticks)] };
    done(recording, Some(counts))
}

/// An idle CPU in two intervals of a second: the number of ticks in `/proc` in both, and the ticks of
/// the counter in each.
pub(crate) fn idle_cost(by_proc: u64, ticks: &[(u64, u64)]) -> Ending {
    let mut recording = example::ticks(GUEST, 1, 2);
    if let Body::Ticks { series, .. } = &mut recording.body {
        series.samples[0].cpus[0].timer = Some(by_proc / 2);
        series.samples[1].cpus[0].timer = Some(by_proc - by_proc / 2);
    }
    let phases = vec![phase(&[], Level::Kernel, ticks); 2];
    done(recording, Some(Counts { phases }))
}

/// Calls on CPU 0, and the steps of each.
pub(crate) fn call_costs(calls: &[(Call, &[(u64, u64)])]) -> Ending {
    let mut recording = example::calls(GUEST);
    if let Body::Calls { spec, series } = &mut recording.body {
        spec.cpu = Cpu::new(0);
        spec.calls = calls.iter().map(|(call, _)| *call).collect();
        let times = |&(call, _): &(Call, _)| CallTimes { call, step_ns: Vec::new() };
        let (clock, clock_hz) = (series.clock.clone(), series.clock_hz);
        let calls = calls.iter().map(times).collect();
        *series = CallsSeries { clock, clock_hz, calls };
    }
    let phases = calls.iter().map(|(_, steps)| phase(steps, Level::User, &[])).collect();
    done(recording, Some(Counts { phases }))
}

/// A doubt of a recording.
pub(crate) fn doubt() -> Doubt {
    Doubt::new(
        Code::KernelComplained,
        "the kernel reported: rcu: INFO: rcu_sched detected stalls",
    )
}

/// The cell with a profile of two kinds of tick, one of them frequent.
pub(crate) fn with_profile(mut cell: Cell) -> Cell {
    let episode = |total, from, own: &[u64]| Episode {
        cpu: Cpu::new(0),
        what: What::Interruption { entry: TIMER.to_owned(), from },
        total: Instructions::new(total),
        times: vec![(0, if total == 2_999 { 1 } else { 2 })],
        stacks: own
            .iter()
            .enumerate()
            .map(|(at, own)| Stack {
                frames: (0..=at).collect(),
                own: Instructions::new(*own),
            })
            .collect(),
    };
    let step = Episode { what: What::Step, ..episode(412, Level::User, &[400, 12]) };
    let profile = Profile {
        names: vec![TIMER.to_owned(), "sysvec_apic_timer_interrupt".to_owned()],
        episodes: vec![
            episode(2_571, Level::Kernel, &[2_571]),
            episode(2_999, Level::User, &[2_999]),
            episode(2_571, Level::User, &[71, 2_000, 500]),
            step,
        ],
        phases: Vec::new(),
        ..Profile::default()
    };
    if let Ending::Done(answer) = &mut cell.ending {
        answer.profile = Some(profile);
    }
    cell
}

/// An idle CPU with one busy kernel thread.
pub(crate) fn busy_idle() -> Cell {
    let mut cell = with_profile(cell("idle", OLD, idle_cost(2, &[(2_571, 1)])));
    let Ending::Done(answer) = &mut cell.ending else { panic!() };
    let profile = answer.profile.as_mut().unwrap();
    let names = ["kdamond_fn", "usleep", "do_idle", "asm_sysvec_apic_timer_interrupt"];
    profile.names = names.map(str::to_owned).to_vec();
    let called = |name, caller, own| Called { name, caller, own: Instructions::new(own) };
    let calls = vec![
        called(0, None, 40_000),
        called(1, Some(0), 2_000),
        called(2, None, 600),
        called(3, None, 2_571),
    ];
    profile.phases = vec![PhaseCalls { phase: 0, cpu: Cpu::new(0), calls }];
    let phases = &mut answer.counts.as_mut().unwrap().phases;
    phases[0].cpus[0].kernel = Instructions::new(45_171);
    phases[1].cpus[0].kernel = Instructions::ZERO;
    cell
}
