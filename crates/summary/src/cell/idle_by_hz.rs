//! The load of an idle guest as a function of HZ: a measurement of 2010 beside that of cells.
//!
//! In both, a line is fitted to the periodic ticks: a cost of each tick, and a base cost of each
//! second (least squares). The old figures are MHz of a host's processor, once, on one machine;
//! those of the lab are instructions of the guest: instructions are neither cycles nor host time,
//! which includes the work of the hypervisor for each exit. Only the shape can be compared.

use std::collections::{BTreeMap, BTreeSet};

use facts::TickMode;
use recording::{Cell, Mode};
use serde::Serialize;
use units::{Hz, PerSecond, Ppm};

use crate::cell::{CellSummary, answer};

/// The load that an idle guest caused on its host: HZ, and MHz. The last one was read as 10 to 15.
const OLD_PERIODIC: [(u32, f64); 5] =
    [(1000, 60.0), (500, 36.0), (200, 25.0), (100, 20.0), (40, 12.5)];
/// The number of the first points, to which the line of the old figures is fitted.
const OLD_FITTED: usize = 4;
/// The load with a tickless kernel, in MHz.
const OLD_TICKLESS: f64 = 70.0;
/// The fewest values of HZ that a line is fitted to: two always fit.
const FEWEST: usize = 3;

/// The line fitted to loads at several HZ, in the unit of the loads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HzLine {
    /// The load of each tick.
    pub per_tick: f64,
    /// The load without any tick.
    pub base: f64,
    /// The share of the variance that the line explains, from 0 to 1.
    pub r_squared: f64,
    /// The largest deviation of a point from the line, as a share of the line there.
    pub deviation_ppm: Ppm,
}

/// The load of an idle guest with one kind of tick.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IdleLoad {
    /// `CONFIG_HZ`; null for an old load without one.
    pub hz: Option<Hz>,
    /// The name of the cell, if its tick stops, or `tickless` for the old load; null for a periodic
    /// tick.
    pub tickless: Option<String>,
    /// The old load, in MHz of the host; null if it was not measured.
    pub old_mhz: Option<f64>,
    /// Instructions per second of the measured CPUs; null if there is no such cell.
    pub instructions_hz: Option<PerSecond>,
    /// Timer interrupts per second, by the counter.
    pub timer_entries_hz: Option<PerSecond>,
    /// The deviation from the fitted line, as a share of the line; null except for a periodic tick.
    pub deviation_ppm: Option<Ppm>,
    /// What the guests save, compared with the highest HZ of a cell; null without a cell.
    pub saved: Option<Saved>,
}

/// What a number of idle guests saves together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Saved {
    /// Instructions per second; negative if they execute more.
    pub instructions_hz: f64,
    /// Timer interrupts per second.
    pub timer_entries_hz: Option<f64>,
    /// MHz of the host by the old figures; null if one of them is missing.
    pub old_mhz: Option<f64>,
}

/// The load of idle guests by HZ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IdleByHz {
    /// The name of the cells with a periodic tick.
    pub cell: String,
    /// The version of their kernels.
    pub version: String,
    /// Periodic ticks, the highest HZ first, then those that stop.
    pub loads: Vec<IdleLoad>,
    /// The line through the first four old loads: MHz per HZ (million cycles per tick), and MHz.
    pub old_line: HzLine,
    /// The line through the cells with a periodic tick: instructions per tick, and per second.
    pub line: HzLine,
    /// The number of guests that `saved` is for.
    pub guests: u64,
}

/// One exact cell of an idle guest.
#[derive(Debug, Clone, Copy)]
struct IdleCell<'a> {
    cell: &'a Cell,
    mode: TickMode,
    hz: Hz,
    instructions: f64,
    timer: Option<f64>,
}

