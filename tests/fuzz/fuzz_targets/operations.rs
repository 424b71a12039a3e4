#![no_main]

libfuzzer_sys::fuzz_target!(|life: husk_fuzz::Life| husk_fuzz::operations(life));
