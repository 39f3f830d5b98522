#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| navin_fuzz_checks::inbox::check(bytes));
