//! `husk simulate`: plays a pod's life in virtual time and draws it.

#[cfg(any())]
mod play;
mod scenario;
mod scripted;
mod svg;
mod table;
mod timeline;

#[cfg(test)]
mod sample {
    use super::timeline::*;
    use husk_core::Instant;
    use husk_core::spec::ProbeKind;
    use husk_core::status::{ConditionStatus, Phase};

    #[test]
    fn draw() {
        let s = |x: f64| Instant::from_millis((x * 1000.0) as u64);
        let states = |v: &[(f64, LaneState)]| v.iter().map(|(t, st)| (s(*t), st.clone())).collect::<Vec<_>>();
        let w = |r: &str| LaneState::Waiting(r.into());
        let probes = |kind, v: &[(f64, bool)]| v.iter().map(|(t, ok)| Probed { at: s(*t), kind, ok: *ok }).collect::<Vec<_>>();
        let ev = |t: f64, c: &str, r: &str, wn| Mark { at: s(t), container: Some(c.into()), warning: wn, reason: r.into(), message: "m".into(), count: 1 };
        let timeline = Timeline {
            pod: "default/web".into(),
            end: s(150.0),
            phases: vec![(s(0.0), Phase::Pending), (s(9.0), Phase::Running), (s(146.0), Phase::Succeeded)],
            conditions: [(0.0, false), (18.0, true), (66.0, false), (88.0, true), (120.0, false)].iter().map(|(t, b)| ConditionChange { at: s(*t), kind: "Ready".into(), status: ConditionStatus::from(*b), reason: String::new(), message: String::new() }).collect(),
            lanes: vec![
                Lane { name: "prepare".into(), role: Role::Init, probe_kinds: vec![], states: states(&[(0.0, w("PodInitializing")), (0.2, LaneState::Pulling), (3.0, LaneState::Starting), (3.1, LaneState::Running), (7.0, LaneState::Succeeded("Completed".into()))]), probes: vec![], exits: vec![Exit { at: s(7.0), code: 0, reason: "Completed".into() }], restarts: 0 },
                Lane { name: "log-shipper".into(), role: Role::Sidecar, probe_kinds: vec![], states: states(&[(0.0, w("PodInitializing")), (7.0, LaneState::Starting), (7.4, LaneState::Ready), (143.0, LaneState::Stopping), (145.0, LaneState::Failed(143, "Error".into()))]), probes: vec![], exits: vec![Exit { at: s(145.0), code: 143, reason: "Error".into() }], restarts: 0 },
                Lane { name: "app".into(), role: Role::App, probe_kinds: vec![ProbeKind::Liveness, ProbeKind::Readiness], states: states(&[(0.0, w("PodInitializing")), (8.0, LaneState::Starting), (9.0, LaneState::Running), (18.0, LaneState::Ready), (50.0, LaneState::Failed(1, "Error".into())), (50.1, LaneState::Starting), (50.5, LaneState::Running), (53.0, LaneState::Ready), (66.0, LaneState::BackOff("CrashLoopBackOff".into())), (76.0, LaneState::Starting), (77.0, LaneState::Running), (88.0, LaneState::Ready), (120.0, LaneState::Stopping), (143.0, LaneState::Succeeded("Completed".into()))]), probes: [probes(ProbeKind::Liveness, &(1..12).map(|i| (9.0 + 10.0 * i as f64, !(5..7).contains(&i))).collect::<Vec<_>>()), probes(ProbeKind::Readiness, &(1..28).map(|i| (8.0 + 5.0 * i as f64, !(10..14).contains(&i))).collect::<Vec<_>>())].concat(), exits: vec![Exit { at: s(50.0), code: 1, reason: "Error".into() }, Exit { at: s(66.0), code: 137, reason: "OOMKilled".into() }, Exit { at: s(143.0), code: 0, reason: "Completed".into() }], restarts: 2 },
            ],
            events: vec![ev(9.0, "app", "Started", false), ev(59.0, "app", "Unhealthy", true), ev(67.0, "app", "BackOff", true), ev(120.0, "app", "Killing", false), ev(143.0, "log-shipper", "Killing", false), ev(7.4, "log-shipper", "Started", false), ev(3.1, "prepare", "Started", false)],
            deleted: vec![s(120.0)],
            gone: Some(s(150.0)),
        };
        std::fs::write(std::env::var("OUT").unwrap(), super::svg::draw(&timeline, "probes.yaml with probes.scenario.yaml · 2m30s of virtual time · Succeeded · app restarted 2 times")).unwrap();
        println!("{}", super::table::table(&timeline));
    }
}
