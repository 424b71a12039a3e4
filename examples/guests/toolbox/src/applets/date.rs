//! `date`. Time is UTC: a node has no time zones for its guests.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Context, Failure, Status};
use crate::cmdline;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// `date [-u] [-R | -I[date|seconds]] [-d @SECONDS] [-r FILE] [+FORMAT]`.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    // -I takes its value only attached, which is unlike all other options.
    let (iso, args): (Vec<String>, Vec<String>) =
        context.operands().iter().cloned().partition(|arg| arg.starts_with("-I"));
    let options = cmdline::parse(&args, "uRd:r:", &[("utc", 'u')])?;
    let (seconds, nanoseconds) = match (options.value("d"), options.value("r")) {
        (Some(given), _) => match given.strip_prefix('@').and_then(|seconds| seconds.parse::<i64>().ok()) {
            Some(seconds) => (seconds, 0),
            None if given == "now" => now(),
            None => return Err(Failure::from(format!("invalid date '{given}': only @SECONDS and now are understood"))),
        },
        (None, Some(file)) => since_epoch(std::fs::metadata(context.shell.path(file))?.modified()?),
        (None, None) => now(),
    };
    let format = match options.operands.first() {
        Some(format) => {
            format.strip_prefix('+').ok_or_else(|| format!("invalid date '{format}': a format begins with +"))?
        }
        None if options.has("R") => "%a, %d %b %Y %H:%M:%S %z",
        None => match iso.last().map(String::as_str) {
            Some("-Iseconds" | "-Is") => "%Y-%m-%dT%H:%M:%S%:z",
            Some(_) => "%Y-%m-%d",
            None => "%a %b %e %H:%M:%S %Z %Y",
        },
    };
    let text = formatted(format, &Moment::new(seconds, nanoseconds));
    writeln!(context.output, "{text}")?;
    Ok(0)
}

fn now() -> (i64, u32) {
    since_epoch(SystemTime::now())
}

fn since_epoch(time: SystemTime) -> (i64, u32) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
}

/// A point in time as calendar and clock show it.
struct Moment {
    seconds: i64,
    nanoseconds: u32,
    year: i64,
    /// From 0.
    month: usize,
    day: i64,
    day_of_year: i64,
    /// From 0, Sunday.
    weekday: usize,
    time_of_day: i64,
}

impl Moment {
    fn new(seconds: i64, nanoseconds: u32) -> Moment {
        let days = seconds.div_euclid(86_400);
        // Whole cycles of 400 years first: then only the years of one cycle are counted.
        let mut year = 1970 + days.div_euclid(146_097) * 400;
        let mut left = days.rem_euclid(146_097);
        while left >= days_in_year(year) {
            left -= days_in_year(year);
            year += 1;
        }
        let day_of_year = left;
        let mut month = 0;
        while left >= days_in_month(year, month) {
            left -= days_in_month(year, month);
            month += 1;
        }
        Moment {
            seconds,
            nanoseconds,
            year,
            month,
            day: left + 1,
            day_of_year: day_of_year + 1,
            // The first day of 1970 was a Thursday.
            weekday: (days + 4).rem_euclid(7) as usize,
            time_of_day: seconds.rem_euclid(86_400),
        }
    }

    fn hour(&self) -> i64 {
        self.time_of_day / 3600
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_year(year: i64) -> i64 {
    365 + i64::from(is_leap(year))
}

fn days_in_month(year: i64, month: usize) -> i64 {
    match month {
        1 => 28 + i64::from(is_leap(year)),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

fn formatted(format: &str, moment: &Moment) -> String {
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let hour = moment.hour();
        let hour_of_twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
        let (minute, second) = (moment.time_of_day / 60 % 60, moment.time_of_day % 60);
        let again = |format: &str| formatted(format, moment);
        text.push_str(&match letters.next() {
            Some('Y') => moment.year.to_string(),
            Some('C') => format!("{:02}", moment.year / 100),
            Some('y') => format!("{:02}", moment.year % 100),
            Some('m') => format!("{:02}", moment.month + 1),
            Some('d') => format!("{:02}", moment.day),
            Some('e') => format!("{:2}", moment.day),
            Some('H') => format!("{hour:02}"),
            Some('k') => format!("{hour:2}"),
            Some('I') => format!("{hour_of_twelve:02}"),
            Some('M') => format!("{minute:02}"),
            Some('S') => format!("{second:02}"),
            Some('N') => format!("{:09}", moment.nanoseconds),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('s') => moment.seconds.to_string(),
            Some('j') => format!("{:03}", moment.day_of_year),
            Some('a') => DAYS[moment.weekday][..3].to_owned(),
            Some('A') => DAYS[moment.weekday].to_owned(),
            Some('b' | 'h') => MONTHS[moment.month][..3].to_owned(),
            Some('B') => MONTHS[moment.month].to_owned(),
            Some('u') => (if moment.weekday == 0 { 7 } else { moment.weekday }).to_string(),
            Some('w') => moment.weekday.to_string(),
            Some('Z') => "UTC".to_owned(),
            Some('z') => "+0000".to_owned(),
            Some(':') => {
                letters.next();
                "+00:00".to_owned()
            }
            Some('T' | 'X') => again("%H:%M:%S"),
            Some('R') => again("%H:%M"),
            Some('r') => again("%I:%M:%S %p"),
            Some('F') => again("%Y-%m-%d"),
            Some('D' | 'x') => again("%m/%d/%y"),
            Some('c') => again("%a %b %e %H:%M:%S %Y"),
            Some('n') => "\n".to_owned(),
            Some('t') => "\t".to_owned(),
            Some('%') => "%".to_owned(),
            Some(other) => format!("%{other}"),
            None => "%".to_owned(),
        });
    }
    text
}

/// `Jan  2 03:04` for the long listing of `ls`.
pub(super) fn short(time: SystemTime) -> String {
    let (seconds, nanoseconds) = since_epoch(time);
    formatted("%b %e %H:%M", &Moment::new(seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_days_are_right() {
        let cases = [
            (0, "Thu Jan  1 00:00:00 1970 001"),
            (951_782_400, "Tue Feb 29 00:00:00 2000 060"),
            (1_709_251_199, "Thu Feb 29 23:59:59 2024 060"),
            (1_735_689_599, "Tue Dec 31 23:59:59 2024 366"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100 060"),
            (-1, "Wed Dec 31 23:59:59 1969 365"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(formatted("%c %j", &Moment::new(seconds, 0)), expected, "{seconds}");
        }
    }
}
