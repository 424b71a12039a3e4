//! Signals that a pod may ask to be stopped with.

use husk_core::signal::number;

/// What validation says of a container with that stop signal.
fn said_of(signal: &str) -> Vec<String> {
    let manifest = format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  os: {{name: linux}}
  containers:
  - {{name: app, image: app, lifecycle: {{stopSignal: {signal}}}}}
"
    );
    husk_api::check(&manifest, "pod.yaml").errors.iter().map(ToString::to_string).collect()
}

#[test]
fn every_signal_that_validation_accepts_has_a_number() {
    let said = said_of("SIGNOTHING").concat();
    let (_, listed) = said.split_once("supported values: ").expect("it says which there are");
    let accepted: Vec<&str> = listed.split('"').filter(|part| part.starts_with("SIG")).collect();
    assert!(accepted.len() > 60, "{said}");
    for signal in accepted {
        assert_eq!(said_of(signal), Vec::<String>::new(), "{signal}");
        assert!(number(signal).is_some(), "{signal} has no number");
    }
}
