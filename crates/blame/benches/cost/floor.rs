//! The minimum cost of tracing: at each tracepoint a program that reads the clock and ignores it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use libbpf_rs::libbpf_sys::{
    BPF_PROG_TYPE_RAW_TRACEPOINT, bpf_insn, bpf_prog_load, bpf_raw_tracepoint_open,
};

/// `bpf_ktime_get_ns` in `include/uapi/linux/bpf.h`.
const KTIME_GET_NS: i32 = 5;
/// Calls a helper; puts a number into register 0; ends (`include/uapi/linux/bpf_common.h`).
const CALL: u8 = 0x85;
const MOVE: u8 = 0xb7;
const EXIT: u8 = 0x95;

/// Programs that are attached until they are dropped.
pub(crate) struct Floor(#[expect(dead_code, reason = "holds it open")] Vec<OwnedFd>);

impl Floor {
    pub(crate) fn at(tracepoints: &[&CStr]) -> io::Result<Self> {
        let mut open = vec![load()?];
        for tracepoint in tracepoints {
            let program = std::os::fd::AsRawFd::as_raw_fd(&open[0]);
            // SAFETY: the name ends in a zero, and the program is open.
            let link = unsafe { bpf_raw_tracepoint_open(tracepoint.as_ptr(), program) };
            open.push(opened(link)?);
        }
        Ok(Self(open))
    }
}

fn load() -> io::Result<OwnedFd> {
    let step = |code, imm| bpf_insn { code, imm, ..bpf_insn::default() };
    let steps = [step(CALL, KTIME_GET_NS), step(MOVE, 0), step(EXIT, 0)];
    let (kind, count) = (BPF_PROG_TYPE_RAW_TRACEPOINT, steps.len() as _);
    // SAFETY: names end in a zero, there are as many steps, and there need be no options.
    let program = unsafe {
        bpf_prog_load(
            kind,
            c"floor".as_ptr(),
            c"GPL".as_ptr(),
            steps.as_ptr(),
            count,
            std::ptr::null_mut(),
        )
    };
    opened(program)
}

/// libbpf returns errors as negative numbers.
fn opened(file: RawFd) -> io::Result<OwnedFd> {
    if file < 0 {
        return Err(io::Error::from_raw_os_error(-file));
    }
    // SAFETY: it was just opened, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}
