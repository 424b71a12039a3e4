//! How a guest ended, read from what wasmtime answers (STATE-07).

use husk_core::io::{Outcome, Trap};
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;

use crate::account::OutOfMemory;

/// How an instance ended, and in words if it wasn't by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
}

/// The instance was told to end by a signal, and did so where it was asked.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("ended by signal {0}")]
pub(crate) struct Stopped(pub(crate) i32);

impl Ended {
    pub(crate) fn code(code: i32) -> Self {
        Self { outcome: Outcome::Code(code), detail: None }
    }

    pub(crate) fn signal(signal: i32) -> Self {
        Self { outcome: Outcome::Signal(signal), detail: None }
    }

    /// The task that ran it is gone without a word, which only a bug of the node can do.
    pub(crate) fn lost() -> Self {
        Self { outcome: Outcome::Trap(Trap::Unreachable), detail: Some("the node lost track of this instance".into()) }
    }

    /// From the error that a call into the guest, or its instantiation, ended with.
    pub(crate) fn from_error(error: &wasmtime::Error) -> Self {
        if let Some(I32Exit(code)) = error.downcast_ref() {
            return Self::code(*code);
        }
        if let Some(Stopped(signal)) = error.downcast_ref() {
            return Self::signal(*signal);
        }
        let trap = if error.is::<OutOfMemory>() || error.is::<wasmtime::OutOfMemory>() {
            Trap::OutOfMemory
        } else {
            error.downcast_ref().copied().map_or(Trap::Unreachable, trap)
        };
        Self { outcome: Outcome::Trap(trap), detail: Some(in_words(error)) }
    }
}

/// The reason in the first line, where it happened in those that follow.
fn in_words(error: &wasmtime::Error) -> String {
    let place = error.downcast_ref::<wasmtime::WasmBacktrace>().map(ToString::to_string);
    let mut words: Vec<String> = error.chain().map(ToString::to_string).collect();
    words.retain(|part| place.as_ref() != Some(part));
    words.reverse();
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        words = vec!["it holds more files, sockets, streams and timers open than it may".into()];
    }
    let reason = words.join(": ");
    place.map_or(reason.clone(), |place| format!("{reason}\n{place}"))
}

fn trap(trap: wasmtime::Trap) -> Trap {
    use wasmtime::Trap as Wasm;
    match trap {
        Wasm::IntegerOverflow | Wasm::IntegerDivisionByZero | Wasm::BadConversionToInteger => Trap::Arithmetic,
        Wasm::StackOverflow
        | Wasm::MemoryOutOfBounds
        | Wasm::HeapMisaligned
        | Wasm::TableOutOfBounds
        | Wasm::IndirectCallToNull
        | Wasm::BadSignature
        | Wasm::NullReference
        | Wasm::ArrayOutOfBounds => Trap::Fault,
        Wasm::AllocationTooLarge => Trap::OutOfMemory,
        Wasm::OutOfFuel => Trap::OutOfFuel,
        // `unreachable`, and whatever else means that the guest broke a rule and was aborted.
        _ => Trap::Unreachable,
    }
}
