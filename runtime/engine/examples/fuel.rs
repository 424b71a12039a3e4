//! Measures what it costs that guests can be stopped anywhere: compute kernels with fuel, with epochs and with neither.
//!
//! `cargo run --release --workspace --example fuel [RUNS]`

use std::time::{Duration, Instant};

use wasmtime::{Config, Engine, Instance, Module, Store};

type Error = Box<dyn std::error::Error>;

/// Each runs for some hundredths of a second: what it does, and how.
const KERNELS: [(&str, &str); 5] = [
    (
        "integers",
        r#"(func (export "run") (result i64) (local $i i64) (local $x i64) (local.set $x (i64.const 88172645463325252))
            (loop $l
                (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 13))))
                (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 7))))
                (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 17))))
                (br_if $l (i64.lt_u (local.tee $i (i64.add (local.get $i) (i64.const 1))) (i64.const 30000000))))
            (local.get $x))"#,
    ),
    (
        "floats",
        r#"(func (export "run") (result i64) (local $i i64) (local $x f64) (local.set $x (f64.const 0.5))
            (loop $l
                (local.set $x (f64.mul (f64.mul (f64.const 3.7) (local.get $x)) (f64.sub (f64.const 1) (local.get $x))))
                (br_if $l (i64.lt_u (local.tee $i (i64.add (local.get $i) (i64.const 1))) (i64.const 20000000))))
            (i64.reinterpret_f64 (local.get $x)))"#,
    ),
    (
        "memory",
        r#"(memory 64) (func (export "run") (result i64) (local $i i32) (local $round i32) (local $sum i64)
            (loop $rounds
                (local.set $i (i32.const 0))
                (loop $l
                    (i64.store (local.get $i) (i64.add (i64.load (local.get $i)) (local.get $sum)))
                    (local.set $sum (i64.add (local.get $sum) (i64.load offset=2097152 (local.get $i))))
                    (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 8))) (i32.const 2097152))))
                (br_if $rounds (i32.lt_u (local.tee $round (i32.add (local.get $round) (i32.const 1))) (i32.const 100))))
            (local.get $sum))"#,
    ),
    (
        "calls",
        r#"(func $fib (param $n i64) (result i64)
            (if (result i64) (i64.lt_u (local.get $n) (i64.const 2)) (then (local.get $n))
                (else (i64.add (call $fib (i64.sub (local.get $n) (i64.const 1)))
                               (call $fib (i64.sub (local.get $n) (i64.const 2)))))))
        (func (export "run") (result i64) (call $fib (i64.const 32)))"#,
    ),
    (
        "branches",
        r#"(func (export "run") (result i64) (local $n i64) (local $i i64) (local $steps i64)
            (loop $numbers
                (local.set $n (local.tee $i (i64.add (local.get $i) (i64.const 1))))
                (loop $l
                    (local.set $steps (i64.add (local.get $steps) (i64.const 1)))
                    (if (i64.eqz (i64.and (local.get $n) (i64.const 1)))
                        (then (local.set $n (i64.shr_u (local.get $n) (i64.const 1))))
                        (else (local.set $n (i64.add (i64.mul (local.get $n) (i64.const 3)) (i64.const 1)))))
                    (br_if $l (i64.gt_u (local.get $n) (i64.const 1))))
                (br_if $numbers (i64.lt_u (local.get $i) (i64.const 100000))))
            (local.get $steps))"#,
    ),
];

/// How a guest can be stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Neither,
    Fuel,
    Epochs,
}

fn main() -> Result<(), Error> {
    let runs: usize = std::env::args().nth(1).map_or(Ok(15), |text| text.parse())?;
    println!("time of compute kernels against what can't be stopped, medians of {runs} runs in turns");
    println!("  kernel       neither    with fuel  with epochs");
    for (name, body) in KERNELS {
        let mut guests = Vec::new();
        for stop in [Stop::Neither, Stop::Fuel, Stop::Epochs] {
            guests.push((Guest::new(stop, body)?, Vec::with_capacity(runs)));
        }
        for _ in 0..runs {
            // In turns, so that what the machine does meanwhile is the same for all.
            for (guest, times) in &mut guests {
                times.push(guest.run()?);
            }
        }
        let [neither, fuel, epochs] = [0, 1, 2].map(|n| median(&mut guests[n].1));
        let against = |time: Duration| time.as_secs_f64() / neither.as_secs_f64();
        println!(
            "  {name:<10} {:>7.1} ms  {:>10.3}x  {:>10.3}x",
            neither.as_secs_f64() * 1e3,
            against(fuel),
            against(epochs)
        );
    }
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

struct Guest {
    store: Store<()>,
    instance: Instance,
    stop: Stop,
}

impl Guest {
    fn new(stop: Stop, body: &str) -> Result<Self, Error> {
        let mut config = Config::new();
        config.consume_fuel(stop == Stop::Fuel).epoch_interruption(stop == Stop::Epochs);
        let engine = Engine::new(&config)?;
        let module = Module::new(&engine, format!("(module {body})"))?;
        let mut store = Store::new(&engine, ());
        if stop == Stop::Epochs {
            store.set_epoch_deadline(u64::MAX / 2);
        }
        if stop == Stop::Fuel {
            store.set_fuel(u64::MAX)?;
        }
        let instance = Instance::new(&mut store, &module, &[])?;
        Ok(Self { store, instance, stop })
    }

    fn run(&mut self) -> Result<Duration, Error> {
        if self.stop == Stop::Fuel {
            self.store.set_fuel(u64::MAX)?;
        }
        let run = self.instance.get_typed_func::<(), i64>(&mut self.store, "run")?;
        let begun = Instant::now();
        std::hint::black_box(run.call(&mut self.store, ())?);
        Ok(begun.elapsed())
    }
}
