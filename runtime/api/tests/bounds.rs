//! Manifests that ask for more than there is: what is made of them stays small.

use husk_api::k8s::{self, EnvVar};
use husk_api::{container_env, validate_pod};
use serde_json::json;

/// The environment of a container with these variables.
fn env(variables: impl Iterator<Item = (String, String)>) -> Result<Vec<(String, String)>, String> {
    let env = variables.map(|(name, value)| EnvVar { name, value: Some(value), ..EnvVar::default() }).collect();
    let container = k8s::Container { env: Some(env), ..k8s::Container::default() };
    container_env(&k8s::Pod::default(), &container, &()).map_err(|error| error.to_string())
}

#[test]
fn variables_that_double_each_other_are_refused() {
    let doubling = |count: u32| {
        env((0..count).map(|n| match n {
            0 => ("V0".into(), "x".into()),
            _ => (format!("V{n}"), format!("$(V{0})$(V{0})", n - 1)),
        }))
    };
    assert_eq!(doubling(10).expect("short enough")[9].1.len(), 512);
    let error = doubling(60).expect_err("2^59 bytes");
    assert!(error.contains("2097152 bytes"), "{error}");
}

#[test]
fn variables_that_stand_for_one_another_are_all_there_however_many() {
    let chain = env((0..20_000).map(|n| (format!("V{n}"), format!("$(V{})", n - 1)))).expect("short enough");
    assert_eq!(chain.len(), 20_000);
    assert_eq!(chain[19_999].1, "$(V-1)");
}

#[test]
fn not_every_message_has_all_names_in_it() {
    let names = |letter: char| (0..3000).map(move |n| format!("{letter}{n}"));
    let claims: Vec<_> = names('c').map(|name| json!({"name": name})).collect();
    let of_pod: Vec<_> = names('p').map(|name| json!({"name": name, "resourceClaimName": "x"})).collect();
    let pod = json!({
        "metadata": {"name": "p", "namespace": "d"},
        "spec": {"resourceClaims": of_pod, "containers": [{"name": "c", "resources": {"claims": claims}}]},
    });
    let pod = husk_api::pod_from_json(&pod).expect("a pod");
    let errors = validate_pod(&pod);
    assert!(errors.len() >= 3000, "each of them is named");
    assert!(errors.iter().map(|error| error.detail.len()).max() < Some(2000));
}
