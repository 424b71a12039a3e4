//! Termination messages of real containers.

use serde_json::Value;

use crate::husk::{Ended, run_text};

/// A pod whose containers run these scripts, with more fields.
fn pod(containers: &[(&str, &str, &str)]) -> String {
    let container = |(name, script, more): &(&str, &str, &str)| {
        format!("  - {{name: {name}, image: busybox, command: [sh, -c, {script:?}]{more}}}\n")
    };
    let containers: String = containers.iter().map(container).collect();
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: words}}\nspec:\n  restartPolicy: Never\n  \
         volumes: [{{name: data, emptyDir: {{}}}}]\n  containers:\n{containers}"
    )
}

fn message(ended: &Ended, name: &str) -> String {
    ended.terminated(name)["message"].as_str().unwrap_or_default().to_owned()
}

const FALLBACK: &str = ", terminationMessagePolicy: FallbackToLogsOnError";

// spec: STATE-06
// spec: EDGE-25
#[test]
fn edge_25_a_message_is_the_end_of_the_file_or_of_the_log() {
    let many = "n=0; while [ $n -lt 500 ]; do echo \"$n 0123456789\"; n=$((n+1)); done";
    let file = format!("({many}) > /dev/termination-log; {many}; exit 1");
    let ended = run_text(&pod(&[("file", &file, FALLBACK), ("log", &format!("{many}; exit 1"), FALLBACK)]), &[]);
    let whole: String = (0..500).map(|n| format!("{n} 0123456789\n")).collect();
    assert_eq!(message(&ended, "file"), whole[whole.len() - 4096..]);
    let lines: String = (420..500).map(|n| format!("{n} 0123456789\n")).collect();
    assert!(lines.len() < 2048);
    assert_eq!(message(&ended, "log"), lines);
}

// spec: STATE-06
// spec: EDGE-25
#[test]
fn edge_25_the_log_stands_for_an_empty_file_of_a_failure_only() {
    let ended = run_text(
        &pod(&[
            ("failed", "echo said; exit 1", FALLBACK),
            ("well", "echo said", FALLBACK),
            ("plain", "echo said; exit 1", ""),
            ("both", "echo said; echo written > /dev/termination-log; exit 1", FALLBACK),
            ("succeeded", "echo written > /dev/termination-log", ""),
        ]),
        &[],
    );
    let messages = ["failed", "well", "plain", "both", "succeeded"].map(|name| message(&ended, name));
    assert_eq!(messages, ["said\n", "", "", "written\n", "written\n"]);
}

// spec: STATE-06
#[test]
fn a_message_is_written_wherever_its_path_leads() {
    let at = |path: &str, more: &str| format!(", terminationMessagePath: {path}{more}");
    let data = ", volumeMounts: [{name: data, mountPath: /data}]";
    let read_only = ", securityContext: {readOnlyRootFilesystem: true}";
    let ended = run_text(
        &pod(&[
            ("deep", "echo deep > /var/log/words; exit 1", &at("/var/log/words", "")),
            ("root", "echo root > /words", &at("/words", "")),
            ("volume", "echo left > /data/other; echo volume > /data/words", &at("/data/words", data)),
            ("readonly", "echo x > /x || echo readonly > /dev/termination-log", read_only),
            ("none", "echo x > /dev/termination-log", &at("/elsewhere", "")),
            ("removed", "rm /dev/termination-log", ""),
            ("folder", "rm /dev/termination-log; mkdir /dev/termination-log", ""),
        ]),
        &[],
    );
    let names = ["deep", "root", "volume", "readonly", "none", "removed", "folder"];
    let messages = names.map(|name| message(&ended, name));
    assert_eq!(messages, ["deep\n", "root\n", "volume\n", "readonly\n", "", "", ""], "{}", ended.stderr);
}

// spec: STATE-06
#[test]
fn each_instance_begins_with_an_empty_file_and_says_for_itself() {
    // The volume outlives the instance, and so would a message in it.
    let manifest = "
apiVersion: v1
kind: Pod
metadata: {name: words}
spec:
  restartPolicy: OnFailure
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - name: app
    image: busybox
    command: [sh, -c, '[ -e /data/second ] && { echo again; exit 0; }; touch /data/second; echo first > /data/words; exit 3']
    terminationMessagePath: /data/words
    volumeMounts: [{name: data, mountPath: /data}]
  - name: log
    image: busybox
    command: [sh, -c, '[ -e /data/third ] && exit 0; touch /data/third; echo only mine; exit 3']
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts: [{name: data, mountPath: /data}]
";
    let ended = run_text(manifest, &[]);
    for (name, first) in [("app", "first\n"), ("log", "only mine\n")] {
        let container = ended.container(name);
        assert_eq!(container["lastState"]["terminated"]["message"], first, "{container}");
        assert_eq!(container["state"]["terminated"]["message"], Value::Null, "{container}");
    }
}

// spec: STATE-06
#[test]
fn the_messages_of_a_pod_share_what_it_may_have() {
    let many = "n=0; while [ $n -lt 400 ]; do echo \"$n 0123456789\"; n=$((n+1)); done > /dev/termination-log";
    let ended = run_text(&pod(&["a", "b", "c", "d"].map(|name| (name, many, ""))), &[]);
    let whole: String = (0..400).map(|n| format!("{n} 0123456789\n")).collect();
    let kept = &whole[whole.len() - 4096..];
    for name in ["a", "b", "c", "d"] {
        assert_eq!(message(&ended, name), kept[..12 * 1024 / 4], "{name}");
    }
}

// spec: STATE-06
#[test]
fn what_a_volume_has_in_its_place_is_no_message_and_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("termination-log");
    std::fs::write(&file, "of the host").expect("written");
    let manifest = |host: &str, command: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: words}}\nspec:\n  restartPolicy: Never\n  \
             volumes: [{{name: dev, hostPath: {{path: {host}}}}}]\n  containers:\n  - name: app\n    image: busybox\n    \
             command: [sh, -c, '{command}']\n    volumeMounts: [{{name: dev, mountPath: /dev}}]\n"
        )
    };
    let host = folder.path().display().to_string();
    let silent = run_text(&manifest(&host, "exit 3"), &[]);
    assert_eq!(silent.terminated("app")["message"], Value::Null);
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "of the host");
    let speaks = run_text(&manifest(&host, "echo said > /dev/termination-log; exit 3"), &[]);
    assert_eq!(speaks.terminated("app")["message"], "said\n");
    // Nothing can be made there, and that keeps nobody from running.
    let nowhere = run_text(&manifest("/proc/self", "exit 3"), &[]);
    assert_eq!(nowhere.terminated("app")["exitCode"], 3);
}
