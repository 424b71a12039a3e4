//! Changes of objects: replace, patch, server-side apply; by each door what belongs there.

use serde_json::{Value, json};

use crate::client::{APPLY, JSON_PATCH, MERGE, STRATEGIC};
use crate::server::{Server, pod};
use crate::until::until;

const PODS: &str = "/api/v1/namespaces/default/pods";
const WEB: &str = "/api/v1/namespaces/default/pods/web";
const MAP: &str = "/api/v1/namespaces/default/configmaps/m";

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    pod["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

#[tokio::test]
async fn a_replacement_must_be_of_the_version_that_is_there() {
    let server = Server::start().await;
    let client = server.client();
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}});
    let mut first = client.post(maps, &map).await.ok();
    first["data"]["a"] = "2".into();
    let second = client.put(MAP, &first).await.ok();
    assert_ne!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let (code, reason, message) = client.put(MAP, &first).await.error();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.contains("the object has been modified"), "{message}");
    // Without a version whatever is there is replaced, and what is the same is not written.
    let third = client.put(MAP, &map).await.ok();
    assert_eq!(client.put(MAP, &map).await.ok(), third);
    let mut other = map.clone();
    other["metadata"]["uid"] = "another".into();
    assert_eq!(client.put(MAP, &other).await.error().0, 409);
    other["metadata"] = json!({"name": "n"});
    assert_eq!(client.put(MAP, &other).await.error().0, 400);
    assert_eq!(client.put(&format!("{maps}/n"), &other).await.error().0, 404);
    server.end().await;
}

#[tokio::test]
async fn each_kind_of_patch_says_the_same_in_its_own_way() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &pod("web")).await.ok();
    let before = client.get(WEB).await.ok();
    let merge = json!({"metadata": {"labels": {"a": "1", "app": null}}});
    let labels = client.patch(WEB, MERGE, &merge).await.ok()["metadata"]["labels"].clone();
    assert_eq!(labels, json!({"a": "1"}));
    let steps = json!([{"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "add", "path": "/metadata/labels/b", "value": "2"}]);
    let labels = client.patch(WEB, JSON_PATCH, &steps).await.ok()["metadata"]["labels"].clone();
    assert_eq!(labels, json!({"a": "1", "b": "2"}));
    let image = json!({"spec": {"$setElementOrder/containers": [{"name": "main"}],
        "containers": [{"name": "main", "image": "shell:2"}]}});
    let after = client.patch(WEB, STRATEGIC, &image).await.ok();
    assert_eq!(after["spec"]["containers"][0]["image"], "shell:2");
    assert_eq!(after["spec"]["containers"][0]["command"], before["spec"]["containers"][0]["command"]);
    assert_eq!(after["metadata"]["generation"], 2);
    let dry =
        client.patch(&format!("{WEB}?dryRun=All"), MERGE, &json!({"metadata": {"labels": {"c": "3"}}})).await.ok();
    assert_eq!(dry["metadata"]["labels"]["c"], "3");
    assert!(client.get(WEB).await.ok()["metadata"]["labels"]["c"].is_null());
    let (code, ..) = client.patch(WEB, "text/plain", &merge).await.error();
    assert_eq!(code, 415);
    let stale = json!({"metadata": {"resourceVersion": "1", "labels": {"a": "2"}}});
    assert_eq!(client.patch(WEB, MERGE, &stale).await.error().0, 409);
    server.end().await;
}

#[tokio::test]
async fn server_side_apply_creates_and_changes() {
    let server = Server::start().await;
    let client = server.client();
    let path = format!("{WEB}?fieldManager=kubectl&force=false&fieldValidation=Strict");
    let made = client.patch(&path, APPLY, &pod("web")).await;
    assert_eq!(made.code, 201);
    let mut wanted = pod("web");
    wanted["metadata"]["labels"] = json!({"tier": "front"});
    wanted["spec"]["containers"][0]["image"] = "shell:2".into();
    let changed = client.patch(&path, APPLY, &wanted).await.ok();
    assert_eq!(changed["metadata"]["labels"], json!({"tier": "front"}), "what isn't applied any more goes");
    assert_eq!(changed["spec"]["containers"][0]["image"], "shell:2");
    assert_eq!(client.patch(&path, APPLY, &wanted).await.ok(), changed, "nothing to write");
    // What somebody else has changed is a conflict, until it is forced.
    client
        .patch(&format!("{WEB}?fieldManager=editor"), MERGE, &json!({"metadata": {"labels": {"tier": "back"}}}))
        .await
        .ok();
    let refused = client.patch(&path, APPLY, &wanted).await;
    let (code, reason, message) = refused.error();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.ends_with("conflict with \"editor\" using v1: .metadata.labels.tier"), "{message}");
    assert_eq!(refused.json()["details"]["causes"][0]["reason"], "FieldManagerConflict");
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  a: '1'\n";
    let made = client.send("PATCH", &format!("{MAP}?fieldManager=m"), &[("content-type", APPLY)], yaml).await;
    assert_eq!((made.code, &made.json()["data"]["a"]), (201, &json!("1")));
    let forced = path.replace("force=false", "force=true");
    assert_eq!(client.patch(&forced, APPLY, &wanted).await.ok()["metadata"]["labels"]["tier"], "front");
    assert_eq!(client.patch(WEB, APPLY, &pod("web")).await.error().0, 400, "without a manager");
    server.end().await;
}

// spec: POD-06
#[tokio::test]
async fn what_is_immutable_is_refused_by_name() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &pod("web")).await.ok();
    let patch = json!({"spec": {"restartPolicy": "Never"}});
    let refused = client.patch(WEB, STRATEGIC, &patch).await;
    let (code, reason, message) = refused.error();
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    assert!(
        message.starts_with("Pod \"web\" is invalid: spec: Forbidden: pod updates may not change fields"),
        "{message}"
    );
    assert_eq!(refused.json()["details"]["causes"][0]["field"], "spec");
    let added = json!({"spec": {"containers": [{"name": "second", "image": "shell"}]}});
    assert_eq!(client.patch(WEB, STRATEGIC, &added).await.error().0, 422);
    // What the server knows better stays, whatever a client says.
    let before = client.get(WEB).await.ok();
    let mut changed = before.clone();
    changed["metadata"]["creationTimestamp"] = "2000-01-01T00:00:00Z".into();
    changed["metadata"]["generation"] = 99.into();
    changed["metadata"]["labels"]["new"] = "1".into();
    changed["metadata"]["resourceVersion"] = "".into();
    let after = client.put(WEB, &changed).await.ok();
    for field in ["creationTimestamp", "generation", "uid", "name"] {
        assert_eq!(after["metadata"][field], before["metadata"][field], "{field}");
    }
    let moved = json!({"metadata": {"uid": "another"}});
    assert_eq!(client.patch(WEB, MERGE, &moved).await.error().0, 409);
    server.end().await;
}

