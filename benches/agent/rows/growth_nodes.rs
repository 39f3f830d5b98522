//! How the inventory grows with the cluster.

use super::inventory::{Taken, ours};
use crate::Plan;
use crate::big_cluster::BigCluster;
use crate::lab::Lab;
use crate::table::{Row, Sample};

const NODES: [u32; 3] = [1_000, 5_000, 20_000];

pub(crate) fn rows(lab: &Lab, plan: &Plan) -> Vec<Row> {
    let sizes = if plan.quick { &NODES[..2] } else { &NODES };
    let mut big: Option<BigCluster> = None;
    let (mut rows, mut before): (Vec<Row>, Option<(u32, Taken)>) = (vec![], None);
    for &nodes in sizes {
        let big = big.get_or_insert_with(|| BigCluster::start(nodes));
        big.grow(nodes);
        // The first warms the API server up.
        let runs: Vec<Taken> = (0..4).map(|_| ours(lab, big)).skip(1).collect();
        let row = |what: &str, of: fn(&Taken) -> f64| {
            let sample = Sample::of(runs.iter().map(of));
            let factor = before.map_or(String::new(), |(fewer, taken)| {
                let times = sample.median() / of(&taken);
                format!(" ({times:.2} times that of {fewer})")
            });
            Row {
                what: format!("inventory of {nodes} nodes: {what}{factor}"),
                ours: sample,
                ..Row::default()
            }
        };
        let new = [
            row("ms", |taken| taken.ms),
            row("CPU ms of the process", |taken| taken.cpu_ms),
            row("peak of the process, MiB", |taken| taken.peak_mib),
        ];
        let [ms, cpu_ms, peak_mib] = [0, 1, 2].map(|number: usize| new[number].ours.median());
        before = Some((nodes, Taken { ms, cpu_ms, peak_mib }));
        rows.extend(new);
    }
    rows
}
