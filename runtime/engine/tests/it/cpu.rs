//! Shares and limits of processors, by what containers have used of them: a slow or busy machine changes how long that takes, and nothing
//! else.

use std::time::Duration;

use husk_core::cpu::{CpuShare, Usage};
use husk_core::io::Outcome;
use husk_engine::{Container, ContainerConfig, Engine, EngineConfig, Log, Metering};

use crate::support::{image, module};

const LOOP: &str = "(loop $l (br $l))";

/// An engine of the test's own, whose threads nobody else computes on.
fn engine(workers: usize) -> Engine {
    let scratch_dir = Some(env!("CARGO_TARGET_TMPDIR").into());
    Engine::new(EngineConfig { workers, scratch_dir, ..EngineConfig::default() }).expect("engine")
}

async fn config(body: &str, request: u64, limit: Option<u64>) -> ContainerConfig {
    let mut config = ContainerConfig::new(image(&module(body)).await);
    config.cpu = CpuShare { request, limit };
    config
}

async fn start(engine: &Engine, config: ContainerConfig) -> Container {
    engine.start(config, Log::default()).await.expect("started")
}

/// Waits until so much was used altogether, and says by whom.
async fn after<const N: usize>(containers: [&Container; N], used: Duration) -> [Duration; N] {
    let before = containers.map(|container| container.cpu().cpu);
    loop {
        let mut before = before.into_iter();
        let since = containers.map(|container| container.cpu().cpu - before.next().expect("as many"));
        if since.iter().sum::<Duration>() >= used {
            return since;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

// spec: RES-03
#[tokio::test]
async fn who_computes_does_so_in_proportion_to_his_requests() {
    let engine = engine(1);
    let one = start(&engine, config(LOOP, 100, None).await).await;
    let four = start(&engine, config(LOOP, 400, None).await).await;
    after([&one], ms(20)).await;
    after([&four], ms(20)).await;
    let [one, four] = after([&one, &four], ms(2000)).await;
    let ratio = four.as_secs_f64() / one.as_secs_f64();
    assert!((3.6..4.4).contains(&ratio), "{one:?} and {four:?}");
}

// spec: RES-02
#[tokio::test]
async fn who_has_used_up_his_limit_waits_for_the_next_period() {
    let engine = engine(2);
    let limited = start(&engine, config(LOOP, 100, Some(100)).await).await;
    let other = start(&engine, config(LOOP, 100, None).await).await;
    after([&limited], ms(200)).await;
    // Ten milliseconds in each period, and a slice more that is made up for.
    let Usage { quota, .. } = limited.cpu();
    assert!(quota.periods >= 18 && quota.throttled_periods > 0, "{quota:?}");
    assert!(quota.throttled > Duration::ZERO);
    assert_eq!(other.cpu().quota, Default::default());
    // He is not ended for it, and can be.
    assert_eq!(limited.outcome(), None);
    limited.kill();
    assert_eq!(limited.wait().await, Outcome::Signal(9));
}

/// As everywhere here, but for what stops guests.
#[tokio::test]
async fn guests_that_are_stopped_by_a_clock_share_and_wait_and_end_as_others_do() {
    let scratch_dir = Some(env!("CARGO_TARGET_TMPDIR").into());
    let metering = Metering::Epochs;
    let engine = Engine::new(EngineConfig { workers: 1, scratch_dir, metering, ..EngineConfig::default() });
    let engine = engine.expect("engine");
    let limited = start(&engine, config(LOOP, 100, Some(100)).await).await;
    let free = start(&engine, config(LOOP, 100, None).await).await;
    after([&limited], ms(100)).await;
    let Usage { quota, .. } = limited.cpu();
    assert!(quota.periods >= 9 && quota.throttled_periods > 0, "{quota:?}");
    let four = start(&engine, config(LOOP, 400, None).await).await;
    limited.kill();
    assert_eq!(limited.wait().await, Outcome::Signal(9));
    after([&four], ms(20)).await;
    let [one, four] = after([&free, &four], ms(2000)).await;
    let ratio = four.as_secs_f64() / one.as_secs_f64();
    assert!((3.6..4.4).contains(&ratio), "{one:?} and {four:?}");
    let mut counted = config(LOOP, 100, None).await;
    counted.fuel_budget = Some(1_000_000);
    let refused = engine.start(counted, Log::default()).await.expect_err("nothing is counted");
    assert_eq!(refused.reason, "CreateContainerError");
    assert!(refused.message.contains("budget of fuel"), "{}", refused.message);
}

// spec: RES-11
#[tokio::test]
async fn a_limit_that_is_lifted_is_lifted_at_once() {
    let engine = engine(1);
    let limited = start(&engine, config(LOOP, 10, Some(10)).await).await;
    after([&limited], ms(10)).await;
    limited.change_cpu(CpuShare { request: 10, limit: None });
    // By his limit of a millisecond in each period this would take a hundred seconds.
    after([&limited], ms(1000)).await;
    limited.change_cpu(CpuShare { request: 10, limit: Some(50) });
    after([&limited], ms(50)).await;
    let Usage { quota, .. } = limited.cpu();
    assert!(quota.periods >= 14 && quota.throttled_periods > 0, "{quota:?}");
}

// spec: RES-12
#[tokio::test]
async fn containers_of_a_pod_share_its_limit() {
    let engine = engine(2);
    let pod = engine.pod(CpuShare { request: 200, limit: Some(200) }, None);
    let mut containers = Vec::new();
    for request in [50, 150] {
        let mut config = config(LOOP, request, None).await;
        config.pod = Some(pod.clone());
        containers.push(start(&engine, config).await);
    }
    let all = [&containers[0], &containers[1]];
    let [first, second] = after(all, ms(400)).await;
    assert!(first > ms(20) && second > ms(20), "{first:?} {second:?}");
    let usage = pod.cpu();
    assert!(usage.quota.periods >= 17 && usage.quota.throttled_periods > 0, "{usage:?}");
    assert!(usage.cpu >= first + second);
    // The pod has used what they have, also when they are gone.
    containers.clear();
    assert!(pod.cpu().cpu >= usage.cpu);
}

#[tokio::test]
async fn what_is_started_in_a_container_computes_in_its_share() {
    let engine = engine(1);
    // The container itself sleeps; without an argument, that is.
    let body = "(if (call $has_argument) (then (loop $l (br $l)))) (call $sleep (i64.const 31536000))";
    let text = module(body).replace(
        "(memory (export",
        r#"(import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
        (func $has_argument (result i32)
            (drop (call $sizes (i32.const 0) (i32.const 4))) (i32.gt_u (i32.load (i32.const 0)) (i32.const 1)))
        (memory (export"#,
    );
    let mut config = ContainerConfig::new(image(&text).await);
    config.cpu = CpuShare { request: 100, limit: Some(100) };
    let container = start(&engine, config).await;
    let mut exec = container.exec(&["app".into(), "compute".into()]).await.expect("started");
    after([&container], ms(60)).await;
    let Usage { quota, .. } = container.cpu();
    assert!(quota.periods >= 4 && quota.throttled_periods > 0, "{quota:?}");
    exec.kill();
    assert_eq!(exec.wait().await.outcome, Outcome::Signal(9));
}

#[tokio::test]
async fn who_sleeps_costs_nothing() {
    let engine = engine(1);
    let busy = start(&engine, config(LOOP, 100, None).await).await;
    let asleep = start(&engine, config("(call $sleep (i64.const 31536000))", 100, None).await).await;
    // Once it is asleep, which may take a while.
    let mut before = Duration::ZERO;
    while before.is_zero() || asleep.cpu().cpu != before {
        before = asleep.cpu().cpu;
        after([&busy], ms(50)).await;
    }
    after([&busy], ms(300)).await;
    assert_eq!(asleep.cpu().cpu, before);
}
