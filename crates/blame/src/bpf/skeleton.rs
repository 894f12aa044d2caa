//! The code generated from the BPF programs: loading of each object, and the layout of its data
//! (`build.rs`).
#![expect(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    unreachable_pub,
    reason = "it is generated"
)]

pub(crate) mod events {
    include!(concat!(env!("OUT_DIR"), "/events.skel.rs"));
}

pub(crate) mod slices {
    include!(concat!(env!("OUT_DIR"), "/slices.skel.rs"));
}

pub(crate) mod wakers {
    include!(concat!(env!("OUT_DIR"), "/wakers.skel.rs"));
}
