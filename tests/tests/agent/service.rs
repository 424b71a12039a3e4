//! The agent as a service of systemd: what it tells it, and the unit that `husk install` writes.

use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::husk::{BAD_INPUT, command, output};
use crate::world::{World, shell};

/// Nothing takes so long.
const STUCK: Duration = Duration::from_secs(60);

/// systemd, as far as the agent knows it. It reads all the time: who tells it something waits for that.
struct Manager(Receiver<String>);

impl Manager {
    fn of(world: &mut World, watchdog: &str) -> Self {
        let path = world.path("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        world.environment = vec![("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", watchdog.into())];
        let (sender, told) = channel();
        std::thread::spawn(move || {
            let mut message = [0; 256];
            while let Ok(length) = socket.recv(&mut message)
                && sender.send(String::from_utf8_lossy(&message[..length]).trim_end().to_owned()).is_ok()
            {}
        });
        Self(told)
    }

    /// What it is told next.
    fn told(&self) -> String {
        self.0.recv_timeout(STUCK).expect("it is told something")
    }

    /// What it was told so far.
    fn heard(&self) -> Vec<String> {
        self.0.try_iter().collect()
    }
}

#[test]
fn systemd_is_told_that_it_is_ready_well_and_ending() {
    let mut world = World::without_agent(&[]);
    let manager = Manager::of(&mut world, "300000");
    world.launch();
    assert_eq!(manager.told(), "READY=1");
    assert_eq!(world.get("/readyz").map(|answer| answer.code), Some(200), "it is: it answers");
    for _ in 0..5 {
        assert_eq!(manager.told(), "WATCHDOG=1");
    }
    let mut slow = shell("trap 'sleep 2; exit 0' TERM; while true; do sleep 1; done");
    slow["terminationGracePeriodSeconds"] = 20.into();
    world.create("slow", &slow);
    world.running("slow");
    // It reloads without stopping: nothing of that concerns systemd.
    world.signal("HUP");
    world.until("it has looked", |world| world.log().contains("the configuration is as it was").then_some(()));
    assert!(manager.heard().iter().all(|told| told == "WATCHDOG=1"));
    world.signal("TERM");
    while manager.told() != "STOPPING=1" {}
    // It still lives while its pods end.
    assert_eq!(manager.told(), "WATCHDOG=1");
    assert_eq!(world.end(), Some(0), "{}", world.log());
}

#[test]
fn without_a_watchdog_nobody_is_fed() {
    let mut world = World::without_agent(&[]);
    let manager = Manager::of(&mut world, "");
    world.start();
    assert_eq!(manager.told(), "READY=1");
    assert_eq!(world.end(), Some(0));
    assert_eq!(manager.told(), "STOPPING=1");
}

#[test]
fn an_agent_that_hangs_does_not_say_that_it_is_well() {
    let mut world = World::without_agent(&[]);
    let manager = Manager::of(&mut world, "300000");
    world.start();
    assert_eq!(manager.told(), "READY=1");
    assert_eq!(manager.told(), "WATCHDOG=1");
    world.signal("STOP");
    // What it said before may still come.
    while manager.0.recv_timeout(Duration::from_secs(1)).is_ok() {}
    world.signal("CONT");
    assert_eq!(manager.told(), "WATCHDOG=1");
}

#[test]
fn what_is_installed_is_a_unit_that_starts_the_agent() {
    let mut world = World::without_agent(&[]);
    world.configure("husk: {nodeName: installed}\n");
    let (units, config) = (world.path("my units"), world.path("config.yaml").display().to_string());
    let folder = units.display().to_string();
    let install = output(&["install", "--units", &folder, "--config", &config]);
    let said = String::from_utf8_lossy(&install.stdout).into_owned();
    assert!(install.status.success(), "{install:?}");
    let unit = units.join("husk.service");
    assert!(said.contains(&format!("wrote {}\n", unit.display())) && said.contains("enable --now husk"), "{said}");
    let text = std::fs::read_to_string(&unit).expect("it was written");
    let printed = output(&["install", "--print", "--config", &config]).stdout;
    assert_eq!(text, String::from_utf8_lossy(&printed));
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output() {
        Ok(verified) => {
            let complaints = String::from_utf8_lossy(&verified.stderr).into_owned();
            let about_it: Vec<&str> = complaints.lines().filter(|line| line.contains("husk")).collect();
            assert!(verified.status.success() && about_it.is_empty(), "{complaints}");
        }
        Err(error) => eprintln!("SKIPPED: systemd-analyze ({error}), so that nobody has looked at the unit"),
    }
    // What it starts is an agent.
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
    let mut words = line.split(' ');
    let mut agent = Command::new(words.next().expect("a program"));
    agent.args(words).env("HUSK_SOCKET", world.path("husk.sock")).env("HUSK_DATA_DIR", &world.data);
    world.launch_as(agent);
    world.answers();
    assert_eq!(world.get("/api/v1/nodes/installed").expect("an answer").code, 200);
    assert_eq!(world.end(), Some(0), "{}", world.log());
}

#[test]
fn a_mistake_in_the_configuration_is_told_before_anything_is_installed() {
    let mut world = World::without_agent(&[]);
    world.configure("maxPods: many\n");
    let mut install = command();
    install.args(["install", "--units"]).arg(world.path("units")).arg("--config").arg(world.path("config.yaml"));
    let refused = install.output().expect("husk starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(BAD_INPUT), "{said}");
    assert!(said.contains("config.yaml") && said.contains("maxPods"), "{said}");
    assert!(!world.path("units").exists());
}
