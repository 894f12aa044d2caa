//! Sets the soname of the shared library, which ends with the number of its ABI. The number grows
//! when programs have to be compiled again.

/// The number of the ABI; `make install` reads it here.
const ABI: u32 = 0;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtif.so.{ABI}");
}
