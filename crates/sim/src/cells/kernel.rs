//! From the release of a kernel to the rules that fit it best: the newest that are not newer.
//!
//! Source of the names of rules: `scheduler::NAMES`. Cannot see rules that a distribution has backported.

use crate::scheduler::{Error, Kind, NAMES, Rules};

/// A version, as far as names of rules have it: 2.6 has a third number.
type Version = [u32; 3];

/// The rules for a release (`6.1.0-57-cloud-amd64`), and a remark unless they are those of its version.
///
/// # Errors
/// `Kind::Rules` if the release is unknown, or older than all rules.
pub(crate) fn rules(release: Option<&str>) -> Result<(Rules, Option<String>), Error> {
    let Some((release, own)) =
        release.and_then(|release| Some((release, version(release)?)))
    else {
        return Err(Error::new(Kind::Rules, "the version of its kernel is unknown"));
    };
    let is_not_newer = |name: &&&str| version(name) <= Some(own);
    let Some(name) = NAMES.iter().rfind(is_not_newer) else {
        let oldest = NAMES.first().copied().unwrap_or_default();
        let why = format!("the kernel {release} is older than all rules ({oldest})");
        return Err(Error::new(Kind::Rules, why));
    };
    let rules = Rules::named(name)?;
    let is_same = version(name) == Some(own);
    let remark = (!is_same).then(|| remark(&short(own), &rules));
    Ok((rules, remark))
}

/// How rules relate to a version that has none.
fn remark(version: &str, rules: &Rules) -> String {
    let name = rules.name();
    let newer = NAMES.iter().skip_while(|own| **own != name).nth(1);
    let Some(newer) = newer.and_then(|name| Rules::named(name).ok()) else {
        return format!("{version} has the rules of {name}, the newest");
    };
    let class = |rules: &Rules| if rules.is_eevdf() { "EEVDF" } else { "CFS" };
    format!(
        "{version} has the rules of {name} ({}); the scheduler changed between that and {} ({})",
        class(rules),
        newer.name(),
        class(&newer)
    )
}

/// The version that a release begins with; `None` without two numbers.
fn version(release: &str) -> Option<Version> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let mut next = || numbers.next()?.ok();
    let (major, minor) = (next()?, next()?);
    let third = if major < 3 { next().unwrap_or(0) } else { 0 };
    Some([major, minor, third])
}

fn short([major, minor, third]: Version) -> String {
    match third {
        0 => format!("{major}.{minor}"),
        _ => format!("{major}.{minor}.{third}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the rules, and the remark.
    fn found(release: &str) -> (&'static str, String) {
        let (rules, remark) = rules(Some(release)).unwrap();
        (rules.name(), remark.unwrap_or_default())
    }

    /// Check the rules of the kernels that the lab has been used with: those of their version.
    #[test]
    fn same_version() {
        for (release, name) in [
            ("2.6.29.6", "2.6.29"),
            ("2.6.32-754.el6.x86_64", "2.6.32"),
            ("5.10.0-46-cloud-amd64", "5.10"),
            ("6.1.0-57-cloud-amd64", "6.1"),
            ("6.12.117+deb12-cloud-amd64", "6.12"),
            ("6.18.15+deb13-cloud-amd64", "6.18"),
            ("7.2.13+deb14-cloud-amd64", "7.2"),
            ("7.2-rc3", "7.2"),
        ] {
            assert_eq!(found(release), (name, String::new()), "{release}");
        }
    }

    /// Check that other versions have the newest rules that are not newer, and a remark that says so, also
    /// where the algorithm changed.
    #[test]
    fn other_versions() {
        let newest = "7.3 has the rules of 7.2, the newest";
        assert_eq!(found("7.3.1+deb14-cloud-amd64"), ("7.2", newest.to_owned()));
        let between = "6.5 has the rules of 6.1 (CFS); the scheduler changed between that \
                       and 6.6 (EEVDF)";
        assert_eq!(found("6.5.0"), ("6.1", between.to_owned()));
        assert_eq!(found("6.17.2").0, "6.12");
        assert_eq!(found("2.6.31").0, "2.6.29");
        assert_eq!(found("3.10.0-1160.el7").0, "2.6.32");
    }

    /// Check that kernels older than all rules, and names without a version, are errors.
    #[test]
    fn unknown() {
        for release in ["2.6.18-398.el5", "2.4.37", "mainline", "6", ""] {
            assert_eq!(
                rules(Some(release)).unwrap_err().kind(),
                Kind::Rules,
                "{release}"
            );
        }
        let why = rules(Some("2.6.18-398.el5")).unwrap_err().to_string();
        assert_eq!(why, "the kernel 2.6.18-398.el5 is older than all rules (2.6.29)");
        assert!(rules(None).is_err());
    }
}
