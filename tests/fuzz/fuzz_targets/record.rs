#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| husk_fuzz::record(bytes));
