//! A scenario's `delete:`: all pods are deleted, whatever happened before.

use std::time::Duration;

use husk_core::spec::{ContainerSpec, PodMeta, PodSpec};
use husk_core::{Action, Input, Instant, Node};
use husk_sim::play::{End, play_out};
use husk_sim::{Scenario, Subject, Watch};

#[derive(Default)]
struct Seen {
    restored: usize,
    deleted: Vec<(Instant, String)>,
    gone: Vec<String>,
}

impl Watch for Seen {
    fn input(&mut self, now: Instant, input: &Input) {
        match input {
            Input::DeleteRequested { pod, grace_seconds: Some(3) } => self.deleted.push((now, pod.to_string())),
            Input::Restored { .. } => self.restored += 1,
            _ => {}
        }
    }

    fn action(&mut self, _now: Instant, action: &Action) {
        if let Action::Gone { pod } = action {
            self.gone.push(pod.to_string());
        }
    }

    fn settled(&mut self, _now: Instant, _node: &Node) {}
}

#[test]
fn all_pods_are_deleted_in_their_order_also_after_a_restart() {
    let pod = |name: &str| {
        let app = ContainerSpec { name: "app".into(), ..ContainerSpec::default() };
        let meta = PodMeta { namespace: "default".into(), name: name.into(), ..PodMeta::default() };
        (meta, PodSpec { containers: vec![app], ..PodSpec::default() })
    };
    let names = ["web", "db", "cache", "mail"];
    let subjects = Subject::cast(names.map(pod));
    let text = "
delete: [{at: 60s, gracePeriodSeconds: 3}]
pods: {mail: {applied: 70s}}
facts: [{at: 30s, what: {restart: {after: AgentRestart, takes: 5s}}}]
trials: {repeatEvery: 1}
";
    let scenario = Scenario::parse(text, &subjects).expect("valid");
    let mut seen = Seen::default();
    let end = play_out(&subjects, &scenario, Duration::from_secs(300), &mut seen).expect("no rule is broken");
    assert!(matches!(end, End::Over(_)), "{end:?}");
    assert_eq!(seen.restored, 3);
    let at = Instant::from_secs(60);
    assert_eq!(seen.deleted, ["web", "db", "cache"].map(|name| (at, name.to_owned())), "the last wasn't there yet");
    seen.gone.sort();
    assert_eq!(seen.gone, ["cache", "db", "web"]);
}
