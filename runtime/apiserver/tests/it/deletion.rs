//! Deletions: with grace, at once, of many, of what is protected; evictions; namespaces.

use husk_apiserver::{EventTimes, RESOURCES, Resource};
use husk_core::event::{Event, EventKind};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::{Client, MERGE};
use crate::server::{Server, pod, shell_pod};
use crate::until::until;

const PODS: &str = "/api/v1/namespaces/default/pods";
const WEB: &str = "/api/v1/namespaces/default/pods/web";

async fn delete_with(client: &Client, path: &str, options: &Value) -> crate::client::Answer {
    client.send("DELETE", path, &[("content-type", "application/json")], options.to_string()).await
}

fn resource(kind: &str) -> &'static Resource {
    RESOURCES.iter().find(|resource| resource.kind == kind).expect("it is served")
}

async fn running(client: &Client, path: &str) -> Value {
    until(&format!("{path} runs"), async || {
        Some(client.get(path).await.ok()).filter(|pod| pod["status"]["phase"] == "Running")
    })
    .await
}

/// A pod that doesn't mind TERM, once it doesn't.
async fn stubborn(client: &Client) -> Value {
    client.post(PODS, &shell_pod("web", "trap '' TERM; echo deaf; while :; do sleep 0.05; done")).await.ok();
    let pod = running(client, WEB).await;
    until("it is deaf", async || client.get(&format!("{WEB}/log")).await.bytes.starts_with(b"deaf").then_some(()))
        .await;
    pod
}

async fn gone(client: &Client, path: &str) {
    until(&format!("{path} is gone"), async || (client.get(path).await.code == 404).then_some(())).await;
}

#[tokio::test]
async fn a_pod_goes_when_its_node_has_ended_it() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &pod("web")).await.ok();
    running(&client, WEB).await;
    let deleted = client.delete(WEB).await.ok();
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 5);
    assert_eq!(deleted["metadata"]["generation"], 2);
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    gone(&client, WEB).await;
    server.end().await;
}

// spec: TERM-06
#[tokio::test]
async fn without_grace_the_object_is_gone_at_once_and_its_name_free() {
    let server = Server::start().await;
    let client = server.client();
    let first = stubborn(&client).await;
    let mut watch = client.follow(&format!("{PODS}?watch=true&resourceVersion=1"), "").await;
    delete_with(&client, WEB, &json!({"gracePeriodSeconds": 0})).await.ok();
    assert_eq!(client.get(WEB).await.code, 404);
    let second = client.post(PODS, &pod("web")).await.ok();
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    while watch.event().await.0 != "DELETED" {}
    // The node, which kills the first one, leaves the second alone.
    assert_eq!(running(&client, WEB).await["metadata"]["uid"], second["metadata"]["uid"]);
    server.end().await;
}

#[tokio::test]
async fn grace_only_shrinks_and_preconditions_hold() {
    let server = Server::start().await;
    let client = server.client();
    let there = stubborn(&client).await;
    let other = json!({"preconditions": {"uid": "another"}});
    let (code, _, message) = delete_with(&client, WEB, &other).await.error();
    assert_eq!(code, 409);
    assert!(message.contains("Precondition failed: UID in precondition: another"), "{message}");
    let old = json!({"preconditions": {"resourceVersion": "1"}});
    assert_eq!(delete_with(&client, WEB, &old).await.error().0, 409);
    let seconds = |answer: &Value| answer["metadata"]["deletionGracePeriodSeconds"].clone();
    let uid = json!({"preconditions": {"uid": there["metadata"]["uid"]}, "gracePeriodSeconds": 60});
    assert_eq!(seconds(&delete_with(&client, WEB, &uid).await.ok()), 60);
    assert_eq!(seconds(&client.delete(&format!("{WEB}?gracePeriodSeconds=90")).await.ok()), 60);
    assert_eq!(seconds(&client.delete(&format!("{WEB}?gracePeriodSeconds=30")).await.ok()), 30);
    let dry = json!({"dryRun": ["All"], "gracePeriodSeconds": 0});
    assert_eq!(seconds(&delete_with(&client, WEB, &dry).await.ok()), 0);
    assert_eq!(client.get(WEB).await.code, 200);
    for broken in [json!({"dryRun": ["Some"]}), json!({"propagationPolicy": "Up"}), json!({"gracePeriodSeconds": "x"})]
    {
        assert_eq!(delete_with(&client, WEB, &broken).await.error().0, 400, "{broken}");
    }
    server.end().await;
}

