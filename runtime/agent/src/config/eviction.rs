//! What of a configuration says when pods go because the node runs short, and what of it is reserved for that (RES-09).

use std::collections::BTreeMap;

use husk_core::eviction::{Amount, EvictionConfig, Signal, Threshold};

use super::AgentConfiguration;

type Amounts = BTreeMap<String, String>;

impl AgentConfiguration {
    /// Who writes `evictionHard` gives all of it: as with the kubelet, what isn't there isn't looked at.
    pub(super) fn evictions(&self) -> Result<EvictionConfig, String> {
        let own = EvictionConfig::default();
        let reclaim = self.reclaim()?;
        let reclaim = |signal: Signal| reclaim.get(&signal).copied().unwrap_or(Amount::Of(0));
        let mut thresholds = match &self.eviction_hard {
            None => own.thresholds,
            Some(hard) => {
                let hard = read("evictionHard", hard)?.into_iter();
                hard.map(|(signal, least)| Threshold { signal, least, grace_period: None, reclaim: Amount::Of(0) })
                    .collect()
            }
        };
        for (signal, least) in read("evictionSoft", &self.eviction_soft)? {
            let name = signal.as_str();
            let grace_period = self.eviction_soft_grace_period.get(name).map(|span| span.0);
            let grace_period =
                grace_period.ok_or_else(|| format!("evictionSoftGracePeriod.{name}: say how long, as in 1m30s"))?;
            thresholds.push(Threshold { signal, least, grace_period: Some(grace_period), reclaim: Amount::Of(0) });
        }
        if let Some(name) = self.eviction_soft_grace_period.keys().find(|name| !self.eviction_soft.contains_key(*name))
        {
            return Err(format!("evictionSoftGracePeriod.{name}: there is no evictionSoft.{name} that it is for"));
        }
        thresholds.retain(|threshold| !threshold.least.is_no_threshold());
        for threshold in &mut thresholds {
            threshold.reclaim = reclaim(threshold.signal);
        }
        let max_pod_grace_seconds = self.eviction_max_pod_grace_period.unwrap_or(own.max_pod_grace_seconds);
        if max_pod_grace_seconds < 0 {
            return Err("evictionMaxPodGracePeriod: must not be negative".into());
        }
        let transition = self.eviction_pressure_transition_period.map_or(own.transition, |span| span.0);
        Ok(EvictionConfig { thresholds, max_pod_grace_seconds, transition })
    }

    fn reclaim(&self) -> Result<BTreeMap<Signal, Amount>, String> {
        Ok(read("evictionMinimumReclaim", &self.eviction_minimum_reclaim)?.into_iter().collect())
    }
}

fn read(field: &str, amounts: &Amounts) -> Result<Vec<(Signal, Amount)>, String> {
    let read = |(name, text): (&String, &String)| {
        let signal = Signal::named(name).ok_or_else(|| match name.as_str() {
            "pid.available" => format!("{field}.{name}: pods have no processes here; leave it out"),
            _ => {
                let known = Signal::ALL.map(Signal::as_str).join(", ");
                format!("{field}.{name}: no such signal: there are {known}")
            }
        })?;
        let amount = text.parse().map_err(|error| format!("{field}.{name}: {error}"))?;
        Ok((signal, amount))
    };
    amounts.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn of(text: &str) -> EvictionConfig {
        AgentConfiguration::parse(text).expect("valid").limits().evictions
    }

    // spec: RES-09
    #[test]
    fn fields_are_those_of_a_kubelet() {
        assert_eq!(of("maxPods: 5"), EvictionConfig::default());
        let read = of("
evictionHard: {memory.available: 100Mi, nodefs.available: 10%, imagefs.available: 0%}
evictionSoft: {memory.available: 15%}
evictionSoftGracePeriod: {memory.available: 1m30s}
evictionMinimumReclaim: {memory.available: 20Mi}
evictionMaxPodGracePeriod: 10
evictionPressureTransitionPeriod: 1m
");
        let (memory, disk) = (Signal::MemoryAvailable, Signal::NodefsAvailable);
        let threshold = |signal, least| Threshold { signal, least, grace_period: None, reclaim: Amount::Of(0) };
        let reclaim = Amount::Of(20 << 20);
        let expected = EvictionConfig {
            thresholds: vec![
                Threshold { reclaim, ..threshold(memory, Amount::Of(100 << 20)) },
                threshold(disk, Amount::Percent(10.0)),
                Threshold {
                    reclaim,
                    grace_period: Some(Duration::from_secs(90)),
                    ..threshold(memory, Amount::Percent(15.0))
                },
            ],
            max_pod_grace_seconds: 10,
            transition: Duration::from_secs(60),
        };
        assert_eq!(read, expected);
        assert_eq!(of("evictionHard: {}").thresholds, [], "nothing is looked at");
    }

    // spec: RES-09
    #[test]
    fn mistakes_name_their_field() {
        for (text, said) in [
            (
                "evictionHard: {memory.free: 1Mi}",
                "evictionHard.memory.free: no such signal: there are memory.available",
            ),
            ("evictionHard: {pid.available: 10%}", "evictionHard.pid.available: pods have no processes here"),
            ("evictionHard: {memory.available: 101%}", "evictionHard.memory.available: `101%` must be from 0% to 100%"),
            ("evictionHard: {memory.available: -1}", "evictionHard.memory.available: `-1` must not be negative"),
            ("evictionSoft: {memory.available: 1Mi}", "evictionSoftGracePeriod.memory.available: say how long"),
            ("evictionSoftGracePeriod: {memory.available: 1m}", "there is no evictionSoft.memory.available"),
            ("evictionMinimumReclaim: {nodefs.available: some}", "evictionMinimumReclaim.nodefs.available: "),
            ("evictionMaxPodGracePeriod: -1", "evictionMaxPodGracePeriod: must not be negative"),
        ] {
            let error = AgentConfiguration::parse(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
