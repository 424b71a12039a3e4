//! Objects: create, read, list, select; and what there is at all.

use serde_json::{Value, json};

use crate::server::{NODE, Server, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().expect("items").iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

fn map(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
}

#[tokio::test]
async fn a_pod_that_is_created_has_what_the_server_fills_in() {
    let server = Server::start().await;
    let client = server.client();
    let made = client.post(PODS, &pod("web")).await;
    assert_eq!(made.code, 201);
    let made = made.json();
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["spec"]["restartPolicy"], "Always");
    assert_eq!(made["spec"]["nodeName"], NODE);
    assert_eq!(made["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        assert!(made["metadata"][field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
    }
    let read = client.get(&format!("{PODS}/web")).await.ok();
    assert_eq!(read["metadata"]["uid"], made["metadata"]["uid"]);
    let again = client.post(PODS, &pod("web")).await;
    assert_eq!(again.error(), (409, "AlreadyExists".into(), "pods \"web\" already exists".into()));
    let details = json!({"name": "web", "kind": "pods"});
    assert_eq!(again.json()["details"], details);
    let missing = client.get(&format!("{PODS}/none")).await;
    assert_eq!(missing.error(), (404, "NotFound".into(), "pods \"none\" not found".into()));
    server.end().await;
}

#[tokio::test]
async fn the_unix_socket_is_for_this_user_only_and_serves_the_same() {
    use std::os::unix::fs::PermissionsExt;

    let server = Server::start().await;
    let socket = server.socket();
    let mode = std::fs::metadata(&socket).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let client = crate::client::Client::Unix(socket.clone());
    assert_eq!(client.get("/readyz").await.bytes, "ok");
    assert_eq!(client.post(PODS, &pod("web")).await.code, 201);
    let taken = husk_apiserver::Listener::unix(&socket).expect_err("it is served");
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    server.end().await;
    // What a server left behind is replaced.
    drop(std::os::unix::net::UnixListener::bind(&socket));
}

#[tokio::test]
async fn a_dry_run_leaves_nothing_behind() {
    let server = Server::start().await;
    let client = server.client();
    let made = client.post(&format!("{PODS}?dryRun=All"), &pod("web")).await.ok();
    assert_eq!(made["spec"]["dnsPolicy"], "ClusterFirst");
    assert_eq!(client.get(&format!("{PODS}/web")).await.code, 404);
    assert_eq!(client.post(&format!("{PODS}?dryRun=Some"), &pod("web")).await.code, 400);
    server.end().await;
}

#[tokio::test]
async fn names_are_generated() {
    let server = Server::start().await;
    let client = server.client();
    let mut map = map("", &json!({}));
    map["metadata"] = json!({"generateName": "job-"});
    let (first, second) = (client.post(MAPS, &map).await.ok(), client.post(MAPS, &map).await.ok());
    let name = |map: &Value| map["metadata"]["name"].as_str().expect("a name").to_owned();
    assert!(name(&first).starts_with("job-") && name(&first) != name(&second));
    server.end().await;
}

// spec: POD-12
#[tokio::test]
async fn lists_are_selected_by_labels_and_fields() {
    let server = Server::start().await;
    let client = server.client();
    for (name, tier) in [("a", "front"), ("b", "back"), ("c", "front")] {
        let mut pod = pod(name);
        pod["metadata"]["labels"]["tier"] = tier.into();
        pod["spec"]["nodeName"] = if name == "c" { "elsewhere" } else { NODE }.into();
        client.post(PODS, &pod).await.ok();
    }
    for (query, expected) in [
        ("", vec!["a", "b", "c"]),
        ("?labelSelector=tier%3Dfront", vec!["a", "c"]),
        ("?labelSelector=tier+in+(back,middle)", vec!["b"]),
        ("?labelSelector=tier%21%3Dfront", vec!["b"]),
        ("?fieldSelector=metadata.name%3Db", vec!["b"]),
        ("?fieldSelector=spec.nodeName%3Delsewhere", vec!["c"]),
        ("?fieldSelector=spec.nodeName%21%3Delsewhere,metadata.name%21%3Da", vec!["b"]),
        ("?fieldSelector=metadata.namespace%3Dother", vec![]),
        ("?labelSelector=tier%3Dfront&fieldSelector=metadata.name%3Dc", vec!["c"]),
    ] {
        assert_eq!(names(&client.get(&format!("{PODS}{query}")).await.ok()), expected, "{query}");
        assert_eq!(names(&client.get(&format!("/api/v1/pods{query}")).await.ok()), expected, "{query}");
    }
    for query in ["labelSelector=a+b", "labelSelector=,", "fieldSelector=spec.bogus%3D1", "fieldSelector=x"] {
        assert_eq!(client.get(&format!("{PODS}?{query}")).await.error().0, 400, "{query}");
    }
    server.end().await;
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let server = Server::start().await;
    let client = server.client();
    for n in 0..5 {
        client.post(MAPS, &map(&format!("m{n}"), &json!({}))).await.ok();
    }
    let (mut path, mut all) = (format!("{MAPS}?limit=2"), Vec::new());
    let mut versions = Vec::new();
    loop {
        let page = client.get(&path).await.ok();
        all.extend(names(&page).into_iter().map(str::to_owned));
        versions.push(page["metadata"]["resourceVersion"].clone());
        let Some(next) = page["metadata"]["continue"].as_str() else { break };
        assert_eq!(page["metadata"]["remainingItemCount"], 5 - all.len());
        // What is written in between changes nothing about where the next page begins.
        client.post(MAPS, &map(&format!("a{}", all.len()), &json!({}))).await.ok();
        path = format!("{MAPS}?limit=2&continue={next}");
    }
    assert_eq!(all, ["m0", "m1", "m2", "m3", "m4"]);
    assert!(versions.iter().all(|version| *version == versions[0]));
    assert_eq!(client.get(&format!("{MAPS}?limit=2&continue=nonsense")).await.error().0, 400);
    server.end().await;
}

#[tokio::test]
async fn a_table_has_the_columns_of_its_resource() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &pod("web")).await.ok();
    let table = client.get_as(PODS, TABLE).await.ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let columns = table["columnDefinitions"].as_array().expect("columns");
    assert_eq!((columns[0]["name"].as_str(), columns[0]["format"].as_str()), (Some("Name"), Some("name")));
    assert_eq!((columns[6]["name"].as_str(), columns[6]["priority"].as_i64()), (Some("Node"), Some(1)));
    let row = &table["rows"][0];
    assert_eq!((&row["cells"][0], &row["cells"][6]), (&json!("web"), &json!(NODE)));
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    let whole = client.get_as(&format!("{PODS}/web?includeObject=Object"), TABLE).await.ok();
    assert_eq!(whole["rows"][0]["object"]["kind"], "Pod");
    for (path, name) in [
        ("/api/v1/nodes", NODE),
        ("/api/v1/namespaces", "default"),
        ("/apis/policy/v1/poddisruptionbudgets", ""),
        ("/api/v1/secrets", ""),
        ("/api/v1/events", ""),
        ("/api/v1/configmaps", ""),
    ] {
        let table = client.get_as(path, TABLE).await.ok();
        let columns = table["columnDefinitions"].as_array().map(Vec::len);
        for row in table["rows"].as_array().expect("rows") {
            assert_eq!(row["cells"].as_array().map(Vec::len), columns, "{path}");
        }
        let first = table["rows"][0]["cells"][0].as_str().unwrap_or_default();
        assert_eq!(first, name, "{path}");
    }
    let metadata = client.get_as(PODS, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").await.ok();
    assert_eq!(metadata["kind"], "PartialObjectMetadataList");
    assert!(metadata["items"][0]["spec"].is_null());
    server.end().await;
}

