//! Scenario files: any text is an error that says where, or a scenario that is written and read without loss and can be played.

use std::sync::OnceLock;
use std::time::Duration;

use husk_core::{Action, Input, Instant, Node};
use husk_sim::{Scenario, Subject, Watch};

/// The pods of the scenarios that are shown to people, so that those are seeds.
const MANIFESTS: [&str; 2] = [
    include_str!("../../../examples/pods/day-in-the-life.yaml"),
    include_str!("../../../examples/pods/crash-loop.yaml"),
];
const UNTIL: Duration = Duration::from_secs(600);
/// The largest scenario that is played; larger ones are only read.
const LONGEST: usize = 4096;

/// Any text.
pub fn scenario(text: &str) {
    let pods = pods();
    let scenario = match Scenario::parse(text, pods) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!(!format!("{error:#}").is_empty());
            return;
        }
    };
    let written = scenario.to_yaml();
    match Scenario::parse(&written, pods) {
        Ok(again) => assert_eq!(again, scenario, "written as {written}"),
        Err(error) => panic!("written as {written} and not read: {error:#}"),
    }
    if text.len() <= LONGEST
        && let Err(error) = husk_sim::play(pods, &scenario, UNTIL, &mut Nobody)
    {
        panic!("not played: {error:#}");
    }
}

fn pods() -> &'static [Subject] {
    static PODS: OnceLock<Vec<Subject>> = OnceLock::new();
    PODS.get_or_init(|| {
        let documents = MANIFESTS.iter().flat_map(|text| husk_api::decode(text, "example.yaml").documents);
        let pods = documents.filter_map(|document| {
            let mut pod = husk_api::pod_of(&document.object)?;
            husk_api::default_pod(&mut pod);
            Some((husk_api::core_meta(&pod), husk_api::core_spec(&pod)))
        });
        Subject::cast(pods)
    })
}

/// Looks on without an interest.
struct Nobody;

impl Watch for Nobody {
    fn input(&mut self, _: Instant, _: &Input) {}

    fn action(&mut self, _: Instant, _: &Action) {}

    fn settled(&mut self, _: Instant, _: &Node) {}
}
