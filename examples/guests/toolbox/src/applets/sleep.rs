//! `sleep`.

use std::time::Duration;

use super::{Context, Failure, Status};

/// `sleep TIME…`: the times add up; a signal ends it.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let times: Vec<&str> = context.operands().iter().map(String::as_str).collect();
    let duration = duration(&times)?;
    context.shell.pause(duration).map_err(Failure::Interrupted)?;
    Ok(0)
}

/// The sum of times like `5`, `0.5`, `1m`, `2h`, `1d`; None for `infinity`.
pub(crate) fn duration(times: &[&str]) -> Result<Option<Duration>, String> {
    if times.is_empty() {
        return Err("usage: sleep TIME[s|m|h|d]…, or sleep infinity".to_owned());
    }
    let mut sum = Duration::ZERO;
    for time in times {
        if matches!(*time, "inf" | "infinity") {
            return Ok(None);
        }
        let (number, unit) = match time.strip_suffix(['s', 'm', 'h', 'd']) {
            Some(number) => (number, &time[number.len()..]),
            None => (*time, "s"),
        };
        let factor = match unit {
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => 1.0,
        };
        let seconds = number.parse::<f64>().map_err(|_| format!("invalid number '{time}'"))?;
        let time = Duration::try_from_secs_f64(seconds * factor).map_err(|_| format!("invalid number '{time}'"))?;
        sum = sum.saturating_add(time);
    }
    Ok(Some(sum))
}
