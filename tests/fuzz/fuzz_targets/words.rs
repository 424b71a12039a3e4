#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| husk_fuzz::words(text));