impl IdleByHz {
    /// The load by HZ in these cells, for each name and kernel version that has a periodic tick of at
    /// least three values of HZ; `guests` is the number of guests for the savings. Of cells of one
    /// name, version and HZ the first is used.
    pub fn of_cells(cells: &[Cell], guests: u64) -> Vec<Self> {
        let idle: Vec<IdleCell<'_>> = cells.iter().filter_map(IdleCell::of).collect();
        let mut groups = BTreeMap::<(&str, &str), BTreeMap<Hz, IdleCell<'_>>>::new();
        for one in idle.iter().filter(|one| one.mode == TickMode::Periodic) {
            let group = groups.entry((&one.cell.name, one.version())).or_default();
            group.entry(one.hz).or_insert(*one);
        }
        let large = groups.into_iter().filter(|(_, group)| group.len() >= FEWEST);
        let found = large.filter_map(|((name, version), group)| {
            let stops = idle
                .iter()
                .filter(|one| one.mode != TickMode::Periodic && one.version() == version);
            let stops: Vec<&IdleCell<'_>> = stops.collect();
            Self::of_group(name, version, &group, &stops, guests)
        });
        found.collect()
    }

    fn of_group(
        name: &str,
        version: &str,
        group: &BTreeMap<Hz, IdleCell<'_>>,
        stops: &[&IdleCell<'_>],
        guests: u64,
    ) -> Option<Self> {
        let points = group.values().map(IdleCell::point).collect::<Vec<_>>();
        let line = HzLine::fit(&points)?;
        let old = OLD_PERIODIC.map(|(hz, mhz)| (f64::from(hz), mhz));
        let old_line = HzLine::fit(&old[..OLD_FITTED])?;
        let old = OLD_PERIODIC.iter().map(|(hz, _)| Hz::new(*hz));
        let all: BTreeSet<Hz> = group.keys().copied().chain(old).collect();
        let all = all.into_iter().rev();
        let mut loads: Vec<IdleLoad> =
            all.map(|hz| IdleLoad::periodic(hz, group.get(&hz), &line)).collect();
        loads.extend(tickless(stops));
        let from = loads.iter().find(|load| load.instructions_hz.is_some()).cloned()?;
        for load in &mut loads {
            load.saved = load.saved_from(&from, guests);
        }
        let (cell, version) = (name.to_owned(), version.to_owned());
        Some(Self { cell, version, loads, old_line, line, guests })
    }
}

impl<'a> IdleCell<'a> {
    /// `None` for a cell that is not one, or a repeat of one.
    fn of(cell: &'a Cell) -> Option<Self> {
        if cell.mode != Mode::Exact || cell.repeat != 1 {
            return None;
        }
        let tick = &answer(cell)?.recording.facts.tick;
        let (mode, hz) = (*tick.mode.get()?, *tick.hz.get()?);
        let CellSummary::IdleCost(cost) = CellSummary::of(cell)? else { return None };
        let cpus = &cost.cpus;
        // An offline CPU has no timer interrupts, and is not idle.
        if cpus.iter().any(|cpu| cpu.timer_interrupts.is_none()) {
            return None;
        }
        let instructions = cpus.iter().map(|cpu| cpu.instructions_hz.map(PerSecond::get));
        let timer = cpus.iter().map(|cpu| cpu.timer_entries_hz.map(PerSecond::get));
        let instructions = instructions.sum::<Option<f64>>()?;
        Some(Self { cell, mode, hz, instructions, timer: timer.sum() })
    }

    /// The kernel's version, without what a build adds to it.
    fn version(&self) -> &'a str {
        let release = self.cell.kernel.as_str();
        let end = release.find(|c: char| !c.is_ascii_digit() && c != '.');
        end.map_or(release, |end| release.split_at(end).0)
    }

    fn point(&self) -> (f64, f64) {
        (f64::from(self.hz.get()), self.instructions)
    }
}

