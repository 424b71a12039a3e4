#![no_main]

use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|text: &str| husk_fuzz::manifest(text));

// Every other change keeps JSON what it is, so that also what lies behind the parser is reached.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match husk_fuzz::mutated(&data[..size], seed).filter(|text| seed.is_multiple_of(2) && text.len() <= max_size) {
        Some(text) => {
            data[..text.len()].copy_from_slice(&text);
            text.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});

fuzz_crossover!(|first: &[u8], second: &[u8], out: &mut [u8], seed: u32| {
    let crossed = husk_fuzz::crossed(first, second, seed).unwrap_or_else(|| first.to_vec());
    let length = crossed.len().min(out.len());
    out[..length].copy_from_slice(&crossed[..length]);
    length
});
