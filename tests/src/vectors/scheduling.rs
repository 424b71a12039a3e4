//! Family `scheduling`: may a pod run on a node?

use husk_api::{k8s, node_demand, taint, toleration};
use husk_core::scheduling::first_untolerated;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(super) fn answer(input: &Value) -> Value {
    if input["toleration"].is_object() {
        let (toleration, taint) = (toleration(&read(&input["toleration"])), taint(&read(&input["taint"])));
        return json!({"tolerates": toleration.tolerates(&taint)});
    }
    if input["node"].is_object() {
        return affinity(input);
    }
    let taints: Vec<_> = read::<Vec<k8s::Taint>>(&input["taints"]).iter().map(taint).collect();
    let tolerations: Vec<_> = read::<Vec<k8s::Toleration>>(&input["tolerations"]).iter().map(toleration).collect();
    let untolerated = first_untolerated(&taints, &tolerations);
    json!({"untolerated": untolerated.map(|taint| {
        json!({"key": taint.key, "value": taint.value, "effect": taint.effect})
    })})
}

fn affinity(input: &Value) -> Value {
    let demand = node_demand(&read(&input["spec"]));
    let labels = read(&input["node"]["labels"]);
    match demand.matches(input["node"]["name"].as_str().unwrap_or_default(), &labels) {
        Ok(matches) => json!({"match": matches}),
        Err(_) => json!({"match": false, "error": true}),
    }
}

fn read<T: DeserializeOwned>(json: &Value) -> T {
    serde_json::from_value(json.clone()).expect("an object of the case")
}
