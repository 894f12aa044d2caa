//! Turns the tables of rules into one file that is read in a fraction of the time: every report of `check` needs
//! them.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

/// The tables, in the order of the documentation.
const TABLES: [&str; 9] = [
    "tick",
    "isolation",
    "scheduler",
    "interrupts",
    "kernel-work",
    "power",
    "memory",
    "virtualization",
    "containers",
];

fn main() -> Result<(), Box<dyn Error>> {
    let tables: Vec<toml::Value> =
        TABLES.iter().map(|name| read(name)).collect::<Result<_, _>>()?;
    let file = PathBuf::from(env::var("OUT_DIR")?).join("tables.json");
    fs::write(file, serde_json::to_vec(&tables)?)?;
    println!("cargo::rerun-if-changed=rules");
    Ok(())
}

fn read(name: &str) -> Result<toml::Value, Box<dyn Error>> {
    let file = format!("rules/{name}.toml");
    let text = fs::read_to_string(&file).map_err(|why| format!("{file}: {why}"))?;
    Ok(toml::from_str(&text).map_err(|why| format!("{file}: {why}"))?)
}