#[tokio::test]
async fn discovery_tells_old_and_new_clients_the_same() {
    let server = Server::start().await;
    let client = server.client();
    let new = client.get_as("/api", AGGREGATED).await;
    assert_eq!(new.headers["content-type"], "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let resources = list(&new.ok()["items"][0]["versions"][0]["resources"]);
    let new: Vec<String> = resources
        .iter()
        .flat_map(|resource| {
            let plural = resource["resource"].as_str().expect("a name").to_owned();
            let below = list(&resource["subresources"]);
            let below = below.iter().map(|s| format!("{plural}/{}", s["subresource"].as_str().expect("a name")));
            std::iter::once(plural.clone()).chain(below).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(client.get("/api").await.ok()["versions"], json!(["v1"]));
    let old = list(&client.get("/api/v1").await.ok()["resources"]);
    let old: Vec<&str> = old.iter().filter_map(|resource| resource["name"].as_str()).collect();
    assert_eq!(new, old);
    assert!(old.contains(&"pods/ephemeralcontainers") && old.contains(&"pods/eviction"));
    let groups = client.get("/apis").await.ok();
    assert_eq!(groups["groups"][0]["preferredVersion"]["groupVersion"], "policy/v1");
    assert_eq!(client.get("/apis/policy").await.ok()["name"], "policy");
    assert_eq!(client.get("/apis/policy/v1").await.ok()["resources"][0]["shortNames"], json!(["pdb"]));
    assert_eq!(client.get("/apis/policy/v2").await.error().0, 404);
    let index = client.get("/openapi/v3").await.ok();
    let path = index["paths"]["apis/policy/v1"]["serverRelativeURL"].as_str().expect("a path").to_owned();
    let document = client.get(&path).await.ok();
    assert!(
        document["paths"]
            .as_object()
            .expect("paths")
            .values()
            .all(|path| path["patch"]["parameters"][2]["name"] == "fieldValidation")
    );
    assert_eq!(client.get("/openapi/v2").await.bytes, "");
    assert_eq!(client.get("/version/").await.ok()["minor"], "33");
    server.end().await;
}
