//! Changes to an experiment from the command line: `seconds=2`, `boot=nohz=off`.
//!
//! A change overrides everything in the table, a boot row's own machine included. Its values are
//! checked like the table's entries (`entry`).

use toml::Spanned;

use crate::error::ChangeError;
use crate::machine::MachineKind;
use crate::table::entry::{CpuModel, Length, Parameters};
use crate::table::sequence::List;
use crate::table::source::NOWHERE;
use crate::table::step::StepRow;
use crate::table::{
    BootRow, CallRepeats, Cpus, MemoryMib, SettingRow, Table, WorkloadRow, quoted,
    row_name,
};

/// The keys, for messages.
const KEYS: &str = "seconds, duration, repeats, phases, variations, mode, machine, cpu, cpus, \
                    memory_mib, append, calls_repeats, workload, boot, setting, step";

/// The key that selects a step.
const STEP: &str = "step";

/// Whether a change is to the steps, and not to rows of cells.
pub(crate) fn is_of_steps(change: &str) -> bool {
    change.split_once('=').is_some_and(|(key, _)| key == STEP)
}

/// Makes one change, written `key=value`.
pub(crate) fn change(table: &mut Table, change: &str) -> Result<(), ChangeError> {
    let (key, value) = change.split_once('=').ok_or(ChangeError::NoValue(KEYS))?;
    match key {
        "seconds" => set_duration(table, &seconds(value)?)?,
        "duration" => set_duration(table, &value.parse()?)?,
        "repeats" => table.repeats = value.parse()?,
        "phases" => table.phases = value.parse()?,
        "variations" => table.variations = Some(value.parse()?),
        "mode" => table.mode = value.parse()?,
        "machine" => set_machine(table, value.parse()?),
        "cpu" => set_cpu(table, value.parse()?),
        "cpus" => set_cpus(table, value.parse()?),
        "memory_mib" => set_memory(table, value.parse()?),
        "append" => append(table, &value.parse()?)?,
        "calls_repeats" => set_calls_repeats(table, value.parse()?)?,
        "workload" => only_workload(table, value)?,
        "boot" => only_boot(table, value)?,
        "setting" => only_setting(table, value)?,
        STEP => only_step(table, value)?,
        _ => return Err(ChangeError::NoKey(key.to_owned(), KEYS)),
    }
    Ok(())
}

fn seconds(value: &str) -> Result<Length, ChangeError> {
    if value.ends_with(|c: char| c.is_ascii_digit()) {
        return Ok(format!("{value}s").parse()?);
    }
    Err(ChangeError::Seconds(value.to_owned()))
}

fn set_duration(table: &mut Table, length: &Length) -> Result<(), ChangeError> {
    let mut found = false;
    for row in table.workload.iter_mut().map(Spanned::get_mut) {
        let noise = row.noise.as_mut().map(|noise| &mut noise.duration);
        let ticks = row.ticks.as_mut().map(|ticks| &mut ticks.duration);
        let nohz = row.nohz.as_mut().and_then(|nohz| nohz.observe.as_mut());
        let slices = row.slices.as_mut().map(|slices| &mut slices.duration);
        let latency = row.latency.as_mut().map(|latency| &mut latency.duration);
        let all = noise.into_iter().chain(ticks).chain(nohz).chain(slices).chain(latency);
        for duration in all {
            duration.clone_from(length);
            found = true;
        }
    }
    if found { Ok(()) } else { Err(ChangeError::NoDuration) }
}

fn set_calls_repeats(table: &mut Table, repeats: CallRepeats) -> Result<(), ChangeError> {
    let rows = table.workload.iter_mut().map(Spanned::get_mut);
    let mut calls = rows.filter_map(|row| row.calls.as_mut()).peekable();
    if calls.peek().is_none() {
        return Err(ChangeError::NoCalls);
    }
    calls.for_each(|calls| calls.repeats = repeats);
    Ok(())
}

fn set_machine(table: &mut Table, kind: MachineKind) {
    table.machine.kind = Some(kind);
    each_boot(table, |boot| boot.kind = None);
}

fn set_cpu(table: &mut Table, cpu: CpuModel) {
    table.machine.cpu = Some(Spanned::new(NOWHERE, cpu));
    each_boot(table, |boot| boot.cpu = None);
}

fn set_cpus(table: &mut Table, cpus: Cpus) {
    table.machine.cpus = Some(cpus);
    each_boot(table, |boot| boot.cpus = None);
}