// spec: COND-05
#[tokio::test]
async fn clients_set_conditions_of_their_own_only() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &pod("web")).await.ok();
    let status = format!("{WEB}/status");
    until("the pod is ready", async || condition(&client.get(WEB).await.ok(), "Ready").cloned()).await;
    let own = json!({"status": {"conditions": [{"type": "example.com/load-balanced", "status": "True"}]}});
    let changed = client.patch(&status, STRATEGIC, &own).await.ok();
    assert_eq!(condition(&changed, "example.com/load-balanced").map(|c| &c["status"]), Some(&json!("True")));
    assert_eq!(condition(&changed, "Ready").map(|c| &c["status"]), Some(&json!("True")));
    let built_in = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let (code, _, message) = client.patch(&status, STRATEGIC, &built_in).await.error();
    assert_eq!(code, 422);
    assert!(message.contains("status.conditions[Ready]: Forbidden"), "{message}");
    let phase = client.patch(&status, MERGE, &json!({"status": {"phase": "Failed"}})).await;
    assert_eq!(phase.ok()["status"]["phase"], "Running");
    assert!(phase.warnings()[0].contains("status: not changed"), "{:?}", phase.warnings());
    // By the pod's own door the status doesn't change at all.
    let by_main = client.patch(WEB, STRATEGIC, &json!({"status": {"phase": "Failed"}})).await.ok();
    assert_eq!(by_main["status"]["phase"], "Running");
    server.end().await;
}

#[tokio::test]
async fn each_door_remembers_who_applied_what_by_it() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &pod("web")).await.ok();
    let apply = async |door: &str, manager: &str, wanted: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}});
        object.as_object_mut().expect("an object").extend(wanted.as_object().expect("an object").clone());
        client.patch(&format!("{WEB}/{door}?fieldManager={manager}"), APPLY, &object).await
    };
    let ours = |status: &str| json!({"status": {"conditions": [{"type": "example.com/ok", "status": status}]}});
    let applied = apply("status", "m", ours("True")).await.ok();
    let managed = &applied["metadata"]["managedFields"][0];
    assert_eq!((&managed["manager"], &managed["subresource"]), (&json!("m"), &json!("status")));
    let (code, _, message) = apply("status", "n", ours("False")).await.error();
    assert_eq!(code, 409);
    assert!(message.contains("conflict with \"m\""), "{message}");
    // What a manager doesn't say any more goes.
    let nothing = apply("status", "m", json!({"status": {}})).await.ok();
    assert_eq!(condition(&nothing, "example.com/ok"), None);
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "shell"}]}});
    let added = apply("ephemeralcontainers", "m", debug).await.ok();
    let managed = added["metadata"]["managedFields"].as_array().expect("managers").clone();
    assert!(managed.iter().any(|managed| managed["subresource"] == "ephemeralcontainers"), "{managed:?}");
    server.end().await;
}

