//! Watches: what is there, what changes, what is forgotten.

use husk_apiserver::Memory;
use serde_json::{Value, json};

use crate::client::{Client, MERGE};
use crate::server::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

async fn make(client: &Client, name: &str, tier: &str) -> Value {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"tier": tier}}});
    client.post(MAPS, &map).await.ok()
}

fn told((kind, object): (String, Value)) -> (String, String) {
    (kind, object["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}

fn event(kind: &str, name: &str) -> (String, String) {
    (kind.into(), name.into())
}

#[tokio::test]
async fn a_watch_goes_on_from_a_list() {
    let server = Server::start().await;
    let client = server.client();
    make(&client, "a", "1").await;
    let version = client.get(MAPS).await.ok()["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    make(&client, "b", "1").await;
    let mut watch = client.follow(&format!("{MAPS}?watch=true&resourceVersion={version}"), "").await;
    assert_eq!(told(watch.event().await), event("ADDED", "b"));
    client.patch(&format!("{MAPS}/a"), MERGE, &json!({"data": {"k": "v"}})).await.ok();
    assert_eq!(told(watch.event().await), event("MODIFIED", "a"));
    client.delete(&format!("{MAPS}/b")).await.ok();
    let (kind, object) = watch.event().await;
    assert_eq!(kind, "DELETED");
    // A watch that goes on from here misses nothing and gets nothing twice.
    let version = object["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let mut next = client.follow(&format!("{MAPS}?watch=true&resourceVersion={version}"), "").await;
    make(&client, "c", "1").await;
    assert_eq!(told(next.event().await), event("ADDED", "c"));
    assert_eq!(told(watch.event().await), event("ADDED", "c"));
    server.end().await;
    assert_eq!(watch.next().await, None, "it ends with the server");
}

#[tokio::test]
async fn without_a_version_what_is_there_comes_first() {
    let server = Server::start().await;
    let client = server.client();
    make(&client, "a", "1").await;
    make(&client, "b", "2").await;
    for query in ["", "&resourceVersion=0", "&resourceVersion="] {
        let mut watch = client.follow(&format!("{MAPS}?watch=1{query}"), "").await;
        assert_eq!(told(watch.event().await), event("ADDED", "a"), "{query}");
        assert_eq!(told(watch.event().await), event("ADDED", "b"), "{query}");
    }
    let streamed = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = client.follow(&format!("{MAPS}?watch=true&{streamed}"), "").await;
    assert_eq!(told(watch.event().await), event("ADDED", "a"));
    assert_eq!(told(watch.event().await), event("ADDED", "b"));
    let (kind, bookmark) = watch.event().await;
    assert_eq!((kind.as_str(), &bookmark["kind"]), ("BOOKMARK", &json!("ConfigMap")));
    assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(client.get(&format!("{MAPS}?watch=true&sendInitialEvents=true")).await.error().0, 422);
    server.end().await;
}

// spec: POD-12
#[tokio::test]
async fn what_leaves_the_selection_is_deleted_to_who_watches_it() {
    let server = Server::start().await;
    let client = server.client();
    make(&client, "a", "1").await;
    let mut by_label = client.follow(&format!("{MAPS}?watch=true&labelSelector=tier%3D1"), "").await;
    let mut by_name = client.follow(&format!("{MAPS}?watch=true&fieldSelector=metadata.name%3Db"), "").await;
    assert_eq!(told(by_label.event().await), event("ADDED", "a"));
    make(&client, "b", "2").await;
    assert_eq!(told(by_name.event().await), event("ADDED", "b"));
    client.patch(&format!("{MAPS}/a"), MERGE, &json!({"metadata": {"labels": {"tier": "2"}}})).await.ok();
    let (kind, object) = by_label.event().await;
    assert_eq!((kind.as_str(), &object["metadata"]["labels"]["tier"]), ("DELETED", &json!("1")));
    client.patch(&format!("{MAPS}/b"), MERGE, &json!({"metadata": {"labels": {"tier": "1"}}})).await.ok();
    assert_eq!(told(by_label.event().await), event("ADDED", "b"));
    server.end().await;
}

#[tokio::test]
async fn a_table_is_watched_row_by_row() {
    let server = Server::start().await;
    let client = server.client();
    make(&client, "a", "1").await;
    let mut watch = client.follow(&format!("{MAPS}?watch=true"), TABLE).await;
    make(&client, "b", "1").await;
    let (_, first) = watch.event().await;
    assert_eq!((&first["kind"], &first["rows"][0]["cells"][0]), (&json!("Table"), &json!("a")));
    assert!(first["columnDefinitions"].is_array());
    let (_, second) = watch.event().await;
    assert_eq!((&second["rows"][0]["cells"][0], &second["columnDefinitions"]), (&json!("b"), &Value::Null));
    server.end().await;
}

#[tokio::test]
async fn what_is_forgotten_is_told() {
    let server = Server::with(Memory::new(4)).await;
    let client = server.client();
    let first = make(&client, "a", "1").await["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    for n in 0..8 {
        make(&client, &format!("b{n}"), "1").await;
    }
    let mut watch = client.follow(&format!("{MAPS}?watch=true&resourceVersion={first}"), "").await;
    let (kind, status) = watch.event().await;
    assert_eq!((kind.as_str(), &status["code"], &status["reason"]), ("ERROR", &json!(410), &json!("Expired")));
    assert_eq!(watch.next().await, None);
    for path in [format!("{MAPS}?watch=true&resourceVersion=99999"), format!("{MAPS}?resourceVersion=99999")] {
        assert_eq!(client.get(&path).await.error().0, 504, "{path}");
    }
    assert_eq!(client.get(&format!("{MAPS}?watch=true&resourceVersion=x")).await.error().0, 400);
    let exact = format!("{MAPS}?resourceVersion={first}&resourceVersionMatch=Exact");
    assert_eq!(client.get(&exact).await.error().0, 410);
    server.end().await;
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_over() {
    let server = Server::start().await;
    let client = server.client();
    let mut watch = client.follow(&format!("{MAPS}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true"), "").await;
    assert_eq!(watch.event().await.0, "BOOKMARK");
    assert_eq!(watch.next().await, None);
    server.end().await;
}

#[tokio::test]
async fn many_watch_the_same() {
    let server = Server::start().await;
    let client = server.client();
    let mut watches = Vec::new();
    for _ in 0..200 {
        watches.push(client.follow(&format!("{MAPS}?watch=true"), "").await);
    }
    make(&client, "a", "1").await;
    for watch in &mut watches {
        assert_eq!(told(watch.event().await), event("ADDED", "a"));
    }
    server.end().await;
}
