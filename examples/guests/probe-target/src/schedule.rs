//! When the server is healthy.

use std::time::Duration;

use guest_support::duration;

/// All arguments.
pub(crate) const USAGE: &str = "\
usage: probe-target [OPTIONS]            serve /startup, /healthz, /readyz, /status
       probe-target check [startup|healthz|readyz] [--port PORT]
                                         ask the server of this pod; exit 0 if healthy, else 1
  --port PORT           listen here (default 8080, or PORT)
  --start-after TIME    until then nothing is healthy (default 0s)
  --healthy-for TIME    /healthz is healthy for so long after the start, then not (default: for ever)
  --then-for TIME       not healthy for so long, then healthy again (default: for ever)
  --ready-after TIME    /readyz is ready only so long after the start
  --ready-for TIME      ... and then for so long (default: for ever)
  --unready-for TIME    not ready for so long, then ready again (default: for ever)
  --repeat              both schedules begin anew when they are over
  --delay TIME          every answer takes so long
  --stop-takes TIME     so long from the stop signal to the end (default 0s)
  --ignore-stop         no end at all: wait for KILL
  --exit-code CODE      exit code after a stop (default 0)
TIME is 500ms, 30s, 1m30s, 2h";

/// First bad for `after`, then good for `good`, then bad for `bad`.
#[derive(Clone, Copy, Debug, Default)]
struct Schedule {
    after: Duration,
    good: Option<Duration>,
    bad: Option<Duration>,
}

impl Schedule {
    fn is_good(&self, age: Duration, repeats: bool) -> bool {
        let Some(mut age) = age.checked_sub(self.after) else { return false };
        let Some(good) = self.good else { return true };
        let Some(bad) = self.bad else { return age < good };
        let round = good + bad;
        if repeats && !round.is_zero() {
            age = Duration::from_nanos((age.as_nanos() % round.as_nanos()) as u64);
        }
        age < good || age >= round
    }
}

/// What the server does when.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) port: u16,
    pub(crate) delay: Duration,
    pub(crate) stop_takes: Duration,
    pub(crate) ignores_stop: bool,
    pub(crate) exit_code: u8,
    start_after: Duration,
    live: Schedule,
    ready: Schedule,
    repeats: bool,
}

impl Script {
    pub(crate) fn parse(args: &[String]) -> Result<Script, String> {
        let mut script = Script {
            port: port(&std::env::var("PORT").unwrap_or_else(|_| "8080".to_owned()))?,
            delay: Duration::ZERO,
            stop_takes: Duration::ZERO,
            ignores_stop: false,
            exit_code: 0,
            start_after: Duration::ZERO,
            live: Schedule::default(),
            ready: Schedule::default(),
            repeats: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (name, attached) =
                arg.split_once('=').map_or((arg.as_str(), None), |(name, value)| (name, Some(value)));
            let mut value =
                || attached.or_else(|| args.next().map(String::as_str)).ok_or(format!("{name} needs a value"));
            match name {
                "--port" => script.port = port(value()?)?,
                "--start-after" => script.start_after = duration::parse(value()?)?,
                "--healthy-for" => script.live.good = Some(duration::parse(value()?)?),
                "--then-for" => script.live.bad = Some(duration::parse(value()?)?),
                "--ready-after" => script.ready.after = duration::parse(value()?)?,
                "--ready-for" => script.ready.good = Some(duration::parse(value()?)?),
                "--unready-for" => script.ready.bad = Some(duration::parse(value()?)?),
                "--repeat" => script.repeats = true,
                "--delay" => script.delay = duration::parse(value()?)?,
                "--stop-takes" => script.stop_takes = duration::parse(value()?)?,
                "--ignore-stop" => script.ignores_stop = true,
                "--exit-code" => {
                    let code = value()?;
                    script.exit_code = code.parse().map_err(|_| format!("'{code}' is no exit code: 0 to 255"))?;
                }
                _ => return Err(format!("{name}: unknown argument")),
            }
        }
        Ok(script)
    }

    /// Whether an aspect is healthy at this age. None: there is no such aspect.
    pub(crate) fn is_healthy(&self, aspect: &str, age: Duration) -> Option<bool> {
        let schedule = match aspect {
            "startup" => &Schedule::default(),
            "healthz" => &self.live,
            "readyz" => &self.ready,
            _ => return None,
        };
        let since_start = age.checked_sub(self.start_after);
        Some(since_start.is_some_and(|since| schedule.is_good(since, self.repeats)))
    }

    pub(crate) fn describe(&self, age: Duration) -> String {
        let mut text = format!("age {:.1} s\n", age.as_secs_f64());
        for aspect in ["startup", "healthz", "readyz"] {
            let is_healthy = self.is_healthy(aspect, age) == Some(true);
            text.push_str(&format!("{aspect} {}\n", if is_healthy { "ok" } else { "failing" }));
        }
        text
    }
}

pub(crate) fn port(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| format!("'{text}' is no port: 1 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy(args: &str, aspect: &str, seconds: &[u64]) -> Vec<bool> {
        let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        let script = Script::parse(&args).unwrap();
        seconds.iter().map(|age| script.is_healthy(aspect, Duration::from_secs(*age)).unwrap()).collect()
    }

    #[test]
    fn schedules_are_kept() {
        assert_eq!(healthy("", "healthz", &[0, 1000]), [true, true]);
        assert_eq!(healthy("--start-after 5s", "startup", &[4, 5]), [false, true]);
        let args = "--start-after 5s --healthy-for 30s --then-for 10s";
        assert_eq!(
            healthy(args, "healthz", &[4, 5, 34, 35, 44, 45, 80]),
            [false, true, true, false, false, true, true]
        );
        assert_eq!(healthy(args, "readyz", &[4, 5, 40]), [false, true, true]);
        assert_eq!(healthy("--healthy-for 3s", "healthz", &[2, 3, 300]), [true, false, false]);
        assert_eq!(
            healthy("--healthy-for 2s --then-for 1s --repeat", "healthz", &[0, 2, 3, 5]),
            [true, false, true, false]
        );
        assert_eq!(healthy("--ready-after 2s --ready-for 2s", "readyz", &[1, 2, 4]), [false, true, false]);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (arg, part) in [
            ("--port=0", "'0' is no port"),
            ("--delay=x", "'x' is no duration"),
            ("--no", "--no: unknown"),
            ("--exit-code=300", "'300'"),
        ] {
            let message = Script::parse(&[arg.to_owned()]).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
