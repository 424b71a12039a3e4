#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| husk_fuzz::scenario(text));
