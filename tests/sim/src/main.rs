//! Runs seeds, or replays one.
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seed: u64 = args[1].parse().unwrap();
    let many: u64 = args.get(2).map_or(1, |n| n.parse().unwrap());
    if many == 1 {
        navin_sim::speech::listen();
    }
    for seed in seed..seed + many {
        let o =
            navin_sim::world::run(seed, navin_sim::world::Options { speak: many == 1, ..Default::default() });
        print!("{}", o.text);
        if let Some(v) = &o.violation {
            println!("seed {seed}: {v:?}");
        }
        if many == 1 {
            println!("{:?} {:x}", o.stats, o.hash);
        }
    }
}
