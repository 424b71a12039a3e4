//! Exit codes and traps.

use husk_core::io::{Outcome, Trap};
use husk_engine::{ContainerConfig, Log};

use crate::support::{engine, image, module, run, run_text, start};

fn component(imports: &str, body: &str) -> String {
    format!(
        r#"(component
            {imports}
            (core func $exit (canon lower (func $exit-interface "exit-with-code")))
            (core module $m
                (import "" "exit" (func $exit (param i32)))
                (func (export "run") (result i32) {body}))
            (core instance $i (instantiate $m (with "" (instance (export "exit" (func $exit))))))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance (export "wasi:cli/run@0.2.0") (export "run" (func $run))))"#
    )
}

const EXIT: &str = r#"(import "wasi:cli/exit@0.2.12" (instance $exit-interface
    (export "exit-with-code" (func (param "status-code" u8)))))"#;

// spec: STATE-07
#[tokio::test]
async fn exit_codes_of_modules_are_exact() {
    for code in [0, 1, 42, 125, 126, 127, 128, 137, 255, 256, -1] {
        assert_eq!(run(&format!("(call $exit (i32.const {code}))")).await, Outcome::Code(code));
    }
    assert_eq!(run("").await, Outcome::Code(0));
}

// spec: STATE-07
#[tokio::test]
async fn exit_codes_of_components_are_exact() {
    for code in [0, 1, 42, 255] {
        let body = format!("(call $exit (i32.const {code})) (i32.const 0)");
        assert_eq!(run_text(&component(EXIT, &body)).await, Outcome::Code(code));
    }
    for (result, code) in [(0, 0), (1, 1)] {
        assert_eq!(run_text(&component(EXIT, &format!("(i32.const {result})"))).await, Outcome::Code(code));
    }
    assert_eq!(run_text(&component(EXIT, "unreachable")).await, Outcome::Trap(Trap::Unreachable));
}

// spec: STATE-07
#[tokio::test]
async fn traps_keep_their_kind() {
    let cases = [
        ("unreachable", Trap::Unreachable),
        ("(drop (i32.div_s (i32.const 1) (i32.const 0)))", Trap::Arithmetic),
        ("(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))", Trap::Arithmetic),
        ("(drop (i32.trunc_f32_s (f32.const nan)))", Trap::Arithmetic),
        ("(drop (i32.load (i32.const -4)))", Trap::Fault),
        ("(call_indirect (i32.const 0))", Trap::Fault),
        ("(call_indirect (i32.const 7))", Trap::Fault),
        ("(drop (call $recurse (i64.const 0)))", Trap::Fault),
    ];
    for (body, expected) in cases {
        assert_eq!(run(body).await, Outcome::Trap(expected), "{body}");
    }
}

// spec: STATE-07
#[tokio::test]
async fn a_fuel_budget_ends_the_guest_that_used_it_up() {
    let mut config = ContainerConfig::new(image(&module("(loop $l (br $l))")).await);
    config.fuel_budget = Some(3_000_000);
    let (container, _) = start(config).await;
    assert_eq!(container.wait().await, Outcome::Trap(Trap::OutOfFuel));
}

#[tokio::test]
async fn a_trap_is_told_in_words() {
    let (container, _) = start(ContainerConfig::new(image(&module("unreachable")).await)).await;
    container.wait().await;
    let detail = container.detail().expect("detail");
    assert!(detail.contains("unreachable"), "{detail}");
}

#[tokio::test]
async fn a_guest_runs_once_its_container_is_started() {
    let config = ContainerConfig::new(image(&module("(call $exit (i32.const 3))")).await);
    let created = engine().create(config.clone(), Log::default()).await.expect("created");
    // Another one that is made and started after it.
    assert_eq!(start(config.clone()).await.0.wait().await, Outcome::Code(3));
    assert_eq!(created.outcome(), None);
    created.start();
    assert_eq!(created.wait().await, Outcome::Code(3));
    let killed = engine().create(config, Log::default()).await.expect("created");
    killed.kill();
    killed.start();
    assert_eq!(killed.wait().await, Outcome::Signal(9));
}
