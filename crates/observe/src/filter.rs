//! The filter of system calls (seccomp(2), Documentation/userspace-api/seccomp_filter.rst): those with a
//! path stop for the tracer, all others run at full speed.

use libc::sock_filter;

use crate::calls;

/// `AUDIT_ARCH_X86_64` of linux/audit.h.
#[cfg(target_arch = "x86_64")]
const OWN: u32 = 0xc000_003e;
/// `AUDIT_ARCH_AARCH64` of linux/audit.h.
#[cfg(target_arch = "aarch64")]
const OWN: u32 = 0xc000_00b7;
/// Numbers from here are those of x32 (`__X32_SYSCALL_BIT`); arm64 has none of them.
const X32: u32 = 0x4000_0000;
/// The places in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The instructions before the comparisons: two loads and two jumps.
const CHECKS: usize = 4;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// The filter. At its end are three answers: allowed, refused, traced.
pub(crate) fn program() -> Vec<sock_filter> {
    let mut numbers: Vec<u32> =
        calls::all().filter_map(|row| u32::try_from(row.number).ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let refused = u32::try_from(calls::REFUSED).unwrap_or(u32::MAX);
    let answers = CHECKS + numbers.len() + 1;
    // A jump skips so many instructions after its own.
    let to = |answer: usize, from: usize| {
        u8::try_from(answers + answer - from - 1).unwrap_or(u8::MAX)
    };
    let mut program = vec![
        step(LOAD, 0, 0, ARCHITECTURE),
        step(EQUAL, 0, to(0, 1), OWN),
        step(LOAD, 0, 0, NUMBER),
        step(AT_LEAST, to(0, 3), 0, X32),
    ];
    for number in numbers {
        program.push(step(EQUAL, to(2, program.len()), 0, number));
    }
    program.push(step(EQUAL, to(1, program.len()), 0, refused));
    program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    let no_such_call = libc::ENOSYS.unsigned_abs();
    program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | no_such_call));
    program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_TRACE));
    program
}

fn step(code: u32, jump_true: u8, jump_false: u8, k: u32) -> sock_filter {
    let code = u16::try_from(code).unwrap_or_default();
    sock_filter { code, jt: jump_true, jf: jump_false, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers to a call, interpreted.
    fn answer(architecture: u32, number: u32) -> u32 {
        let program = program();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = &program[at];
            at += 1;
            let code = u32::from(step.code);
            let holds = match code {
                LOAD => {
                    loaded = if step.k == NUMBER { number } else { architecture };
                    continue;
                }
                RETURN => return step.k,
                EQUAL => loaded == step.k,
                AT_LEAST => loaded >= step.k,
                other => panic!("no such step: {other}"),
            };
            at += usize::from(if holds { step.jt } else { step.jf });
        }
    }

    /// Check that all calls with a path stop, and no others, nor those of other architectures.
    #[test]
    fn answers() {
        for row in calls::all() {
            let number = u32::try_from(row.number).unwrap();
            assert_eq!(answer(OWN, number), libc::SECCOMP_RET_TRACE, "{row:?}");
            assert_eq!(answer(0x4000_0003, number), libc::SECCOMP_RET_ALLOW);
            assert_eq!(answer(OWN, number | X32), libc::SECCOMP_RET_ALLOW);
        }
        for other in [libc::SYS_read, libc::SYS_fstat, libc::SYS_exit_group] {
            let number = u32::try_from(other).unwrap();
            assert_eq!(answer(OWN, number), libc::SECCOMP_RET_ALLOW);
        }
        let refused = u32::try_from(calls::REFUSED).unwrap();
        assert_eq!(answer(OWN, refused), libc::SECCOMP_RET_ERRNO | 38);
    }
}
