//! A library that a process is started with (`LD_PRELOAD`), so that a test can set its wall clock and give it another boot, without
//! any rights and without anybody else noticing. `HUSK_TEST_WALL` names a file with the seconds that are added to the wall clock,
//! `HUSK_TEST_BOOT` a file that is opened in place of the kernel's boot id.

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;

const BOOT_ID: &CStr = c"/proc/sys/kernel/random/boot_id";

/// In place of the C library's.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    // SAFETY: it is handed on as it came.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) };
    if result == 0 && clock == libc::CLOCK_REALTIME {
        // SAFETY: the kernel has just written it.
        unsafe { (*time).tv_sec += step() };
    }
    c_int::try_from(result).unwrap_or(-1)
}

/// In place of the C library's, which takes the mode only where it needs it: on the machines that this runs on the caller can't tell.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: a path is a string.
    let is_boot_id = unsafe { CStr::from_ptr(path) } == BOOT_ID;
    let other = std::env::var_os("HUSK_TEST_BOOT").filter(|_| is_boot_id);
    let other = other.and_then(|other| CString::new(other.into_vec()).ok());
    let path = other.as_ref().map_or(path, |other| other.as_ptr());
    // SAFETY: it is handed on as it came, or with a path that lives until then.
    let result = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) };
    c_int::try_from(result).unwrap_or(-1)
}

fn step() -> libc::time_t {
    let file = std::env::var_os("HUSK_TEST_WALL");
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
