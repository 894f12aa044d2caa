//! RHEL 5's `divider=N`, which is still recommended on web pages.
//!
//! RHEL and CentOS 5 since 5.1 (kernels 2.6.18-53.el5 and later) divided the tick rate by N at
//! boot, to reduce the cost of idle guests. Red Hat's manuals have 40 (25 Hz) as the maximum;
//! before 5.8 (2.6.18-308.el5) the parameter could panic the kernel (bug 698842). No other kernel
//! has it: mainline never had it, and RHEL 6 stops the tick of idle CPUs instead.
//!
//! The actual rate of the tick is measured by `noisefloor ticks`.

use serde::{Deserialize, Serialize};
use units::Hz;

use crate::format::release::Release;
use crate::parameters::inert::WhyInert;

/// The effect of `divider=N` on this kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divider {
    /// The requested value: the text after `divider=`.
    pub asked: String,
    /// The resulting tick rate; `None` if there is no effect.
    pub effective_hz: Option<Hz>,
    /// The effect as text.
    pub text: String,
}

/// The maximum of N.
const DIVIDER_MAX: u32 = 40;
/// The first RHEL 5 kernels with the parameter (5.1), and without its bug (5.8).
const BUILD_FIRST: u32 = 53;
const BUILD_SAFE: u32 = 308;

/// The effect of `divider=requested` on a kernel with this release and `CONFIG_HZ`.
pub(crate) fn divider(requested: &str, release: &Release, hz: Option<Hz>) -> Divider {
    let (effective_hz, text) = match rhel5_build(release) {
        None => (None, elsewhere(hz)),
        Some(build) if build < BUILD_FIRST => {
            let text = "does nothing: RHEL and CentOS 5 have it since 5.1 \
                        (2.6.18-53.el5), and this kernel is older";
            (None, text.to_owned())
        }
        Some(build) => on_rhel5(requested, build, hz),
    };
    Divider { asked: requested.to_owned(), effective_hz, text }
}

/// Why `divider=requested` has no effect on a kernel with this release; `None` if it has one.
pub(crate) fn why_inert(requested: &str, release: &Release) -> Option<WhyInert> {
    match rhel5_build(release) {
        None => Some(WhyInert::OtherAge),
        Some(build) if build < BUILD_FIRST => Some(WhyInert::Unrecognised),
        Some(_) if number(requested).is_none() => Some(WhyInert::Refused),
        Some(_) => None,
    }
}

/// The N of `divider=N` if it is in range.
fn number(requested: &str) -> Option<u32> {
    requested.parse().ok().filter(|n| (1..=DIVIDER_MAX).contains(n))
}

/// The build number of a RHEL or CentOS 5 kernel: 308 for `2.6.18-308.el5`.
fn rhel5_build(release: &Release) -> Option<u32> {
    let rest = release.rest().strip_prefix('-')?;
    if release.numbers() != (2, 6, 18) || !rest.contains(".el5") {
        return None;
    }
    rest.split('.').next()?.parse().ok()
}

fn elsewhere(hz: Option<Hz>) -> String {
    let rate = hz.map_or(String::new(), |hz| format!(" ({} here)", hz.get()));
    format!(
        "does nothing: only the kernels of RHEL and CentOS 5 knew it. Kernels built with \
         NO_HZ_IDLE or NO_HZ_FULL stop the tick of idle CPUs by themselves, and its rate \
         is CONFIG_HZ{rate}, chosen when the kernel is built"
    )
}

fn on_rhel5(requested: &str, build: u32, hz: Option<Hz>) -> (Option<Hz>, String) {
    let (effective, mut text) = match (number(requested), hz) {
        (None, _) => {
            let text = format!("is out of range (1 to {DIVIDER_MAX}) and ignored");
            (None, text)
        }
        (Some(number), Some(hz)) => {
            let effective = Hz::new(hz.get() / number);
            let text = format!(
                "the tick comes {} times a second, {} / {number}",
                effective.get(),
                hz.get()
            );
            (Some(effective), text)
        }
        (Some(number), None) => {
            let text = format!(
                "the tick comes at CONFIG_HZ / {number}, but the kernel's configuration, \
                 and with it CONFIG_HZ, is not known"
            );
            (None, text)
        }
    };
    if build < BUILD_SAFE {
        text += "; before 5.8 (2.6.18-308.el5) this parameter could panic the kernel \
                 (Red Hat bug 698842), and this kernel is older";
    }
    (effective, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(release: &str, requested: &str) -> Divider {
        divider(requested, &Release::parse(release).unwrap(), Some(Hz::new(1000)))
    }

    /// Check that RHEL 5 divides the rate, and that only old kernels have a warning.
    #[test]
    fn divides_on_rhel_5() {
        let old = on("2.6.18-274.el5", "10");
        assert_eq!(old.effective_hz, Some(Hz::new(100)));
        assert!(old.text.contains("panic"), "{}", old.text);
        let safe = on("2.6.18-308.1.1.el5", "40");
        assert_eq!(safe.effective_hz, Some(Hz::new(25)));
        assert!(!safe.text.contains("panic"), "{}", safe.text);
    }

    /// Check that values out of range are ignored on RHEL 5.
    #[test]
    fn ignores_values_out_of_range() {
        for requested in ["41", "0", "-1", "ten", "", "1e1"] {
            let divider = on("2.6.18-308.el5", requested);
            assert_eq!(divider.effective_hz, None, "{requested}");
            let release = Release::parse("2.6.18-308.el5").unwrap();
            assert_eq!(why_inert(requested, &release), Some(WhyInert::Refused));
            assert!(divider.text.contains("out of range"), "{}", divider.text);
        }
    }

    /// Check that other kernels ignore the parameter, with a text about its replacement.
    #[test]
    fn no_effect_on_other_kernels() {
        for release in
            ["6.12.107-amd64", "2.6.32-754.el6.x86_64", "2.6.18-8.el5", "2.6.18"]
        {
            let divider = on(release, "10");
            assert_eq!(divider.effective_hz, None, "{release}");
            assert!(divider.text.contains("nothing"), "{}", divider.text);
        }
        let text = on("6.12.107-amd64", "10").text;
        assert!(
            text.contains("NO_HZ_IDLE") && text.contains("CONFIG_HZ (1000"),
            "{text}"
        );
    }
}
