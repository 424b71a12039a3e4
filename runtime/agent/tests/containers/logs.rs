//! Output of containers.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::kubectl::{Kubectl, said};
use crate::world::{World, shell_pod, within};

/// Waits for a file of a volume, so that a test says how far the script is.
fn wait_for(file: &str) -> String {
    format!("until [ -e /gate/{file} ]; do sleep 0.05; done")
}

/// A pod with a folder of the test in it.
fn gated_pod(world: &World, name: &str, script: &str) -> serde_json::Value {
    let gate = world.folder.path().join("gate");
    std::fs::create_dir_all(&gate).expect("made");
    let mut pod = shell_pod(name, script);
    pod["spec"]["volumes"] = json!([{"name": "gate", "hostPath": {"path": gate}}]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "gate", "mountPath": "/gate"}]);
    pod
}

fn open(world: &World, file: &str) {
    std::fs::write(world.folder.path().join("gate").join(file), "").expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_that_of_one_instance() {
    let world = World::start().await;
    // Its first instance fails, its second goes on.
    let script = format!(
        "if [ -e /gate/second ]; then echo two; echo again; {}; echo end; exit 0; fi; echo one; echo bad >&2; touch /gate/second; exit 3",
        wait_for("go")
    );
    let pod = gated_pod(&world, "web", &script);
    world.create(&pod).await;
    world
        .container("web", "main", "was restarted", |status| {
            status["restartCount"] == 1 && !status["state"]["running"].is_null()
        })
        .await;
    for program in Kubectl::versions() {
        let kubectl = Kubectl::new(&program, &world);
        let text = world.until("it speaks", async || {
            Some(kubectl.run(&["logs", "web"]).await.ok()).filter(|text| text.contains("again"))
        });
        assert_eq!(text.await, "two\nagain\n", "{program:?}");
        assert_eq!(kubectl.run(&["logs", "web", "--tail=1"]).await.ok(), "again\n");
        assert_eq!(kubectl.run(&["logs", "web", "--previous"]).await.ok(), "one\nbad\n");
        let timed = kubectl.run(&["logs", "web", "--previous", "--timestamps", "--tail=1"]).await.ok();
        let (time, text) = timed.split_once(' ').expect("a time");
        assert!(time.parse::<jiff::Timestamp>().is_ok() && text == "bad\n", "{timed}");
    }
    let mut following = Vec::new();
    for program in Kubectl::versions() {
        let mut child = Kubectl::new(&program, &world).start(&["logs", "-f", "web"]);
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let read = async { (lines.next_line().await, lines.next_line().await) };
        let (one, two) = within("two lines", read).await;
        assert_eq!([one.expect("read"), two.expect("read")], [Some("two".into()), Some("again".into())]);
        following.push((child, lines));
    }
    open(&world, "go");
    for (child, mut lines) in following {
        assert_eq!(within("a line", lines.next_line()).await.expect("read"), Some("end".into()));
        // The container is started again, and that is another instance.
        assert_eq!(within("an end", lines.next_line()).await.expect("read"), None);
        assert_eq!(said(within("kubectl ends", child.wait_with_output()).await.expect("it ran")).code, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_whole_however_long_it_is_and_however_it_ends() {
    let world = World::start().await;
    let script = "i=0; while [ $i -lt 2500 ]; do printf 0123456789; i=$((i+1)); done; echo; printf 'no end'";
    let mut pod = shell_pod("web", script);
    pod["spec"]["restartPolicy"] = "Never".into();
    world.create(&pod).await;
    world.container("web", "main", "has ended", |status| !status["state"]["terminated"].is_null()).await;
    let (code, text) = world.client().get("/api/v1/namespaces/default/pods/web/log").await;
    assert_eq!((code, text), (200, "0123456789".repeat(2500) + "\nno end"));
    let (_, text) = world.client().get("/api/v1/namespaces/default/pods/web/log?follow=true&tailLines=1").await;
    assert_eq!(text, "no end");
    for program in Kubectl::versions() {
        let text = Kubectl::new(&program, &world).run(&["logs", "web", "--previous"]).await.failed();
        assert!(text.contains("previous terminated container \"main\" in pod \"web\" not found"), "{text}");
    }
}
