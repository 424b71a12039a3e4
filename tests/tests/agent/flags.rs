//! Flags, environment and file: who wins, and how the log is written.

use serde_json::Value;

use crate::husk::command;
use crate::world::{World, shell};

#[test]
fn a_log_of_objects_is_objects_to_the_last_line() {
    let mut world = World::without_agent(&["--log-format", "json"]);
    // Of all kinds: what it warns about, what a reload says, the end.
    std::fs::write(world.path("manifests/bad.yaml"), "kind: [nonsense\n").expect("written");
    world.start();
    world.create("web", &shell("echo \"quotes\"; sleep 1000"));
    world.running("web");
    world.until("it has complained", |world| world.log().contains("bad.yaml").then_some(()));
    world.signal("HUP");
    world.until("it has looked", |world| world.log().contains("the configuration is as it was").then_some(()));
    assert_eq!(world.end(), Some(0), "{}", world.log());
    let log = world.log();
    for line in log.lines() {
        let said: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let level = said["level"].as_str().unwrap_or_default();
        assert!(["ERROR", "WARN", "INFO"].contains(&level), "{line}");
        assert!(said["timestamp"].is_string() && said["fields"]["message"].is_string(), "{line}");
    }
    assert!(log.contains(r#""level":"WARN""#) && log.contains(r#""message":"ready""#), "{log}");
}

#[test]
fn everything_can_be_said_by_the_environment_and_the_file() {
    let mut world = World::without_agent(&[]);
    let (own, data) = (world.path("data-of-the-file"), world.path("data-of-the-environment"));
    let (socket, pods) = (world.path("husk.sock"), world.path("manifests"));
    let of_file = |more: &str| {
        format!(
            "staticPodPath: {}\nhusk: {{nodeName: of-the-file, dataDir: {}{more}}}\n",
            pods.display(),
            own.display()
        )
    };
    let started = |world: &mut World, environment: &[(&str, &std::path::Path)], flags: &[&str]| {
        let mut agent = command();
        agent.arg("agent").env("HUSK_CONFIG", world.path("config.yaml")).args(flags);
        agent.envs(environment.iter().copied());
        world.launch_as(agent);
        world.answers();
    };
    let nodes = |world: &World| -> Vec<String> {
        let nodes = world.get("/api/v1/nodes").expect("an answer").ok();
        let names = nodes["items"].as_array().expect("nodes").iter().map(|node| node["metadata"]["name"].to_string());
        names.collect()
    };
    // All from the file, which the environment names.
    world.configure(&of_file(&format!(", socket: {}", socket.display())));
    std::fs::write(pods.join("beacon.yaml"), crate::static_pods::MANIFEST).expect("written");
    started(&mut world, &[], &[]);
    assert_eq!(nodes(&world), ["\"of-the-file\""]);
    assert!(own.join("state.redb").exists());
    world.running("beacon-of-the-file");
    world.end();
    // The environment wins over the file, and a flag over both.
    world.configure(&of_file(", socket: /nowhere/husk.sock"));
    started(&mut world, &[("HUSK_SOCKET", &socket), ("HUSK_DATA_DIR", &data)], &["--node-name", "of-the-flag"]);
    assert_eq!(nodes(&world), ["\"of-the-flag\""]);
    assert!(data.join("state.redb").exists());
    world.running("beacon-of-the-flag");
    world.end();
    let flags = ["--socket", &socket.display().to_string(), "--data-dir", &world.data.display().to_string()];
    let nowhere = std::path::Path::new("/nowhere/at/all");
    started(&mut world, &[("HUSK_SOCKET", nowhere), ("HUSK_DATA_DIR", nowhere)], &flags);
    assert!(world.data.join("state.redb").exists());
    assert_eq!(world.end(), Some(0), "{}", world.log());
}
