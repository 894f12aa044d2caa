//! The destination of an output option (`-o FILE`, `--trace FILE`): a file, or standard output
//! as `-`.
//!
//! With `-`, standard output contains nothing else: no report is printed, neither text nor
//! JSON. The crate `recording` writes the files.

use std::fmt;
use std::path::Path;

use recording::{Error, Folder, Kind, Recording};
use report::Document;
use units::chain;

use crate::outcome::Failure;
use crate::printing::{print_content, say};

/// A form in which a report is written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A page for a browser.
    Page,
    /// Markdown.
    Markdown,
    /// A picture.
    Picture,
}

/// A file named by an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Destination<'a> {
    option: &'static str,
    file: &'a Path,
}

impl<'a> Destination<'a> {
    pub(crate) fn new(option: &'static str, file: &'a Path) -> Self {
        Self { option, file }
    }

    pub(crate) fn file(self) -> &'a Path {
        self.file
    }

    pub(crate) fn is_stdout(self) -> bool {
        self.file == Path::new("-")
    }

    /// The form of a report in this file, by the end of its name; `None`: a recording.
    pub(crate) fn form(self) -> Option<Form> {
        match self.file.extension()?.to_str()? {
            "html" => Some(Form::Page),
            "md" => Some(Form::Markdown),
            "svg" => Some(Form::Picture),
            _ => None,
        }
    }

    /// Writes a report in this form; of its pictures the named one, or the first.
    pub(crate) fn write_report(
        self,
        form: Form,
        document: &Document,
        picture: Option<&str>,
    ) -> Result<(), Failure> {
        match form {
            Form::Page => self.write(&::report::html_page(document)),
            Form::Markdown => self.write(&::report::markdown_text(document)),
            Form::Picture => match ::report::picture_svg(document, picture) {
                Ok(svg) => self.write(&svg),
                Err(why) => Err(self.refuse(why)),
            },
        }
    }

    /// Checks that the file can be written.
    pub(crate) fn check(self) -> Result<(), Failure> {
        recording::check_writable(self.file)
            .map_err(|why| Failure::usage(format!("{}: {}", self.option, chain(&why))))
    }

    /// Writes the whole text.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        match self.is_stdout() {
            true => print_content(text).map(drop),
            false => recording::write_file(self.file, text)
                .map_err(|why| Failure::of_writing(&why)),
        }
    }

    /// Writes a recording for `noisefloor report`.
    pub(crate) fn save(self, recording: &Recording) -> Result<(), Failure> {
        let text = self.content(recording)?;
        self.write(&text)
    }

    /// The same, unless the file exists already; returns whether it did not.
    pub(crate) fn save_new(self, recording: &Recording) -> Result<bool, Failure> {
        recording::write_new_file(self.file, &self.content(recording)?)
            .map_err(|why| Failure::of_writing(&why))
    }

    /// The text of a recording. A remark is printed if it is too long.
    fn content(self, recording: &Recording) -> Result<String, Failure> {
        let text = recording.to_json().map_err(Failure::bug)? + "\n";
        if text.len() as u64 > recording::SIZE_MAX {
            let (file, max) = (self.file.display(), recording::SIZE_MAX >> 20);
            say(format_args!("{file}: 'report' reads recordings of up to {max} MiB"));
        }
        Ok(text)
    }

    /// A usage error that names the option.
    pub(crate) fn refuse(self, why: impl fmt::Display) -> Failure {
        Failure::usage(format!("{} {}: {why}", self.option, self.file.display()))
    }
}

/// Opens a folder for output, which is created if needed.
pub(crate) fn create_folder(path: &Path) -> Result<Folder, Error> {
    Folder::create(path).map_err(|why| Error::new(Kind::Write, path, why))
}