/// The loads of cells whose tick stops; the old one is beside the first whose idle tick does.
fn tickless(stops: &[&IdleCell<'_>]) -> Vec<IdleLoad> {
    let mut loads: Vec<IdleLoad> =
        stops.iter().map(|one| IdleLoad::of(one, Some(one.cell.name.clone()))).collect();
    match stops.iter().position(|one| one.mode == TickMode::Idle) {
        Some(first) => loads[first].old_mhz = Some(OLD_TICKLESS),
        None => loads.push(IdleLoad {
            tickless: Some("tickless".to_owned()),
            ..IdleLoad::old(None, Some(OLD_TICKLESS))
        }),
    }
    loads
}

impl IdleLoad {
    fn old(hz: Option<Hz>, old_mhz: Option<f64>) -> Self {
        Self { hz, old_mhz, ..Self::default() }
    }

    fn of(one: &IdleCell<'_>, tickless: Option<String>) -> Self {
        Self {
            tickless,
            instructions_hz: Some(PerSecond::new(one.instructions)),
            timer_entries_hz: one.timer.map(PerSecond::new),
            ..Self::old(Some(one.hz), None)
        }
    }

    fn periodic(hz: Hz, cell: Option<&IdleCell<'_>>, line: &HzLine) -> Self {
        let old = OLD_PERIODIC.iter().find(|(old, _)| *old == hz.get());
        let old_mhz = old.map(|(_, mhz)| *mhz);
        let Some(one) = cell else { return Self::old(Some(hz), old_mhz) };
        let deviation_ppm = Some(Ppm::new(line.deviation(one.point())));
        Self { old_mhz, deviation_ppm, ..Self::of(one, None) }
    }

    /// What that many guests save with this load instead of the other.
    fn saved_from(&self, from: &Self, guests: u64) -> Option<Saved> {
        let all = |from: f64, own: f64| (from - own) * guests as f64;
        let rates = |from: Option<PerSecond>, own: Option<PerSecond>| {
            Some(all(from?.get(), own?.get()))
        };
        Some(Saved {
            instructions_hz: rates(from.instructions_hz, self.instructions_hz)?,
            timer_entries_hz: rates(from.timer_entries_hz, self.timer_entries_hz),
            old_mhz: from.old_mhz.zip(self.old_mhz).map(|(from, own)| all(from, own)),
        })
    }
}

impl HzLine {
    /// Fits a line to HZ and load; `None` for fewer than two values of HZ, or if it is zero at one.
    fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean =
            |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let sum = |of: fn(f64, f64) -> f64| {
            points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>()
        };
        let (xx, xy, yy) = (sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y));
        if xx.is_nan() || xx <= 0.0 {
            return None;
        }
        let per_tick = xy / xx;
        let line = Self {
            per_tick,
            base: y - per_tick * x,
            r_squared: if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 },
            deviation_ppm: Ppm::new(0.0),
        };
        let deviations = points.iter().map(|point| line.deviation(*point).abs());
        let largest = deviations.max_by(f64::total_cmp).filter(|off| off.is_finite())?;
        Some(Self { deviation_ppm: Ppm::new(largest), ..line })
    }

    /// The deviation of a point, in parts per million of the line there.
    fn deviation(&self, (hz, load): (f64, f64)) -> f64 {
        let expected = self.base + self.per_tick * hz;
        (load - expected) / expected * 1e6
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    /// Check the line through the first four old figures by hand: the sums are 21,550 and 490,000.
    #[test]
    fn old_line() {
        let old = OLD_PERIODIC.map(|(hz, mhz)| (f64::from(hz), mhz));
        let line = HzLine::fit(&old[..OLD_FITTED]).unwrap();
        assert!(close(line.per_tick, 21_550.0 / 490_000.0), "{line:?}");
        assert!(close(line.base, 35.25 - 450.0 * line.per_tick), "{line:?}");
    }

    /// Check that no line is fitted to a single HZ.
    #[test]
    fn one_value() {
        assert_eq!(HzLine::fit(&[(100.0, 5.0), (100.0, 7.0)]), None);
        assert_eq!(HzLine::fit(&[]), None);
    }

    proptest! {
        /// Check that points of a line give that line, and that the largest deviation is that of a
        /// point that was moved.
        #[test]
        fn lines(per_tick in 1.0..50_000.0_f64, base in 1e3..1e7_f64) {
            let at = |hz: f64| (hz, base + per_tick * hz);
            let line = HzLine::fit(&[1000.0, 250.0, 100.0, 40.0].map(at)).unwrap();
            prop_assert!(close(line.per_tick, per_tick) && (line.base - base).abs() < 1e-3);
            prop_assert!(line.r_squared > 1.0 - 1e-9);
            prop_assert!(line.deviation_ppm.get() < 1e-3);
            let (hz, load) = at(250.0);
            prop_assert!((line.deviation((hz, load * 1.02)) - 20_000.0).abs() < 1e-3);
        }
    }
}
