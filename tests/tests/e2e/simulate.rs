//! `husk simulate`: the same decisions in virtual time.

use serde_json::Value;

use crate::husk::{BAD_INPUT, example, output};

fn simulate(manifest: &str, more: &[&str]) -> Value {
    let manifest = example(manifest).display().to_string();
    let played = output(&[&["simulate", &manifest, "-o", "json"], more].concat());
    assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
    serde_json::from_slice(&played.stdout).expect("JSON")
}

#[test]
fn a_crash_loop_backs_off_as_the_documents_say() {
    let scenario = example("crash-loop.scenario.yaml").display().to_string();
    let played = simulate("crash-loop.yaml", &["--scenario", &scenario]);
    let changes = played["changes"].as_array().expect("changes");
    let at = |what: &'static str| {
        let of = changes.iter().filter(move |c| c["kind"] == "state" && c["what"] == what);
        of.filter_map(|c| c["seconds"].as_f64()).collect::<Vec<_>>()
    };
    // Each attempt runs for 4 s: between the beginnings lie those and the delays 0, 10, 20, 40, 80, 160 s.
    let starts = at("ready");
    let between: Vec<i64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).round() as i64).collect();
    assert_eq!(between, [4, 14, 24, 44, 84, 164]);
    assert_eq!(played["phase"], "Succeeded");
    assert_eq!(played["containers"][0]["restartCount"], 6);
}

#[test]
fn the_picture_has_a_lane_for_each_container() {
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("day.svg").display().to_string();
    let scenario = example("day-in-the-life.scenario.yaml").display().to_string();
    simulate("day-in-the-life.yaml", &["--scenario", &scenario, "--svg", &picture]);
    let svg = std::fs::read_to_string(&picture).expect("a picture");
    for word in ["migrate", "log-shipper", "shop", "liveness", "OOMKilled", "Succeeded", "back-off", "delete", "</svg>"]
    {
        assert!(svg.contains(word), "no {word}");
    }
}

#[test]
fn equal_scenarios_give_equal_timelines() {
    let scenario = example("day-in-the-life.scenario.yaml").display().to_string();
    let play = || {
        let mut played = simulate("day-in-the-life.yaml", &["--scenario", &scenario]);
        // Messages of BackOff name the uid, which is new each time.
        for change in played["changes"].as_array_mut().expect("changes") {
            change["detail"] = Value::Null;
        }
        played
    };
    assert_eq!(play(), play());
}

#[test]
fn a_scenario_with_a_mistake_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("bad.yaml");
    std::fs::write(&scenario, "containers: {nobody: {}}").expect("written");
    let manifest = example("hello.yaml").display().to_string();
    let played = output(&["simulate", &manifest, "--scenario", &scenario.display().to_string()]);
    assert_eq!(played.status.code(), Some(BAD_INPUT));
    let said = String::from_utf8_lossy(&played.stderr);
    assert!(said.contains("bad.yaml") && said.contains("containers.nobody"), "{said}");
}
