//! The manifests of the seed documents that need nothing but a shell run as they stand.

use crate::husk::{FAILED, SUCCEEDED, TIMED_OUT, output, run, seed, start};

#[test]
fn the_command_line_job_greets_and_sleeps() {
    let mut run = start(&seed("hello-job.yaml"), &[]);
    run.wait_for_log("hello", "Hello, Kubernetes!");
    run.interrupt();
    let ended = run.finish();
    assert_eq!(ended.terminated("hello")["exitCode"], 143);
}

#[test]
fn the_data_processor_succeeds() {
    let ended = run(&seed("data-processor.yaml"), &[]);
    assert_eq!(ended.code, Some(SUCCEEDED), "{}", ended.stderr);
    assert_eq!(ended.log("processor"), ["Processing data..."]);
}

// spec: PHASE-05
#[test]
fn the_migration_task_fails_and_is_not_restarted() {
    let ended = run(&seed("migration-task.yaml"), &[]);
    assert_eq!(ended.code, Some(FAILED), "{}", ended.stderr);
    assert_eq!(ended.log("migrate"), ["Running migration..."]);
    assert_eq!(ended.container("migrate")["restartCount"], 0);
    assert_eq!(ended.phases().last(), Some(&"Failed"));
}

#[test]
fn the_on_failure_pod_keeps_the_container_that_is_tried_once_down() {
    let mut run = start(&seed("on-failure-pod.yaml"), &[]);
    let status = run.wait_for(|o| {
        let all = o["status"]["containerStatuses"].as_array();
        all.into_iter()
            .flatten()
            .any(|c| c["name"] == "try-once-container" && c["state"]["terminated"]["exitCode"] == 1)
    });
    assert_eq!(status["status"]["phase"], "Running");
    run.interrupt();
    let ended = run.finish();
    assert_eq!(ended.container("try-once-container")["restartCount"], 0);
    assert_eq!(ended.log("on-failure-container"), ["Keep restarting"]);
}

// spec: INIT-02
// spec: PHASE-07
#[test]
fn a_pod_fails_with_its_init_container_that_is_tried_once() {
    let ended = run(&seed("fail-pod-if-init-fails.yaml"), &[]);
    assert_eq!(ended.code, Some(FAILED), "{}", ended.stderr);
    assert_eq!(ended.phases(), ["Pending", "Failed"]);
    assert_eq!(ended.terminated("init-once")["exitCode"], 1);
    assert!(!ended.reasons("main-container").contains(&"Started"));
}

#[test]
fn restart_on_exit_codes_runs_until_time_is_up() {
    let ended = run(&seed("restart-on-exit-codes.yaml"), &["--timeout", "3s"]);
    assert_eq!(ended.code, Some(TIMED_OUT), "{}", ended.stderr);
    assert!(ended.reasons("restart-on-exit-codes").contains(&"Started"));
}

#[test]
fn the_ml_worker_is_taken_with_a_warning_about_its_spelling() {
    let checked = output(&["check", &seed("ml-worker.yaml").display().to_string()]);
    assert!(checked.status.success());
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(said.contains("warning") && said.contains("onExit"), "{said}");
    let mut run = start(&seed("ml-worker.yaml"), &[]);
    run.wait_for_log("main-application", "Application is running");
    run.interrupt();
    assert_eq!(run.finish().log("setup-environment"), ["Setting up environment"]);
}

// spec: SIDE-08
#[test]
fn the_deployment_with_a_log_shipping_sidecar_ships() {
    let mut run = start(&seed("deployment-sidecar.yaml"), &[]);
    run.wait_for_log("logshipper", "logging");
    run.wait_for_log("logshipper", "logging");
    run.interrupt();
    let ended = run.finish();
    assert!(ended.end("myapp") < ended.end("logshipper"));
}

// spec: SIDE-08
#[test]
fn the_job_with_a_log_shipping_sidecar_completes() {
    let ended = run(&seed("job-sidecar.yaml"), &[]);
    assert_eq!(ended.code, Some(SUCCEEDED), "{}", ended.stderr);
    assert_eq!(ended.phases().last(), Some(&"Succeeded"));
    assert_eq!(ended.terminated("myjob")["exitCode"], 0);
}
