//! What is to happen in a run: drawn from its seed, or written down.

use crate::chance::mix;
use crate::faults::{self, Rates, SECOND, Trouble};
use crate::files;
use crate::seasons::Season;
use crate::workload::{self, Item};
use crate::world::Options;
use fastrand::Rng;

/// The plan of a run; each trouble and item with its number and time.
pub(crate) struct Plan {
    pub(crate) replicas: usize,
    pub(crate) end: u64,
    /// The rates of the monotonic clocks.
    pub(crate) clocks: Vec<f64>,
    pub(crate) rates: Rates,
    pub(crate) season: Season,
    pub(crate) troubles: Vec<(u64, u64, Trouble)>,
    pub(crate) items: Vec<(u64, u64, Item)>,
}

impl Plan {
    pub(crate) fn of(seed: u64, rng: &mut Rng, options: &Options) -> Self {
        if let Some(script) = &options.script {
            let numbered = |index: usize| mix(0xb_0000, index as u64);
            let troubles = script.troubles.iter().enumerate();
            let items = script.items.iter().enumerate();
            return Self {
                replicas: 2,
                end: script.end,
                clocks: vec![1.0; 2],
                rates: Rates::none(),
                season: Season::Ordinary,
                troubles: troubles.map(|(index, (at, trouble))| (numbered(index), *at, *trouble)).collect(),
                items: items.map(|(index, (at, item))| (!numbered(index), *at, item.clone())).collect(),
            };
        }
        let replicas = if rng.u32(0..3) == 0 { 3 } else { 2 };
        let season = Season::of(seed);
        let end = season.end(rng.u64(30..300) * SECOND);
        let mut troubles = faults::plan(seed, replicas, end);
        troubles.extend(season.trouble());
        let mut items = workload::plan(seed, end, season == Season::Large);
        items.extend(files::plan(seed, replicas, end));
        items.extend(season.items(seed));
        let clocks = faults::monotonic_rates(seed, replicas);
        Self { replicas, end, clocks, rates: Rates::of(seed), season, troubles, items }
    }
}
