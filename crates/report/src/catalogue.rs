//! What the lab can run: the built-in experiments, and kernels.

use recording::MadeWith;

use crate::cells::made_with::made_with;
use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};

/// Experiments with what each measures; and what cells are made with, or why no cell can be.
pub fn catalogue_document<'a>(
    experiments: impl IntoIterator<Item = (&'a str, &'a str)>,
    parts: &Result<MadeWith, String>,
) -> Document {
    let experiments = experiments.into_iter();
    let experiments =
        experiments.map(|(name, about)| [Text::command(name), about.into()]);
    Document::from(Table::terms(experiments)).add(match parts {
        Ok(parts) => made_with(parts),
        Err(why) => text!("No experiment can be run: {}", why.as_str()),
    })
}

/// A kernel that is stored: its name, its release, and its package's version.
pub type CachedKernel<'a> = [&'a str; 3];
/// A suite of Debian's archive, and the names of its kernels.
pub type ArchiveSuite<'a> = (&'a str, Vec<&'a str>);

/// Kernels that guests can boot: those that are stored, and those of Debian's archive, if it is a source;
/// without a suite it has not been listed yet.
pub fn kernels_document(
    cached: &[CachedKernel<'_>],
    suites: Option<&[ArchiveSuite<'_>]>,
) -> Document {
    let cached = Table::of(cached)
        .column(Column::words(""), |[name, ..]| Text::command(*name))
        .column(Column::words(""), |[_, release, _]| Text::name(*release))
        .column(Column::words(""), |[.., version]| Text::name(*version))
        .table;
    let also = text!(
        "Also: running (this machine's kernel), the path of a kernel image, or a kernel to build: {}",
        Text::command("noisefloor lab kernels build --help")
    );
    Document::section("Cached", cached).add(suites.map(archive)).add(also)
}

fn archive(suites: &[ArchiveSuite<'_>]) -> Document {
    if suites.is_empty() {
        let command = Text::command("noisefloor lab kernels --fresh");
        return text!("Debian's archive has not been listed yet; hint: {}", command)
            .into();
    }
    let kernels = |(suite, kernels): &ArchiveSuite<'_>| {
        let kernels = kernels.iter().map(|name| Text::command(*name));
        [Text::from(*suite), Text::join(kernels, " ")]
    };
    let title = "Debian's archive, by suite; each as debian:NAME, or debian:SUITE/NAME";
    Document::section(title, Table::terms(suites.iter().map(kernels)))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::terminal::full_text;

    fn text_of(document: &Document) -> String {
        full_text(document)
    }

    /// Check the list of experiments on a machine that cannot run them.
    #[test]
    fn experiments() {
        let all = [("tick-cost", "what a tick costs"), ("web", "what a request costs")];
        let catalogue = catalogue_document(all, &Err("QEMU is missing".to_owned()));
        assert_snapshot!(text_of(&catalogue), @r#"
         tick-cost  what a tick costs
         web        what a request costs

        No experiment can be run: QEMU is missing
        "#);
    }

    /// Check lists of kernels, with names that are folded, and without any.
    #[test]
    fn kernels() {
        let cached = [
            ["debian:6.1-cloud", "6.1.0-56-cloud-amd64", "6.1.192-2"],
            ["./a/path/of/some/kernel/image/that/is/long", "6.12.9", ""],
        ];
        let names = ["6.12-cloud", "6.12", "6.12-rt", "6.16-cloud", "6.16", "6.16-rt"];
        let suites = [("trixie", names[..3].to_vec()), ("sid", names.repeat(3))];
        assert_snapshot!(text_of(&kernels_document(&cached, Some(&suites))));
        assert_snapshot!(text_of(&kernels_document(&[], Some(&[]))), @r#"
        Debian's archive has not been listed yet; hint: noisefloor lab kernels --fresh

        Also: running (this machine's kernel), the path of a kernel image, or a kernel
        to build: noisefloor lab kernels build --help
        "#);
    }
}
