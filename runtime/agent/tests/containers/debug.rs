//! Ephemeral containers.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdout;

use crate::kubectl::Kubectl;
use crate::world::{PATIENCE, World, shell_pod, within};

#[tokio::test(flavor = "multi_thread")]
async fn a_debugger_looks_into_a_container() {
    let world = World::start().await;
    let mut pod = shell_pod("web", "echo secret > /data/file; echo up; sleep 86400");
    pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    let main = &mut pod["spec"]["containers"][0];
    main["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    main["env"] = json!([{"name": "COLOUR", "value": "green"}]);
    world.create(&pod).await;
    world.running("web").await;
    for (n, program) in Kubectl::versions().iter().enumerate() {
        let kubectl = Kubectl::new(program, &world);
        let name = format!("debugger-{n}");
        let script = "until [ -e /data/file ]; do sleep 0.05; done; echo $COLOUR $(cat /data/file); exit 3";
        let named = ["debug", "web", "--image=toolbox", "--profile=general", "--target=main", "-c", &name];
        kubectl.run(&[&named[..], &["--", "sh", "-c", script]].concat()).await.ok();
        world.container("web", &name, "has ended", |status| status["state"]["terminated"]["exitCode"] == 3).await;
        assert_eq!(kubectl.run(&["logs", "web", "-c", &name]).await.ok(), "green secret\n", "{program:?}");
    }
    let status = world.status("web").await;
    assert_eq!((&status["phase"], &status["containerStatuses"][0]["restartCount"]), (&json!("Running"), &json!(0)));
    assert!(status["ephemeralContainerStatuses"].as_array().into_iter().flatten().all(|s| s["restartCount"] == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debugger_is_talked_to() {
    let world = World::start().await;
    world.create(&shell_pod("web", "sleep 86400")).await;
    world.running("web").await;
    for (n, program) in Kubectl::versions().iter().enumerate() {
        let kubectl = Kubectl::new(program, &world);
        let name = format!("debugger-{n}");
        let script = "read line; echo \"got $line\"";
        let named = ["debug", "-i", "web", "--image=toolbox", "--profile=general", "-c", &name];
        let said = kubectl.with_input(&[&named[..], &["--", "sh", "-c", script]].concat(), "a word\n").await;
        assert!(said.code == 0 && said.out.contains("got a word"), "{program:?}: {said:?}");
    }
}

/// Reads until it is shown.
async fn until(screen: &mut ChildStdout, wanted: &str) {
    let mut shown = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&shown).contains(wanted) {
            let count = screen.read_buf(&mut shown).await.expect("read");
            assert_ne!(count, 0, "{wanted:?} in {:?}", String::from_utf8_lossy(&shown));
        }
    };
    let shown_in_time = tokio::time::timeout(PATIENCE, reading).await;
    assert!(shown_in_time.is_ok(), "waited in vain for {wanted:?}: {:?}", String::from_utf8_lossy(&shown));
}

// spec: EPH-06
#[tokio::test(flavor = "multi_thread")]
async fn a_person_works_at_a_shell_in_a_pod() {
    let world = World::start().await;
    world.create(&shell_pod("web", "sleep 86400")).await;
    world.running("web").await;
    for (n, program) in Kubectl::versions().iter().enumerate() {
        let kubectl = Kubectl::new(program, &world);
        let commands = [
            format!("debug -it web --image=toolbox --profile=general --target=main -c debugger-{n}"),
            "exec -it web -- sh".to_owned(),
        ];
        for arguments in commands {
            let mut child = kubectl.start_at_terminal(&arguments);
            let mut keys = child.stdin.take().expect("a pipe");
            let mut screen = child.stdout.take().expect("a pipe");
            // Its first prompt may be from before there was anybody to see it.
            keys.write_all(b"echo $((6 * 7))\r").await.expect("written");
            until(&mut screen, "42\r\n$ ").await;
            keys.write_all(b"sleep 86400\r").await.expect("written");
            until(&mut screen, "sleep 86400\r\n").await;
            keys.write_all(b"\x03").await.expect("written");
            until(&mut screen, "^C\r\n$ ").await;
            keys.write_all(b"exit\r").await.expect("written");
            within("kubectl ends", child.wait()).await.expect("it ran");
        }
    }
}
