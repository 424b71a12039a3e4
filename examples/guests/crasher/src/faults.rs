//! The faults themselves. Each defeats a check of the language or of the optimiser: what is wanted is the trap.

use std::hint::black_box;
use std::num::NonZeroU32;

pub(crate) fn unreachable() -> ! {
    #[cfg(target_family = "wasm")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_family = "wasm"))]
    std::process::abort();
}

pub(crate) fn div_by_zero() {
    let zero = black_box(0);
    // SAFETY: none. The divisor is a lie that the compiler can't see through, so that it leaves its own check out and
    // the division itself traps.
    let zero = unsafe { NonZeroU32::new_unchecked(zero) };
    black_box(black_box(1u32) / black_box(zero));
}

pub(crate) fn out_of_bounds() {
    let nowhere = black_box(usize::MAX - 7) as *const u8;
    // SAFETY: none. No memory is as large as that, so the load traps before anything is read.
    black_box(unsafe { nowhere.read_volatile() });
}

/// Never ends well. Each call needs what the next one answers, so that none can be left out.
#[allow(unconditional_recursion, reason = "what it is for")]
#[inline(never)]
pub(crate) fn stack_overflow(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    stack_overflow(black_box(depth + 1)).wrapping_add(frame[(depth % 32) as usize])
}

pub(crate) fn out_of_memory() {
    const STEP: usize = 1 << 20;
    let mut taken = Vec::new();
    loop {
        let mut step: Vec<u8> = Vec::new();
        if step.try_reserve_exact(STEP).is_err() {
            // The node ends a container that crosses its limit; without one the module's own end is reached.
            eprintln!("no more memory after {} MiB", taken.len());
            std::process::abort();
        }
        // Written to, so that it is really there.
        step.resize(STEP, 1);
        taken.push(black_box(step));
    }
}

pub(crate) fn endless_loop() -> ! {
    let mut rounds = 0u64;
    loop {
        rounds = black_box(rounds.wrapping_add(1));
    }
}