// spec: EPH-01
#[tokio::test]
async fn ephemeral_containers_come_by_their_own_door_and_stay() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &pod("web")).await.ok();
    let door = format!("{WEB}/ephemeralcontainers");
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "shell"}]}});
    let main = client.patch(WEB, STRATEGIC, &debug).await;
    assert!(main.ok()["spec"]["ephemeralContainers"].is_null());
    let told = main.warnings();
    assert!(told.iter().any(|warning| warning.contains("subresource ephemeralcontainers")), "{told:?}");
    let added = client.patch(&door, STRATEGIC, &debug).await.ok();
    assert_eq!(added["spec"]["ephemeralContainers"][0]["name"], "debug");
    assert_eq!(added["spec"]["containers"].as_array().map(Vec::len), Some(1));
    let gone = json!({"spec": {"ephemeralContainers": [{"name": "debug", "$patch": "delete"}]}});
    let (code, _, message) = client.patch(&door, STRATEGIC, &gone).await.error();
    assert_eq!(code, 422);
    assert!(message.contains("may not be removed"), "{message}");
    server.end().await;
}

// spec: EPH-05
#[tokio::test]
async fn static_pods_take_no_ephemeral_containers() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &pod("web")).await.ok();
    // Only the node makes a mirror of it.
    let key = husk_apiserver::PODS.key("default", "web");
    let marked = server.api.objects().update(&key, |object| {
        object["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        true
    });
    marked.await.expect("memory takes it");
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "shell"}]}});
    let (code, _, message) = client.patch(&format!("{WEB}/ephemeralcontainers"), STRATEGIC, &debug).await.error();
    assert_eq!(code, 422);
    assert!(message.contains("static pods do not support ephemeral containers"), "{message}");
    server.end().await;
}

#[tokio::test]
async fn a_resize_changes_resources_and_nothing_else() {
    let server = Server::start().await;
    let client = server.client();
    let mut burstable = pod("web");
    burstable["spec"]["containers"][0]["resources"] =
        json!({"requests": {"memory": "16Mi"}, "limits": {"memory": "32Mi"}});
    client.post(PODS, &burstable).await.ok();
    let resize = format!("{WEB}/resize");
    let patch = json!({"metadata": {"labels": {"sneaky": "1"}},
        "spec": {"containers": [{"name": "main", "image": "other", "resources": {"limits": {"memory": "64Mi"}}}]}});
    let resized = client.patch(&resize, STRATEGIC, &patch).await.ok();
    assert_eq!(resized["spec"]["containers"][0]["resources"]["limits"]["memory"], "64Mi");
    assert_eq!(resized["spec"]["containers"][0]["image"], "shell");
    assert!(resized["metadata"]["labels"]["sneaky"].is_null());
    assert_eq!(resized["metadata"]["generation"], 2);
    let by_main = json!({"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": "128Mi"}}}]}});
    assert_eq!(client.patch(WEB, STRATEGIC, &by_main).await.error().0, 422);
    let qos = json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"memory": "64Mi", "cpu": "1"},
        "limits": {"cpu": "1"}}}]}});
    let (code, _, message) = client.patch(&resize, STRATEGIC, &qos).await.error();
    assert_eq!(code, 422);
    assert!(message.contains("QOS Class"), "{message}");
    server.end().await;
}

#[tokio::test]
async fn secrets_take_plain_text_and_give_it_encoded() {
    let server = Server::start().await;
    let client = server.client();
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "hello"}});
    let made = client.post(secrets, &secret).await.ok();
    assert_eq!(made["data"], json!({"a": "aGVsbG8="}));
    assert!(made["stringData"].is_null());
    assert_eq!(made["type"], "Opaque");
    let patch = json!({"immutable": true, "stringData": {"b": "x"}});
    client.patch(&format!("{secrets}/s"), MERGE, &patch).await.ok();
    let (code, _, message) = client.patch(&format!("{secrets}/s"), MERGE, &json!({"data": null})).await.error();
    assert_eq!(code, 422);
    assert!(message.contains("field is immutable when `immutable` is set"), "{message}");
    server.end().await;
}
