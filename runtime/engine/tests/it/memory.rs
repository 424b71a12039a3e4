//! The memory limit.

use husk_core::cpu::CpuShare;
use husk_core::io::{Outcome, Trap};
use husk_engine::{ContainerConfig, Engine, EngineConfig, Image, Log, Pod};

use crate::support::{image, module, next_line, start};

/// An engine of the test's own.
fn engine() -> Engine {
    let scratch_dir = Some(env!("CARGO_TARGET_TMPDIR").into());
    Engine::new(EngineConfig { scratch_dir, ..EngineConfig::default() }).expect("engine")
}

const PAGE: u64 = 64 * 1024;

async fn limited(image: Image, pages: u64) -> Outcome {
    let mut config = ContainerConfig::new(image);
    // The table of the test module counts, too.
    config.memory_limit = Some(pages * PAGE + 64);
    let (container, _) = start(config).await;
    let outcome = container.wait().await;
    assert_eq!(container.memory().used, 0);
    outcome
}

// spec: RES-04
#[tokio::test]
async fn crossing_the_limit_ends_the_guest() {
    let image = image(&module("(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))")).await;
    assert_eq!(limited(image, 100).await, Outcome::Trap(Trap::OutOfMemory));
}

// spec: RES-04
#[tokio::test]
async fn a_module_that_begins_beyond_the_limit_does_not_begin() {
    let image = image(r#"(module (memory 100) (func (export "_start")))"#).await;
    assert_eq!(limited(image.clone(), 99).await, Outcome::Trap(Trap::OutOfMemory));
    assert_eq!(limited(image, 100).await, Outcome::Code(0));
}

#[tokio::test]
async fn a_modules_own_maximum_is_no_limit_of_the_container() {
    let image = image(
        r#"(module (memory 1 2) (func (export "_start") (if (i32.ne (memory.grow (i32.const 5)) (i32.const -1)) (then unreachable))))"#,
    )
    .await;
    assert_eq!(limited(image, 3).await, Outcome::Code(0));
}

#[tokio::test]
async fn a_guest_has_so_many_memories_and_no_more() {
    for (memories, is_started) in [(16, true), (17, false)] {
        let image = image(&format!(r#"(module {} (func (export "_start")))"#, "(memory 0)".repeat(memories))).await;
        let outcome = start(ContainerConfig::new(image)).await.0.wait().await;
        assert_eq!(outcome == Outcome::Code(0), is_started, "{memories}: {outcome:?}");
    }
}

// spec: RES-12
#[tokio::test]
async fn containers_of_a_pod_share_its_limit_and_all_pods_that_of_the_node() {
    let engine = engine();
    let image = image(&module(HOLDS_TEN)).await;
    let pod = engine.pod(CpuShare::default(), Some(15 * PAGE));
    let start = async |pod: Option<&Pod>| {
        let mut config = ContainerConfig::new(image.clone());
        config.pod = pod.cloned();
        let log = Log::default();
        (engine.start(config, log.clone()).await.expect("started"), log)
    };
    let (first, log) = start(Some(&pod)).await;
    next_line(&log).await;
    let (second, _) = start(Some(&pod)).await;
    assert_eq!(second.wait().await, Outcome::Trap(Trap::OutOfMemory));
    let (other, log) = start(None).await;
    next_line(&log).await;
    assert_eq!(pod.memory().used, first.memory().used);
    engine.set_memory_limit(Some(25 * PAGE));
    let (last, _) = start(None).await;
    assert_eq!(last.wait().await, Outcome::Trap(Trap::OutOfMemory));
    assert_eq!([first.outcome(), other.outcome()], [None, None]);
    engine.set_memory_limit(None);
    let (last, log) = start(None).await;
    next_line(&log).await;
    assert_eq!(last.outcome(), None);
}

/// Grows to 10 pages, says "up", and sleeps.
const HOLDS_TEN: &str = "(drop (memory.grow (i32.const 9)))
    (i32.store (i32.const 0) (i32.const 0x0a7075)) (call $write (i32.const 1) (i32.const 0) (i32.const 3))
    (call $sleep (i64.const 31536000))";

// spec: RES-04
#[tokio::test]
async fn all_instances_of_a_container_share_its_limit_and_others_do_not_notice() {
    let image = image(&module(HOLDS_TEN)).await;
    let mut config = ContainerConfig::new(image);
    config.memory_limit = Some(15 * PAGE);
    let (container, log) = start(config.clone()).await;
    let (neighbour, _) = start(config).await;
    next_line(&log).await;
    let mut exec = container.exec(&["guest".into()]).await.expect("exec");
    assert_eq!(exec.wait().await.outcome, Outcome::Trap(Trap::OutOfMemory));
    assert_eq!([container.outcome(), neighbour.outcome()], [None, None]);
    assert!(container.memory().used >= 10 * PAGE);
}
