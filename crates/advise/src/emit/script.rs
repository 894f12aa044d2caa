//! A shell script that sets values at run time, and remembers those before in `/run`: both are gone after the
//! next boot. It is the program of the service of `--emit systemd`, too.

use crate::emit::text::{self, shell};
use crate::emit::wanted::{Wanted, What};
use crate::emit::{EmittedFile, Job, Line, Made, body, entries, shell as scripts};
use crate::lasting::{RunTime, mask};

/// Where the script remembers what was before: key, file and value, with tabs between them.
const STATE: &str = "/run/noisefloor-advice";

/// `write KEY FILE VALUE` writes one file, `set` all files of a pattern, `feature` one of the scheduler's features.
const WRITE: &str = r#"failed=0
tab=$(printf '\t')
write() {
    before=$(chosen "$2")
    if [ "$1" != "$2" ]; then
        # A feature of the scheduler: the file has all of them.
        before=${1#*#}
        case " $(cat "$2") " in *" NO_$before "*) before=NO_$before ;; esac
    fi
    (printf '%s\n' "$3" >"$2") 2>/dev/null || return 1
    mkdir -p "$(dirname "$state")"
    if ! cut -f 1 "$state" 2>/dev/null | grep -qxF -e "$1"; then
        printf '%s\t%s\t%s\n' "$1" "$2" "$before" >>"$state"
    fi
}
refuse() {
    echo "failed to write $2 to $1" >&2
    failed=1
}
set_files() {
    found=no
    IFS=
    for file in $root$1; do
        [ -e "$file" ] || continue
        found=yes
        write "$file" "$file" "$2" || refuse "$file" "$2"
    done
    unset IFS
    [ $found = yes ] || refuse "$1 (no such file)" "$2"
}
set_feature() {
    file=$root/sys/kernel/debug/sched/features
    write "$file#$1" "$file" "$2" || refuse "$file" "$2"
}
set_irqs() {
    fixed=
    for file in "$root"/proc/irq/*/smp_affinity_list; do
        [ -e "$file" ] || continue
        irq=${file%/*}
        write "$file" "$file" "$1" || fixed="$fixed ${irq##*/}"
    done
    file=$root/proc/irq/default_smp_affinity
    [ ! -e "$file" ] || write "$file" "$file" "$2" || refuse "$file" "$2"
    [ -z "$fixed" ] || echo "the kernel does not move these interrupts:$fixed" >&2
}
set_idle_latency() {
    for file in "$root"/sys/devices/system/cpu/cpu*/cpuidle/state*/latency; do
        [ -e "$file" ] || continue
        if [ "$(cat "$file")" -gt "$1" ]; then
            write "${file%latency}disable" "${file%latency}disable" 1 || refuse "$file" 1
        fi
    done
}
"#;

/// Sets back what the state has, the last change first.
const UNDO: &str = r#"undo() {
    [ -e "$state" ] || return 0
    sed '1!G;h;$!d' "$state" | while IFS=$tab read -r key file before; do
        (printf '%s\n' "$before" >"$file") 2>/dev/null ||
            echo "failed to write $before to $file" >&2
    done
    rm "$state"
}
"#;

pub(super) fn make(job: &Job) -> Made {
    let (lines, left) = job.split(|wanted| Ok((line(wanted)?, None)));
    let header = job.header(
        "Sets values until the next boot: apply.sh; uninstall.sh sets them back. With \
         ROOT=DIR, in the tree below DIR.",
        &left,
    );
    let (file, uninstall) = (apply(&header, &lines), undo(&job.about));
    Made { files: vec![file, uninstall], entries: entries(&lines), left }
}

fn start() -> String {
    format!("set -u\nroot=${{ROOT-}}\nstate=$root{STATE}\n{}", scripts::CHOSEN)
}

fn apply(header: &str, lines: &[Line<'_>]) -> EmittedFile {
    let body = body(lines);
    let text = format!("#!/bin/sh\n{header}{}{WRITE}\n{body}\nexit $failed\n", start());
    EmittedFile::executable("apply.sh", text)
}

fn undo(about: &str) -> EmittedFile {
    let about = text::comment("Sets back what apply.sh changed since the last boot.")
        + &text::comment(about);
    let text = format!("#!/bin/sh\n{about}{}tab=$(printf '\\t')\n{UNDO}undo\n", start());
    EmittedFile::executable("uninstall.sh", text)
}

/// A program that applies (`start`) and sets back (`stop`) these lines.
pub(super) fn program(header: &str, lines: &[Line<'_>]) -> String {
    format!(
        "#!/bin/sh\n{header}{}{WRITE}{UNDO}\nif [ \"${{1-}}\" = stop ]; then\n    undo\n    \
         exit 0\nfi\n{}\nexit $failed\n",
        start(),
        body(lines)
    )
}

/// The call that sets it.
///
/// # Errors
/// It is none of run time.
pub(super) fn line(wanted: &Wanted) -> Result<String, String> {
    let What::Set { name, to, files } = &wanted.what else {
        return Err(wanted.elsewhere());
    };
    Ok(match files {
        RunTime::Files { path, value } if path.ends_with("/features") => {
            format!("set_feature {} {}", shell(name), shell(value))
        }
        RunTime::Files { path, value } => {
            format!("set_files {} {}", shell(path), shell(value))
        }
        RunTime::Irqs(cpus) => format!("set_irqs {} {}", shell(to), shell(&mask(cpus))),
        RunTime::IdleLatency(us) => format!("set_idle_latency {us}"),
        RunTime::Partition(_) => return Err(wanted.elsewhere()),
    })
}
