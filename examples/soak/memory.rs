//! What the replicas take, over the time.

use navin_test_support::{Agent, Reading};
use std::time::Duration;

/// How much more memory there may be in the last quarter than in the second, on average, in KiB.
const GROWTH_KIB: f64 = 1024.0;
/// How long it must last for that to mean something: until windows of commands are past, the state grows.
const SETTLED: Duration = Duration::from_mins(40);
/// Most memory ever, in KiB, however short it is.
const PEAK_KIB: u64 = 32 * 1024;
/// Most threads and open files ever.
const THREADS: u64 = 20;
const FILES: u64 = 64;

/// One replica at one moment: its process and what that takes.
pub(crate) type One = (u32, Reading);

/// What the replica that is never ended took.
#[derive(Default)]
pub(crate) struct Samples(Vec<(Duration, Reading)>);

pub(crate) fn head() {
    println!(
        "minute   replica: pid, leads, RSS KiB, PSS KiB, threads, files                     done starts"
    );
}

pub(crate) fn line(minute: u64, readings: &[One; 2], leads: [bool; 2], done: u64, starts: u32) {
    let one = |number: usize| {
        let (pid, now) = readings[number];
        let leads = if leads[number] { 'L' } else { '-' };
        format!("{pid:>8} {leads} {:>6} {:>6} {:>3} {:>3}", now.rss_kib, now.pss_kib, now.threads, now.files)
    };
    println!("{minute:>6}  {}  |{}  {done:>7} {starts:>6}", one(0), one(1));
}

impl Samples {
    pub(crate) fn take(&mut self, at: Duration, agents: &[Agent; 2]) -> [One; 2] {
        let readings = [0, 1].map(|number| {
            let pid = agents[number].process().pid();
            (pid, Reading::of(pid))
        });
        self.0.push((at, readings[0].1));
        readings
    }

    /// Prints what it comes to; whether it is flat.
    pub(crate) fn report(&self) -> bool {
        let quarter = self.0.len() / 4;
        let mean = |samples: &[(Duration, Reading)]| {
            let sum: f64 = samples.iter().map(|(_, now)| kib(now)).sum();
            sum / samples.len().max(1).to_string().parse::<f64>().unwrap_or(1.0)
        };
        let (second, last) = (mean(&self.0[quarter..2 * quarter]), mean(&self.0[3 * quarter..]));
        let most = |of: fn(&Reading) -> u64| self.0.iter().map(|(_, now)| of(now)).max().unwrap_or(0);
        let (threads, files, peak) =
            (most(|now| now.threads), most(|now| now.files), most(|now| now.peak_kib));
        let settled = self.0.last().is_some_and(|(at, _)| *at >= SETTLED);
        println!(
            "the one that lived through it: RSS {second:.0} KiB in the second quarter, {last:.0} in the last, \
             {:+.0} KiB an hour; at most {peak} KiB, {threads} threads, {files} files",
            self.slope(quarter)
        );
        if !settled {
            println!(
                "too short to say whether it is flat: the bounds are {PEAK_KIB} KiB, {THREADS} threads, {FILES} files"
            );
        }
        let flat = !settled || last - second <= GROWTH_KIB;
        flat && peak <= PEAK_KIB && threads <= THREADS && files <= FILES
    }

    /// The line of least squares through the samples from this one on, in KiB an hour.
    fn slope(&self, from: usize) -> f64 {
        let (mut count, mut sums) = (0.0, [0.0; 4]);
        for (at, now) in &self.0[from..] {
            let (x, y) = (at.as_secs_f64() / 3600.0, kib(now));
            count += 1.0;
            for (sum, term) in sums.iter_mut().zip([x, y, x * x, x * y]) {
                *sum += term;
            }
        }
        let [x, y, xx, xy] = sums;
        (count * xy - x * y) / (count * xx - x * x)
    }
}

fn kib(reading: &Reading) -> f64 {
    u32::try_from(reading.rss_kib).map_or(f64::MAX, f64::from)
}
