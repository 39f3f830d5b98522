//! Each check over the kept corpus, and over seeded mutations of it: a second or two for each.
//!
//! A failure prints the text that it is about, and how to run it alone: put it into a file, and
//! `cargo +nightly fuzz run TARGET FILE`.

use navin_fuzz_checks::corpus::{self, MAX_FILE, MAX_FILES, MAX_TOTAL, kept};
use navin_fuzz_checks::mutate::Mutator;
use navin_fuzz_checks::{TARGETS, envelope, keys, watch};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;

/// How many mutations are checked.
const ROUNDS: usize = 3_000;

/// Says of which text a check failed.
struct About<'a>(&'a str, &'a [u8]);

impl Drop for About<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}: failed with b\"{}\"", self.0, self.1.escape_ascii());
        }
    }
}

fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let corpus = kept(name);
    assert!(!corpus.is_empty(), "no corpus");
    for text in &corpus {
        let _about = About(name, text);
        (target.check)(text);
    }
    let mut mutator = Mutator::new(1, corpus, MAX_FILE);
    for _ in 0..ROUNDS {
        let text = mutator.text();
        let _about = About(name, &text);
        (target.check)(&text);
    }
}

macro_rules! seeded {
    ($($test:ident of $name:literal)*) => {
        $(#[test] fn $test() { run($name) })*

        #[test]
        fn every_target_is_run_here() {
            assert!(TARGETS.iter().map(|target| target.name).eq([$($name),*]));
        }
    };
}

seeded! {
    json_is_read_and_written_as_others_do of "json"
    nothing_opens_but_what_was_signed of "envelope"
    a_configuration_is_one_or_is_refused of "config"
    pem_files_are_taken_whole_or_refused of "pem"
    answers_of_the_manager_are_read_whole_or_not_at_all of "gateway"
    answers_of_the_api_server_are_read_whole_or_not_at_all of "kube"
    a_stream_that_is_cut_gives_the_first_of_its_events of "watch"
    a_state_that_is_read_is_written_as_it_was of "state"
    a_lease_is_left_to_its_holder_for_its_term of "lease"
    a_file_of_the_inbox_is_handed_over_once_and_answered of "inbox"
}

#[test]
fn every_target_is_run_by_libfuzzer_too() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("its manifest");
    let programs = manifest.split("[[bin]]").skip(1).filter_map(|program| program.split('"').nth(1));
    assert_eq!(programs.map(str::to_owned).collect::<BTreeSet<_>>(), names, "fuzz/Cargo.toml");
    let files = fs::read_dir(folder.join("fuzz_targets")).expect("its programs");
    let files = files.map(|file| file.expect("a file").path());
    let checked = files.filter_map(|path| {
        let name = path.file_stem()?.to_str()?.to_owned();
        fs::read_to_string(&path).ok()?.contains(&format!("{name}::check")).then_some(name)
    });
    assert_eq!(checked.collect::<BTreeSet<_>>(), names, "fuzz/fuzz_targets");
}

#[test]
fn a_signed_envelope_with_any_one_bit_flipped_is_not_opened() {
    let wire = keys::wires().next().expect("a case");
    for bit in 0..wire.len() * 8 {
        let mut changed = wire.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let _about = About("envelope", &changed);
        envelope::opens_only_what_was_signed(&changed);
    }
}

#[test]
fn a_stream_is_cut_at_every_byte() {
    for name in ["components", "lease", "expired", "crlf"] {
        let text = corpus::read("watch", name);
        let _about = About(name, &text);
        watch::check_cut(&text, &(0..text.len()).collect::<Vec<_>>());
    }
}

#[test]
fn the_kept_corpus_is_small() {
    let mut total = 0;
    for target in TARGETS {
        let corpus = kept(target.name);
        assert!(corpus.len() <= MAX_FILES, "{}: {} files", target.name, corpus.len());
        assert!(corpus.iter().all(|text| text.len() <= MAX_FILE), "{}: a file is too large", target.name);
        total += corpus.iter().map(Vec::len).sum::<usize>();
    }
    assert!(total <= MAX_TOTAL, "{total} bytes");
}

#[test]
fn one_seed_gives_the_same_texts() {
    let texts = |seed| {
        let mut mutator = Mutator::new(seed, vec![b"{\"a\":[1,2]}".to_vec()], 100);
        (0..50).map(|_| mutator.text()).collect::<Vec<_>>()
    };
    assert_eq!(texts(1), texts(1));
    assert_ne!(texts(1), texts(2));
    assert!(texts(1).iter().all(|text| text.len() <= 100));
}
