//! From a case that breaks a rule to the smallest that still breaks it.
//!
//! Greedy: something is taken out, the rest is played, and if the same rule is broken it stays out. First whole pods and facts, by
//! halves; then everything within the pods and the scenario, by their JSON form: an element of a list, an entry of a map, a value
//! that may be null.

use husk_core::grace::DEFAULT_GRACE_SECONDS;
use husk_core::spec::{ContainerSpec, Handler, RestartPolicy};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::broken::Broken;
use crate::random::Case;
use crate::scenario::Subject;
use crate::span::Span;

/// Plays that a shrinking may cost.
const MOST_TRIES: u32 = 20_000;

/// Finds the smallest case that `judge` finds to break the same rule.
pub fn shrink(case: Case, broken: Broken, judge: impl Fn(&Case) -> Result<(), Broken>) -> (Case, Broken) {
    let mut shrinking = Shrinking { case, broken, judge, tries: 0 };
    shrinking.cut();
    loop {
        let before = shrinking.tries;
        let smaller = shrinking.pods() | shrinking.facts() | shrinking.scenario() | shrinking.specs();
        if !smaller || before >= MOST_TRIES {
            return (shrinking.case, shrinking.broken);
        }
    }
}

struct Shrinking<J> {
    case: Case,
    broken: Broken,
    judge: J,
    tries: u32,
}

impl<J: Fn(&Case) -> Result<(), Broken>> Shrinking<J> {
    /// Takes a smaller case if it breaks the same rule.
    fn take(&mut self, smaller: Case) -> bool {
        self.tries += 1;
        if self.tries > MOST_TRIES || !is_valid(&smaller.subjects) {
            return false;
        }
        match (self.judge)(&smaller) {
            Err(broken) if broken.rule == self.broken.rule => {
                (self.case, self.broken) = (smaller, broken);
                true
            }
            _ => false,
        }
    }

    /// What comes later doesn't matter. A rule about the end needs the end, so this may fail.
    fn cut(&mut self) {
        let mut smaller = self.case.clone();
        let at = Span(self.broken.at.since_epoch());
        smaller.scenario.facts.retain(|fact| fact.at <= at);
        self.take(smaller);
    }

    fn pods(&mut self) -> bool {
        let mut smaller = false;
        smaller |= self.by_parts(
            |case| case.subjects.len(),
            |case, from, to| {
                let dropped: Vec<_> = case.subjects.drain(from..to).map(|subject| subject.id).collect();
                for id in dropped {
                    case.scenario.pods.remove(&id);
                    case.scenario.facts.retain(|fact| fact.what.pod() != Some(&id));
                }
            },
        );
        smaller
    }

    fn facts(&mut self) -> bool {
        self.by_parts(
            |case| case.scenario.facts.len(),
            |case, from, to| {
                case.scenario.facts.drain(from..to);
            },
        )
    }

    /// Takes out parts of a list: halves first, then smaller ones, at last single elements.
    fn by_parts(&mut self, count: impl Fn(&Case) -> usize, take_out: impl Fn(&mut Case, usize, usize)) -> bool {
        let mut any = false;
        let mut size = count(&self.case).div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < count(&self.case) {
                let mut smaller = self.case.clone();
                take_out(&mut smaller, from, (from + size).min(count(&self.case)));
                if self.take(smaller) {
                    any = true;
                } else {
                    from += size;
                }
            }
            size /= 2;
        }
        any
    }

    fn scenario(&mut self) -> bool {
        self.within(|case| &case.scenario, |case, scenario| case.scenario = scenario)
    }

    fn specs(&mut self) -> bool {
        let mut any = false;
        for place in 0..self.case.subjects.len() {
            any |= self.within(
                |case| &case.subjects[place].spec,
                |case, spec| {
                    case.subjects[place].spec = spec;
                    drop_unknown_containers(case, place);
                },
            );
        }
        any
    }

    /// Takes out what can be taken out of a value.
    fn within<T: Serialize + DeserializeOwned + Clone>(
        &mut self,
        get: impl Fn(&Case) -> &T,
        put: impl Fn(&mut Case, T),
    ) -> bool {
        let (mut any, mut nth) = (false, 0);
        loop {
            let Ok(mut value) = serde_json::to_value(get(&self.case)) else { return any };
            let mut left = nth;
            if !take_out(&mut value, &mut left) {
                return any;
            }
            let smaller = serde_json::from_value::<T>(value).ok().map(|value| {
                let mut smaller = self.case.clone();
                put(&mut smaller, value);
                smaller
            });
            // What is equal now was no change, and would be tried for ever.
            match smaller.filter(|smaller| *smaller != self.case).map(|smaller| self.take(smaller)) {
                Some(true) => any = true,
                Some(false) | None => nth += 1,
            }
        }
    }
}

/// Takes the so many-th thing that can be taken out, counted from the outside in. Returns false if there are fewer.
fn take_out(value: &mut Value, left: &mut usize) -> bool {
    match value {
        Value::Array(list) => {
            if *left < list.len() {
                list.remove(*left);
                return true;
            }
            *left -= list.len();
            list.iter_mut().any(|element| take_out(element, left))
        }
        Value::Object(map) => {
            if *left < map.len() {
                let key = map.keys().nth(*left).cloned().unwrap_or_default();
                map.remove(&key);
                return true;
            }
            *left -= map.len();
            if *left < map.len() {
                if let Some(entry) = map.values_mut().nth(*left) {
                    *entry = Value::Null;
                }
                return true;
            }
            *left -= map.len();
            map.values_mut().any(|entry| take_out(entry, left))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Scripts and facts are only about containers that there are.
fn drop_unknown_containers(case: &mut Case, place: usize) {
    let subject = &case.subjects[place];
    let knows = |name: &str| subject.spec.container(name).is_some();
    if let Some(pod) = case.scenario.pods.get_mut(&subject.id) {
        pod.containers.retain(|name, _| knows(name));
    }
    case.scenario.facts.retain(|fact| fact.what.pod() != Some(&subject.id) || fact.what.container().is_none_or(&knows));
}

/// What is left is still a pod: validation lets only such through.
fn is_valid(subjects: &[Subject]) -> bool {
    !subjects.is_empty()
        && subjects.iter().all(|subject| {
            let spec = &subject.spec;
            let plain = spec.init_containers.iter().filter(|container| !container.is_sidecar()).all(|container| {
                container.liveness_probe.is_none()
                    && container.readiness_probe.is_none()
                    && container.startup_probe.is_none()
                    && container.post_start.is_none()
                    && container.pre_stop.is_none()
                    && container.stop_signal.is_none()
                    && container.resize_policy.is_empty()
            });
            let grace = spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
            let short =
                |hook: Option<Handler>| !matches!(hook, Some(Handler::Sleep(seconds)) if i64::from(seconds) >= grace);
            let brief = spec.all_containers().all(|(_, c)| short(c.post_start) && short(c.pre_stop));
            let ruled = |container: &ContainerSpec| {
                container.restart_policy_rules.is_empty() || container.restart_policy.is_some()
            };
            let resized = |c: &ContainerSpec| c.resize_policy.is_empty() || spec.restart_policy != RestartPolicy::Never;
            let signals = spec.os.is_some() || spec.all_containers().all(|(_, c)| c.stop_signal.is_none());
            let resizable = spec.all_containers().all(|(_, container)| resized(container));
            plain
                && brief
                && signals
                && resizable
                && !spec.containers.is_empty()
                && spec.all_containers().all(|(_, container)| ruled(container))
        })
}