fn set_memory(table: &mut Table, memory: MemoryMib) {
    table.machine.memory_mib = Some(memory);
    each_boot(table, |boot| boot.memory_mib = None);
}

fn each_boot(table: &mut Table, change: impl FnMut(&mut BootRow)) {
    table.boot.iter_mut().map(Spanned::get_mut).for_each(change);
}

fn append(table: &mut Table, more: &Parameters) -> Result<(), ChangeError> {
    for boot in table.boot.iter_mut().map(Spanned::get_mut) {
        boot.append = boot.append.and(more)?;
    }
    Ok(())
}

/// Selects one workload, and the boot rows that it runs with.
fn only_workload(table: &mut Table, wanted: &str) -> Result<(), ChangeError> {
    let is = |row: &Spanned<WorkloadRow>| row.get_ref().name.get_ref().as_str() == wanted;
    if !table.workload.iter().any(is) {
        let names =
            table.workload.iter().map(|row| row.get_ref().name.get_ref().as_str());
        return Err(unknown("workload", wanted, names));
    }
    table.workload.retain(is);
    let workloads = &table.workload;
    table.boot.retain(|boot| {
        workloads.iter().any(|row| row.get_ref().runs_with(boot.get_ref()))
    });
    settle_settings(table);
    Ok(())
}

/// Selects one setting row, and the boot rows that it is combined with.
fn only_setting(table: &mut Table, wanted: &str) -> Result<(), ChangeError> {
    let is = |row: &Spanned<SettingRow>| row_name(&row.get_ref().name) == wanted;
    if !table.setting.iter().any(is) {
        let names = table.setting.iter().map(|row| row_name(&row.get_ref().name));
        return Err(unknown("setting row", wanted, names));
    }
    table.setting.retain(is);
    let (settings, workloads) = (&table.setting, &table.workload);
    table.boot.retain(|boot| {
        let boot = boot.get_ref();
        settings.iter().any(|row| row.get_ref().goes_with(boot))
            && workloads.iter().any(|row| row.get_ref().runs_with(boot))
    });
    settle_settings(table);
    Ok(())
}

/// Selects one step.
fn only_step(table: &mut Table, wanted: &str) -> Result<(), ChangeError> {
    let name = |row: &Spanned<StepRow>| row.get_ref().name.get_ref().as_str().to_owned();
    if !table.step.iter().any(|row| name(row) == wanted) {
        let names: Vec<String> = table.step.iter().map(name).collect();
        return Err(unknown("step", wanted, names.iter().map(String::as_str)));
    }
    table.step.retain(|row| name(row) == wanted);
    Ok(())
}

/// Removes missing boot rows from setting rows, and setting rows without any boot row.
fn settle_settings(table: &mut Table) {
    let boots = &table.boot;
    table
        .setting
        .retain(|row| boots.iter().any(|boot| row.get_ref().goes_with(boot.get_ref())));
    for row in table.setting.iter_mut().map(Spanned::get_mut) {
        let is_there = |named: &&Spanned<String>| {
            boots.iter().any(|boot| row_name(&boot.get_ref().name) == named.get_ref())
        };
        let left = row.boots.as_ref().map(|all| all.iter().filter(is_there).cloned());
        row.boots = left.and_then(|left| List::new(left.collect()));
    }
}

/// Selects one boot row, and the workloads that run with it.
fn only_boot(table: &mut Table, wanted: &str) -> Result<(), ChangeError> {
    let named = |row: &&Spanned<BootRow>| row_name(&row.get_ref().name) == wanted;
    let Some(boot) = table.boot.iter().find(named).cloned() else {
        let names = table.boot.iter().map(|row| row_name(&row.get_ref().name));
        return Err(unknown("boot row", wanted, names));
    };
    table.workload.retain(|row| row.get_ref().runs_with(boot.get_ref()));
    for row in table.workload.iter_mut().map(Spanned::get_mut) {
        row.boots = None;
    }
    table.boot = vec![boot];
    settle_settings(table);
    Ok(())
}

fn unknown<'a>(
    kind: &'static str,
    wanted: &str,
    names: impl Iterator<Item = &'a str>,
) -> ChangeError {
    let names = quoted(names);
    let names = if names.is_empty() { "none".to_owned() } else { names };
    ChangeError::NoRow(kind, wanted.to_owned(), names)
}