// spec: POD-07
#[tokio::test]
async fn finalizers_keep_what_is_deleted_and_none_can_be_added_then() {
    let server = Server::start().await;
    let client = server.client();
    let mut protected = pod("web");
    protected["metadata"]["finalizers"] = json!(["example.com/guard"]);
    client.post(PODS, &protected).await.ok();
    let deleted = delete_with(&client, WEB, &json!({"gracePeriodSeconds": 0})).await.ok();
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    until("the node has ended it", async || {
        let pod = client.get(WEB).await.ok();
        ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == **phase).then_some(())
    })
    .await;
    assert_eq!(client.get(WEB).await.code, 200);
    let more = json!({"metadata": {"finalizers": ["example.com/guard", "example.com/more"]}});
    let (code, _, message) = client.patch(WEB, MERGE, &more).await.error();
    assert_eq!(code, 422);
    assert!(message.contains("no new finalizers can be added if the object is being deleted"), "{message}");
    client.patch(WEB, MERGE, &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(client.get(WEB).await.code, 404);
    server.end().await;
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let server = Server::start().await;
    let client = server.client();
    let maps = "/api/v1/namespaces/default/configmaps";
    for (name, tier) in [("a", "1"), ("b", "2"), ("c", "1")] {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"tier": tier}}});
        client.post(maps, &map).await.ok();
    }
    let deleted = client.delete(&format!("{maps}?labelSelector=tier%3D1")).await.ok();
    assert_eq!((&deleted["kind"], deleted["items"].as_array().map(Vec::len)), (&json!("ConfigMapList"), Some(2)));
    assert_eq!(client.get(maps).await.ok()["items"].as_array().map(Vec::len), Some(1));
    let status = client.delete(&format!("{maps}/b")).await.ok();
    assert_eq!((&status["status"], &status["details"]["name"]), (&json!("Success"), &json!("b")));
    assert_eq!(client.delete("/api/v1/namespaces").await.error().0, 405);
    server.end().await;
}

// spec: DISR-01
#[tokio::test]
async fn an_eviction_asks_the_budget() {
    let server = Server::start().await;
    let client = server.client();
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    for name in ["a", "b"] {
        let mut pod = pod(name);
        pod["metadata"]["labels"] = json!({"app": "web"});
        client.post(PODS, &pod).await.ok();
        running(&client, &format!("{PODS}/{name}")).await;
    }
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    client.post(budgets, &budget).await.ok();
    let evict = async |name: &str, options: Value| {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options});
        client.post(&format!("{PODS}/{name}/eviction"), &eviction).await
    };
    assert_eq!(evict("a", json!({"dryRun": ["All"]})).await.code, 201);
    assert!(client.get(&format!("{PODS}/a")).await.ok()["metadata"]["deletionTimestamp"].is_null());
    // What is refused takes nothing from the budget, and nobody is told that the pod goes.
    for other in [json!({"uid": "another"}), json!({"resourceVersion": "1"})] {
        let (code, _, message) = evict("a", json!({"preconditions": other})).await.error();
        assert_eq!(code, 409);
        assert!(message.contains("Precondition failed"), "{message}");
        let budget = client.get(&format!("{budgets}/web")).await.ok();
        assert!(budget["status"]["disruptedPods"].is_null(), "{budget}");
        let conditions = client.get(&format!("{PODS}/a")).await.ok()["status"]["conditions"].clone();
        assert!(!conditions.to_string().contains("DisruptionTarget"), "{conditions}");
    }
    let evicted = until("the pod is evicted as it is", async || {
        let there = client.get(&format!("{PODS}/a")).await.ok()["metadata"].clone();
        let exactly = json!({"uid": there["uid"], "resourceVersion": there["resourceVersion"]});
        Some(evict("a", json!({"preconditions": exactly})).await).filter(|evicted| evicted.code != 409)
    })
    .await;
    assert_eq!((evicted.code, &evicted.json()["status"]), (201, &json!("Success")));
    let refused = evict("b", json!(null)).await;
    let (code, reason, message) = refused.error();
    assert_eq!((code, reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(message, "Cannot evict pod as it would violate the pod's disruption budget.");
    let cause = refused.json()["details"]["causes"][0].clone();
    assert_eq!(cause["reason"], "DisruptionBudget");
    assert_eq!(cause["message"], "The disruption budget web needs 1 healthy pods and has 1 currently");
    assert!(!refused.headers.contains_key("retry-after"), "clients would wait in silence");
    gone(&client, &format!("{PODS}/a")).await;
    assert_eq!(evict("none", json!(null)).await.error().0, 404);
    server.end().await;
}

// spec: DISR-02
#[tokio::test]
async fn a_budgets_status_follows_its_pods() {
    let server = Server::start().await;
    let client = server.client();
    let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"tier": "front"}}}});
    client.post(path, &budget).await.ok();
    let status = async |expected: [i64; 4]| {
        let fields = ["expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"];
        until(&format!("the budget's status is {expected:?}"), async || {
            let status = client.get(&format!("{path}/web")).await.ok()["status"].clone();
            (fields.map(|field| status[field].as_i64().unwrap_or(-1)) == expected).then_some(status)
        })
        .await
    };
    for name in ["a", "b"] {
        let mut pod = pod(name);
        pod["metadata"]["labels"] = json!({"tier": "front"});
        client.post(PODS, &pod).await.ok();
    }
    // One that never became ready, and ends.
    let mut gated = pod("c");
    gated["metadata"]["labels"] = json!({"tier": "front"});
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    client.post(PODS, &gated).await.ok();
    status([3, 2, 1, 1]).await;
    let ended = |pod: &mut Value| {
        pod["status"]["phase"] = "Failed".into();
        true
    };
    server.api.objects().update(&resource("Pod").key("default", "c"), ended).await.expect("memory takes it");
    let good = status([2, 2, 1, 1]).await;
    assert_eq!(good["conditions"][0]["reason"], "SufficientPods");
    delete_with(&client, &format!("{PODS}/a"), &json!({"gracePeriodSeconds": 0})).await.ok();
    let short = status([1, 1, 1, 0]).await;
    assert_eq!(
        (&short["conditions"][0]["status"], &short["conditions"][0]["reason"]),
        (&json!("False"), &json!("InsufficientPods"))
    );
    server.end().await;
}

