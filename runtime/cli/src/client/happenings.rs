//! Event objects: when they happened, and how often.

use jiff::Timestamp;
use serde_json::Value;

use super::output::text;

/// Where it stands among others: by when it happened last. Times are whole seconds; within one the server's order counts.
pub(crate) fn order(event: &Value) -> (Option<Timestamp>, u64) {
    (last(event), text(&event["metadata"]["resourceVersion"]).parse().unwrap_or_default())
}

fn last(event: &Value) -> Option<Timestamp> {
    time(&event["series"]["lastObservedTime"])
        .or_else(|| time(&event["lastTimestamp"]))
        .or_else(|| time(&event["eventTime"]))
        .or_else(|| time(&event["metadata"]["creationTimestamp"]))
}

/// As in `3s`, or `3s (x4 over 2m)`.
pub(crate) fn interval(event: &Value, now: Timestamp) -> String {
    let age = |time: Option<Timestamp>| time.map_or_else(|| "<unknown>".into(), |time| husk_api::age(time, now));
    let first = age(time(&event["eventTime"]).or_else(|| time(&event["firstTimestamp"])));
    let series = &event["series"];
    if let Some(count) = series["count"].as_i64() {
        return format!("{} (x{count} over {first})", age(time(&series["lastObservedTime"])));
    }
    match event["count"].as_i64() {
        Some(count) if count > 1 => format!("{} (x{count} over {first})", age(time(&event["lastTimestamp"]))),
        _ => first,
    }
}

/// A time that an object tells.
pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    text(value).parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn series_are_counted() {
        let now = "2026-11-30T06:00:00Z".parse().expect("a time");
        let (first, last) = ("2026-11-30T05:50:00Z", "2026-11-30T05:59:57Z");
        let once = json!({"firstTimestamp": last, "lastTimestamp": last, "count": 1});
        assert_eq!(interval(&once, now), "3s");
        let often = json!({"firstTimestamp": first, "lastTimestamp": last, "count": 4});
        assert_eq!(interval(&often, now), "3s (x4 over 10m)");
        let series = json!({"eventTime": first, "series": {"count": 2, "lastObservedTime": last}});
        assert_eq!(interval(&series, now), "3s (x2 over 10m)");
        assert_eq!(interval(&json!({}), now), "<unknown>");
    }
}
