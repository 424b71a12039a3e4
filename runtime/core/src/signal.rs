//! Signals: names, numbers and default dispositions.

/// KILL: can't be handled.
pub const KILL: i32 = 9;

/// Names and numbers as on Linux (`signal(7)`, the numbers of x86 and Arm), and whether one ends a process that has no handler for
/// it. Stopping a guest isn't supported, so a signal that stops a process doesn't end one either.
const SIGNALS: &[(&str, i32, bool)] = &[
    ("HUP", 1, true),
    ("INT", 2, true),
    ("QUIT", 3, true),
    ("ILL", 4, true),
    ("TRAP", 5, true),
    ("ABRT", 6, true),
    ("BUS", 7, true),
    ("FPE", 8, true),
    ("KILL", KILL, true),
    ("USR1", 10, true),
    ("SEGV", 11, true),
    ("USR2", 12, true),
    ("PIPE", 13, true),
    ("ALRM", 14, true),
    ("TERM", 15, true),
    ("STKFLT", 16, true),
    ("CHLD", 17, false),
    ("CONT", 18, false),
    ("STOP", 19, false),
    ("TSTP", 20, false),
    ("TTIN", 21, false),
    ("TTOU", 22, false),
    ("URG", 23, false),
    ("XCPU", 24, true),
    ("XFSZ", 25, true),
    ("VTALRM", 26, true),
    ("PROF", 27, true),
    ("WINCH", 28, false),
    ("IO", 29, true),
    ("PWR", 30, true),
    ("SYS", 31, true),
    ("RTMIN", RTMIN, true),
    ("RTMAX", RTMAX, true),
];

/// Other names of signals that are above.
const ALIASES: &[(&str, &str)] = &[("IOT", "ABRT"), ("CLD", "CHLD"), ("POLL", "IO")];

const RTMIN: i32 = 34;
const RTMAX: i32 = 64;

/// Number of a signal by its name: `SIGTERM`, `TERM`, `SIGRTMIN+3` or `15`.
pub fn number(name: &str) -> Option<i32> {
    let upper = name.trim().to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    let short = ALIASES.iter().find(|(alias, _)| *alias == short).map_or(short, |(_, name)| name);
    let named = |wanted: &str| SIGNALS.iter().find(|(name, ..)| *name == wanted).map(|(_, number, _)| *number);
    let offset = |rest: &str| rest.parse::<i32>().ok();
    named(short)
        .or_else(|| RTMIN.checked_add(offset(short.strip_prefix("RTMIN+")?)?))
        .or_else(|| RTMAX.checked_sub(offset(short.strip_prefix("RTMAX-")?)?))
        .or_else(|| offset(short))
        .filter(|number| (1..=RTMAX).contains(number))
}

/// Whether a guest without a handler ends by this signal.
pub fn ends_by_default(signal: i32) -> bool {
    SIGNALS.iter().find(|(_, number, _)| *number == signal).is_none_or(|(.., ends)| *ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_linux_numbers() {
        for (name, wanted) in
            [("SIGTERM", 15), ("term", 15), ("SIGKILL", 9), ("12", 12), ("SIGRTMIN+3", 37), ("RTMAX-1", 63)]
                .into_iter()
                .chain([("SIGIOT", 6), ("cld", 17), ("SIGPOLL", 29)])
        {
            assert_eq!(number(name), Some(wanted), "{name}");
        }
        for name in ["", "SIGNOTHING", "0", "65", "RTMAX+1", "RTMIN+2147483647", "RTMAX--2147483647"] {
            assert_eq!(number(name), None, "{name}");
        }
        assert!(ends_by_default(15) && ends_by_default(40) && !ends_by_default(17));
    }
}