#[tokio::test]
async fn a_namespace_goes_with_what_is_in_it() {
    let server = Server::start().await;
    let client = server.client();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    let made = client.post("/api/v1/namespaces", &namespace).await.ok();
    assert_eq!(made["status"]["phase"], "Active");
    assert_eq!(made["metadata"]["labels"]["kubernetes.io/metadata.name"], "team");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    client.post("/api/v1/namespaces/team/configmaps", &map).await.ok();
    client.post("/api/v1/namespaces/team/pods", &pod("web")).await.ok();
    running(&client, "/api/v1/namespaces/team/pods/web").await;
    let deleted = client.delete("/api/v1/namespaces/team").await.ok();
    assert_eq!(deleted["status"]["phase"], "Terminating");
    let (code, _, message) = client.post("/api/v1/namespaces/team/configmaps", &map).await.error();
    assert!(code == 404 || code == 403 && message.contains("because it is being terminated"), "{code} {message}");
    gone(&client, "/api/v1/namespaces/team").await;
    assert_eq!(client.get("/api/v1/namespaces/team/configmaps").await.ok()["items"], json!([]));
    assert_eq!(client.post("/api/v1/namespaces/team/configmaps", &map).await.error().0, 404);
    server.end().await;
}

#[tokio::test]
async fn namespaces_that_are_always_there_stay() {
    let server = Server::start().await;
    let client = server.client();
    for name in ["default", "kube-system"] {
        let path = format!("/api/v1/namespaces/{name}");
        let (code, reason, message) = client.delete(&path).await.error();
        assert_eq!((code, reason.as_str()), (403, "Forbidden"));
        assert_eq!(message, format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted"));
        assert!(client.get(&path).await.ok()["metadata"]["deletionTimestamp"].is_null());
    }
    server.end().await;
}

#[tokio::test]
async fn finalizers_of_a_namespace_keep_it_when_it_is_empty() {
    let server = Server::start().await;
    let client = server.client();
    let team = "/api/v1/namespaces/team";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "team", "finalizers": ["example.com/guard"]}});
    client.post("/api/v1/namespaces", &namespace).await.ok();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    client.post(&format!("{team}/configmaps"), &map).await.ok();
    client.delete(team).await.ok();
    until("the namespace is empty", async || client.get(team).await.ok()["spec"]["finalizers"].is_null().then_some(()))
        .await;
    assert_eq!(client.get(&format!("{team}/configmaps")).await.ok()["items"], json!([]));
    assert_eq!(client.get(team).await.ok()["status"]["phase"], "Terminating");
    client.patch(team, MERGE, &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(client.get(team).await.code, 404);
    server.end().await;
}

