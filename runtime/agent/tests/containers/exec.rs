//! Processes in containers.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::kubectl::{Kubectl, said};
use crate::world::{World, shell_pod, within};

/// A pod that is there.
async fn world_with_pod() -> World {
    let world = World::start().await;
    world.create(&shell_pod("web", "echo up; sleep 86400")).await;
    world.running("web").await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_its_own_output_and_code() {
    let world = world_with_pod().await;
    for program in Kubectl::versions() {
        let kubectl = Kubectl::new(&program, &world);
        for code in [0, 3, 126, 255] {
            let script = format!("echo out; echo bad >&2; exit {code}");
            let said = kubectl.run(&["exec", "web", "--", "sh", "-c", &script]).await;
            assert_eq!((said.code, said.out.as_str()), (code, "out\n"), "{program:?}: {said:?}");
            let words = if code == 0 { String::new() } else { format!("command terminated with exit code {code}\n") };
            assert_eq!(said.err, format!("bad\n{words}"));
        }
        let said = kubectl.run(&["exec", "web", "--", "nosuch", "word"]).await;
        assert_eq!(said.code, 127, "{program:?}: {said:?}");
        assert!(said.err.contains("nosuch: not found"), "{said:?}");
        assert_eq!(kubectl.run(&["logs", "web"]).await.ok(), "up\n", "it isn't the container's output");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_megabytes_go_through_unchanged() {
    let world = world_with_pod().await;
    let sent: Vec<u8> = (0..50 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let Some(program) = Kubectl::versions().pop() else { return };
    let mut child = Kubectl::new(&program, &world).start(&["exec", "-i", "web", "--", "cat"]);
    let (mut stdin, mut stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let sending = {
        let sent = sent.clone();
        tokio::spawn(async move { stdin.write_all(&sent).await })
    };
    let mut received = Vec::new();
    within("all of it comes", stdout.read_to_end(&mut received)).await.expect("read");
    sending.await.expect("no panic").expect("written");
    assert_eq!(said(within("kubectl ends", child.wait_with_output()).await.expect("it ran")).code, 0);
    assert!(received == sent, "{} bytes of {}", received.len(), sent.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_ends_with_its_client() {
    let world = world_with_pod().await;
    let Some(program) = Kubectl::versions().pop() else { return };
    let script = "while :; do echo alive >> /tmp/signs; echo alive; sleep 0.02; done";
    let kubectl = Kubectl::new(&program, &world);
    let mut child = kubectl.start(&["exec", "web", "--", "sh", "-c", script]);
    let mut stdout = child.stdout.take().expect("a pipe");
    within("it lives", stdout.read_u8()).await.expect("read");
    child.kill().await.expect("killed");
    let mut signs = String::new();
    world
        .until("it is dead", async || {
            let now = kubectl.run(&["exec", "web", "--", "sh", "-c", "wc -l < /tmp/signs; sleep 0.2"]).await.ok();
            let is_dead = now == signs;
            signs = now;
            is_dead.then_some(())
        })
        .await;
}
