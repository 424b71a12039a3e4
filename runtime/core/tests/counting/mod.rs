//! An allocator that counts: for each thread, so that tests that run side by side don't disturb each other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(allocations: u64, bytes: i64) {
    ALLOCATIONS.set(ALLOCATIONS.get() + allocations);
    LIVE_BYTES.set(LIVE_BYTES.get() + bytes);
}

fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

// SAFETY: everything is handed on to the system's allocator; counting neither allocates nor has a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, size(layout.size()));
        // SAFETY: the caller keeps to the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, -size(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(1, size(new_size) - size(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, new_size) }
    }
}

/// How often memory was asked for while that was done.
pub(crate) fn allocations<T>(what: impl FnOnce() -> T) -> (u64, T) {
    let before = ALLOCATIONS.get();
    let result = what();
    (ALLOCATIONS.get() - before, result)
}

#[allow(dead_code, reason = "each user takes its part")]
/// Bytes that are in use.
pub(crate) fn live_bytes() -> i64 {
    LIVE_BYTES.get()
}
