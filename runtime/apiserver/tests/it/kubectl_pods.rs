//! The real `kubectl` with pods that run.

use std::process::Stdio;

use husk_apiserver::{EventTimes, RESOURCES};
use husk_core::event::{Event, EventKind};
use jiff::Timestamp;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader, Lines};

use crate::kubectl::Kubectl;
use crate::server::{NODE, Server, pod, shell_pod};
use crate::until::within;

async fn ready(kubectl: &Kubectl, name: &str) {
    let out = kubectl.run(&["wait", "--for=condition=Ready", &format!("pod/{name}"), "--timeout=60s"]).await.ok();
    assert_eq!(out, format!("pod/{name} condition met\n"));
}

/// Reads on until a line says it.
async fn line_with<R: AsyncBufRead + Unpin>(lines: &mut Lines<R>, text: &str) {
    let found = async { while lines.next_line().await.expect("it reads").is_some_and(|line| !line.contains(text)) {} };
    within(&format!("a line with {text:?}"), found).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_lives_and_goes_with_every_version() {
    for program in Kubectl::installed() {
        let server = Server::start().await;
        let kubectl = Kubectl::new(&program, &server);
        let manifest = shell_pod("web", "echo up; trap 'exit 0' TERM; while :; do sleep 0.05; done").to_string();
        assert_eq!(kubectl.with_input(&["apply", "-f", "-"], &manifest).await.ok(), "pod/web created\n", "{program:?}");
        ready(&kubectl, "web").await;
        let wide = kubectl.run(&["get", "pods", "-o", "wide"]).await.ok();
        assert!(
            wide.contains("web") && wide.contains("1/1") && wide.contains("Running") && wide.contains(NODE),
            "{wide}"
        );
        assert!(kubectl.run(&["get", "all"]).await.ok().contains("web"));
        let changed = manifest.replace("\"image\":\"shell\"", "\"image\":\"shell:2\"");
        assert_eq!(kubectl.with_input(&["apply", "-f", "-"], &changed).await.ok(), "pod/web configured\n");
        kubectl.run(&["set", "image", "pod/web", "main=shell:3"]).await.ok();
        let image = kubectl.run(&["get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}"]).await.ok();
        assert_eq!(image, "shell:3");
        assert_eq!(kubectl.run(&["logs", "web"]).await.ok(), "up\n");
        assert!(
            kubectl
                .run(&["logs", "web", "--previous"])
                .await
                .failed()
                .contains("previous terminated container \"main\"")
        );
        let described = kubectl.run(&["describe", "pod", "web"]).await.ok();
        assert!(
            described.contains("Running") && described.contains("Ready") && described.contains("shell:3"),
            "{described}"
        );
        let immutable = manifest.replace("\"terminationGracePeriodSeconds\":5", "\"terminationGracePeriodSeconds\":6");
        let err = kubectl.with_input(&["apply", "-f", "-"], &immutable).await.failed();
        assert!(err.contains("is invalid") && err.contains("pod updates may not change fields"), "{err}");
        let mut watching = kubectl.start(&["get", "pods", "-w"], Stdio::null());
        let mut lines = BufReader::new(watching.stdout.take().expect("a pipe")).lines();
        line_with(&mut lines, "Running").await;
        assert_eq!(
            kubectl.run(&["delete", "pod", "web"]).await.ok().trim_end_matches(" from default namespace\n").trim_end(),
            "pod \"web\" deleted"
        );
        line_with(&mut lines, "Terminating").await;
        watching.kill().await.expect("it runs");
        assert!(kubectl.run(&["get", "pod", "web"]).await.failed().contains("NotFound"));
        server.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_entered_by_versions_with_websockets() {
    for program in Kubectl::with_websockets() {
        let server = Server::start().await;
        let kubectl = Kubectl::new(&program, &server);
        kubectl.with_input(&["create", "-f", "-"], &pod("web").to_string()).await.ok();
        ready(&kubectl, "web").await;
        let said = kubectl.run(&["exec", "web", "--", "sh", "-c", "sleep 0.1; echo out; echo bad >&2; exit 3"]).await;
        assert_eq!(said.code, 3, "{program:?}: {said:?}");
        assert_eq!(said.out, "out\n");
        assert!(said.err.starts_with("bad\n"), "{}", said.err);
        let echoed = kubectl.with_input(&["exec", "-i", "web", "--", "cat"], "hello\nworld\n").await.ok();
        assert_eq!(echoed, "hello\nworld\n");
        let err = kubectl.run(&["exec", "web", "-c", "other", "--", "true"]).await.failed();
        assert!(err.contains("container other") || err.contains("other is not valid"), "{err}");
        server.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_cordoned_and_drained() {
    // It waits for seconds before it tries again, so not every version.
    let versions = Kubectl::installed();
    for program in versions.first().into_iter().chain(versions.last()) {
        let server = Server::start().await;
        let kubectl = Kubectl::new(program, &server);
        let budget = ["create", "pdb", "b", "--selector=guarded=yes", "--min-available=1"];
        kubectl.run(&budget).await.ok();
        for name in ["a", "b"] {
            let mut pod = pod(name);
            pod["metadata"]["labels"]["guarded"] = "yes".into();
            kubectl.with_input(&["create", "-f", "-"], &pod.to_string()).await.ok();
            ready(&kubectl, name).await;
        }
        kubectl.run(&["cordon", NODE]).await.ok();
        assert!(kubectl.run(&["get", "nodes"]).await.ok().contains("Ready,SchedulingDisabled"));
        // One may go, the other is held back until there is a third.
        let mut drain = kubectl.start(&["drain", NODE, "--force", "--timeout=120s"], Stdio::null());
        let mut lines = BufReader::new(drain.stderr.take().expect("a pipe")).lines();
        line_with(&mut lines, "disruption budget").await;
        kubectl.run(&["delete", "pdb", "b"]).await.ok();
        let code = drain.wait().await.expect("it runs").code();
        assert_eq!(code, Some(0), "{program:?}");
        assert_eq!(kubectl.json(&["get", "pods"]).await["items"].as_array().map(Vec::len), Some(0));
        kubectl.run(&["uncordon", NODE]).await.ok();
        server.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_shown_with_their_pod() {
    for program in Kubectl::installed() {
        let server = Server::start().await;
        let kubectl = Kubectl::new(&program, &server);
        kubectl.with_input(&["create", "-f", "-"], &pod("web").to_string()).await.ok();
        ready(&kubectl, "web").await;
        let pods = RESOURCES.iter().find(|resource| resource.kind == "Pod").expect("pods");
        let objects = server.api.objects();
        let object = objects.get(&pods.key("default", "web")).await.expect("memory").expect("a pod");
        for count in 1..=3 {
            let event = Event {
                pod: "uid".into(),
                field_path: "spec.containers{main}".into(),
                kind: EventKind::Warning,
                reason: "BackOff".into(),
                message: "Back-off restarting failed container main".into(),
                count,
                first_seen: husk_core::Instant::ZERO,
                last_seen: husk_core::Instant::ZERO,
            };
            let times = EventTimes { first: Timestamp::now(), last: Timestamp::now() };
            objects.record_event(&object, &event, times, NODE).await.expect("memory");
        }
        let all = kubectl.run(&["get", "events"]).await.ok();
        assert!(all.contains("BackOff") && all.contains("pod/web"), "{all}");
        assert_eq!(all.lines().count(), 2, "one object for a series: {all}");
        let of_pod = kubectl.run(&["events", "--for", "pod/web"]).await.ok();
        assert!(of_pod.contains("BackOff") && of_pod.contains("x3"), "{program:?}: {of_pod}");
        let described = kubectl.run(&["describe", "pod", "web"]).await.ok();
        assert!(described.contains("Back-off restarting failed container main"), "{described}");
        server.end().await;
    }
}
