//! Connections to containers' own processes.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::kubectl::{Kubectl, said};
use crate::world::{World, shell_pod, within};

/// A pod that answers what is typed.
fn answering_pod(name: &str, once: bool) -> Value {
    let script = "echo up; while read line; do echo \"got $line\"; done; echo over >&2";
    let mut pod = shell_pod(name, script);
    pod["spec"]["restartPolicy"] = "Never".into();
    let container = &mut pod["spec"]["containers"][0];
    (container["stdin"], container["stdinOnce"]) = (json!(true), json!(once));
    pod
}

#[tokio::test(flavor = "multi_thread")]
async fn who_detaches_leaves_the_container_running() {
    let world = World::start().await;
    world.create(&answering_pod("web", false)).await;
    world.running("web").await;
    for (n, program) in Kubectl::versions().iter().enumerate() {
        let kubectl = Kubectl::new(program, &world);
        let mut child = kubectl.start(&["attach", "-i", "web"]);
        let (mut stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        stdin.write_all(format!("word {n}\n").as_bytes()).await.expect("written");
        let line = within("an answer", BufReader::new(stdout).lines().next_line()).await.expect("read");
        assert_eq!(line, Some(format!("got word {n}")), "{program:?}");
        child.kill().await.expect("killed");
    }
    let (_, text) = world.client().get("/api/v1/namespaces/default/pods/web/log").await;
    let words = Kubectl::versions().iter().enumerate().map(|(n, _)| format!("got word {n}\n")).collect::<String>();
    assert_eq!(text, format!("up\n{words}"), "its input is still open");
    assert_eq!(world.status("web").await["phase"], "Running");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_for_one_ends_with_the_first() {
    let world = World::start().await;
    for (n, program) in Kubectl::versions().iter().enumerate() {
        let (name, kubectl) = (format!("web-{n}"), Kubectl::new(program, &world));
        world.create(&answering_pod(&name, true)).await;
        world.running(&name).await;
        let attached = kubectl.with_input(&["attach", "-i", &name], "a word\n").await;
        assert_eq!(attached.out, "got a word\n", "{program:?}: {attached:?}");
        assert_eq!((attached.code, attached.err.contains("over\n")), (0, true), "{attached:?}");
        world.container(&name, "main", "has ended", |status| status["state"]["terminated"]["exitCode"] == 0).await;
        let late = kubectl.run(&["attach", &name]).await.failed();
        assert!(late.contains("completed pod"), "{late}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_without_an_input_is_watched() {
    let world = World::start().await;
    world.create(&shell_pod("web", "while :; do echo tick; sleep 0.05; done")).await;
    world.running("web").await;
    let Some(program) = Kubectl::versions().pop() else { return };
    let mut child = Kubectl::new(&program, &world).start(&["attach", "web"]);
    let mut ticks = [0; 10];
    within("ticks", child.stdout.as_mut().expect("a pipe").read_exact(&mut ticks)).await.expect("read");
    assert_eq!(&ticks, b"tick\ntick\n");
    let deleted = world.client().send("DELETE", "/api/v1/namespaces/default/pods/web", &Value::Null).await;
    assert!(deleted.0 < 300, "{deleted:?}");
    assert_eq!(said(within("kubectl ends", child.wait_with_output()).await.expect("it ran")).code, 0);
}