#[tokio::test]
async fn the_oldest_events_go_whoever_writes_new_ones() {
    let server = Server::start().await;
    let client = server.client();
    let begun = Timestamp::now().as_second() - 2000;
    for n in 0..1500 {
        let at = Timestamp::from_second(begun + n).expect("a time");
        if n % 10 == 0 {
            let time = at.to_string();
            let event = json!({
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("e-{n}")}, "message": n.to_string(),
                "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"}, "lastTimestamp": time,
            });
            client.post("/api/v1/namespaces/default/events", &event).await.ok();
        } else {
            let event = Event { message: n.to_string(), ..killing() };
            let times = EventTimes { first: at, last: at };
            let about = json!({"metadata": {"namespace": "default", "name": "web", "uid": format!("u-{n}")}});
            server.api.objects().record_event(&about, &event, times, "device").await.expect("memory takes it");
        }
    }
    let list = client.get("/api/v1/namespaces/default/events").await.ok();
    let mut left: Vec<i64> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| event["message"].as_str().expect("text").parse().expect("n"))
        .collect();
    left.sort_unstable();
    assert!((900..=1000).contains(&left.len()), "{}", left.len());
    let newest: Vec<i64> = (1500 - i64::try_from(left.len()).expect("few")..1500).collect();
    assert_eq!(left, newest);
    server.end().await;
}

// spec: NODE-02
#[tokio::test]
async fn a_pod_that_says_something_else_each_time_pushes_nobody_s_events_out() {
    let server = Server::start().await;
    let client = server.client();
    let of = |name: &str| json!({"metadata": {"namespace": "default", "name": name, "uid": name}});
    let now = Timestamp::now();
    let times = EventTimes { first: now, last: now };
    let objects = server.api.objects();
    objects.record_event(&of("quiet"), &killing(), times, "device").await.expect("memory takes it");
    for n in 0..3000 {
        let event = Event { reason: "Unhealthy".into(), message: format!("probe failed: {n}"), ..killing() };
        objects.record_event(&of("noisy"), &event, times, "device").await.expect("memory takes it");
    }
    let list = client.get("/api/v1/namespaces/default/events").await.ok();
    let events = list["items"].as_array().expect("a list");
    let of = |name: &str| events.iter().filter(|event| event["involvedObject"]["name"] == name).collect::<Vec<_>>();
    assert_eq!((of("quiet").len(), of("noisy").len()), (1, 10));
    let combined: Vec<_> = of("noisy").into_iter().filter(|event| event["count"] != 1).collect();
    // Of the first 25, nine stand for themselves.
    let expected = json!(["(combined from similar events): probe failed: 24", 16]);
    assert_eq!(combined.iter().map(|event| json!([event["message"], event["count"]])).collect::<Vec<_>>(), [expected]);
    server.end().await;
}

fn killing() -> Event {
    Event {
        pod: "uid".into(),
        field_path: String::new(),
        kind: EventKind::Normal,
        reason: "Killing".into(),
        message: "Stopping container main".into(),
        count: 1,
        first_seen: husk_core::Instant::ZERO,
        last_seen: husk_core::Instant::ZERO,
    }
}

#[tokio::test]
async fn no_event_comes_to_a_namespace_that_is_gone() {
    let server = Server::start().await;
    let client = server.client();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    client.post("/api/v1/namespaces", &namespace).await.ok();
    let there = client.post("/api/v1/namespaces/team/pods", &pod("web")).await.ok();
    let event = killing();
    let times = EventTimes { first: Timestamp::now(), last: Timestamp::now() };
    let record = async || {
        server.api.objects().record_event(&there, &event, times, "device").await.expect("memory takes it");
        client.get("/api/v1/namespaces/team/events").await.ok()["items"].as_array().map(Vec::len)
    };
    assert_eq!(record().await, Some(1));
    client.delete("/api/v1/namespaces/team").await.ok();
    gone(&client, "/api/v1/namespaces/team").await;
    assert_eq!(record().await, Some(0));
    server.end().await;
}
