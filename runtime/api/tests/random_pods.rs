//! Pods put together at random: nothing panics, defaulting is done after one round, and what is refused is refused again.

use husk_api::{Gates, Subresource, check, core_spec, default_pod, pod_from_json, validate_pod, validate_pod_update};
use proptest::prelude::*;
use serde_json::{Value, json};

fn word() -> impl Strategy<Value = Value> {
    let odd = [
        "",
        "a",
        "A",
        "a b",
        "..",
        "a/b",
        "-",
        "v",
        "Always",
        "Never",
        "metadata.labels['a']",
        "limits.cpu",
        "é",
        "/m",
    ];
    proptest::sample::select(odd.to_vec()).prop_map(Value::from)
}

fn number() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![i64::MIN, -1, 0, 1, 80, 65536, i64::from(i32::MAX), i64::MAX]).prop_map(Value::from)
}

fn amount() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec!["-1", "0", "1", "0.0001", "1Ki", "99999999999999999999", "1e18", "8Ei"])
        .prop_map(Value::from)
}

/// A field that is there or not.
fn maybe(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![2 => Just(Value::Null), 1 => value].boxed()
}

fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    values.prop_map(move |values| names.iter().copied().map(String::from).zip(values).collect()).boxed()
}

fn list(item: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    maybe(proptest::collection::vec(item, 0..3).prop_map(Value::from))
}

fn action() -> BoxedStrategy<Value> {
    maybe(object(vec![
        ("exec", maybe(object(vec![("command", list(word()))]))),
        (
            "httpGet",
            maybe(object(vec![("port", prop_oneof![word(), Just(json!(80))].boxed()), ("path", maybe(word()))])),
        ),
        ("successThreshold", maybe(Just(json!(2)))),
        ("terminationGracePeriodSeconds", maybe(number())),
    ]))
}

fn resources() -> BoxedStrategy<Value> {
    let amounts = || {
        maybe(object(vec![
            ("cpu", amount().boxed()),
            ("memory", amount().boxed()),
            ("hugepages-2Mi", amount().boxed()),
            ("ex.com/a", amount().boxed()),
        ]))
    };
    maybe(object(vec![("limits", amounts()), ("requests", amounts())]))
}

fn container() -> BoxedStrategy<Value> {
    object(vec![
        ("name", word().boxed()),
        ("image", maybe(word())),
        ("restartPolicy", maybe(word())),
        ("livenessProbe", action()),
        ("readinessProbe", action()),
        ("lifecycle", maybe(object(vec![("stopSignal", maybe(word())), ("preStop", action())]))),
        ("resources", resources()),
        (
            "volumeMounts",
            list(object(vec![("name", word().boxed()), ("mountPath", word().boxed()), ("subPath", maybe(word()))])),
        ),
        ("env", list(object(vec![("name", word().boxed()), ("value", maybe(word()))]))),
    ])
}

fn pod() -> BoxedStrategy<Value> {
    let spec = object(vec![
        ("containers", list(container())),
        ("initContainers", list(container())),
        (
            "volumes",
            list(object(vec![("name", word().boxed()), ("hostPath", maybe(object(vec![("path", word().boxed())])))])),
        ),
        ("resources", resources()),
        ("terminationGracePeriodSeconds", maybe(number())),
        ("activeDeadlineSeconds", maybe(number())),
        (
            "tolerations",
            list(object(vec![("key", maybe(word())), ("operator", maybe(word())), ("value", maybe(word()))])),
        ),
        ("hostname", maybe(word())),
    ]);
    let metadata = object(vec![
        ("name", word().boxed()),
        ("namespace", maybe(word())),
        ("labels", maybe(object(vec![("a b", word().boxed())]))),
    ]);
    object(vec![
        ("apiVersion", Just(json!("v1")).boxed()),
        ("kind", Just(json!("Pod")).boxed()),
        ("metadata", metadata),
        ("spec", spec),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_pods_get_an_answer(json in pod(), other in pod()) {
        let (Ok(mut pod), Ok(mut other)) = (pod_from_json(&json), pod_from_json(&other)) else { return Ok(()) };
        default_pod(&mut pod);
        default_pod(&mut other);
        let once = pod.clone();
        default_pod(&mut pod);
        prop_assert_eq!(&pod, &once);
        core_spec(&pod);
        prop_assert_eq!(validate_pod(&pod), validate_pod(&once));
        for subresource in [Subresource::None, Subresource::EphemeralContainers, Subresource::Resize] {
            validate_pod_update(&pod, &other, subresource, &Gates::default());
        }
        // The same through the text; every error has a line.
        let checked = check(&json.to_string(), "pod.json");
        prop_assert!(checked.errors.iter().all(|problem| problem.line.is_some()));
    }
}
