//! `restore`: puts back what a killed run left changed.

use isolate::{Fate, Returned};
use serde_json::{Value, json};

use crate::args::Output;
use crate::isolating::line;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print;

pub(crate) fn run(output: Output) -> Result<Outcome, Failure> {
    let returned = isolate::restore()?;
    if output.json {
        let settings: Vec<Value> = returned.iter().map(value).collect();
        let object = json!({"format": 1, "kind": "restore", "settings": settings});
        print(&format!("{object:#}\n"))?;
    } else {
        print(&text(&returned))?;
    }
    let is_left = |one: &Returned| matches!(one.fate, Fate::Refused(_));
    match returned.iter().any(is_left) {
        false => Ok(Outcome::Done),
        true => Err(Failure::refused("not everything could be put back; as root it can")),
    }
}

fn text(returned: &[Returned]) -> String {
    if returned.is_empty() {
        let rest = if isolate::is_changed() {
            ": what is changed is needed by a run that goes on"
        } else {
            ""
        };
        return format!("Nothing to put back{rest}.\n");
    }
    returned.iter().map(|one| line(one) + "\n").collect()
}

fn value(returned: &Returned) -> Value {
    let (fate, more) = match &returned.fate {
        Fate::Restored => ("restored", None),
        Fate::Gone => ("gone", None),
        Fate::LeftAlone(now) => ("left_alone", Some(("now", now))),
        Fate::Refused(why) => ("refused", Some(("why", why))),
    };
    let setting = returned.setting.to_string();
    let mut value = json!({"setting": setting, "old": returned.old, "fate": fate});
    if let (Some((key, text)), Value::Object(fields)) = (more, &mut value) {
        fields.insert(key.to_owned(), json!(text));
    }
    value
}
