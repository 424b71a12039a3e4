//! An agent with a folder of its own.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Answer, ask};
use crate::husk::command;

/// Two minutes of looks: nothing takes so long, and a test that waits longer is stuck.
const LOOKS: u32 = 4000;
const PAUSE: Duration = Duration::from_millis(30);
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

/// A folder with an agent, or between two of them.
pub(crate) struct World {
    folder: TempDir,
    agent: Option<Child>,
    /// More of its flags.
    pub(crate) more: Vec<String>,
    /// Its data folder.
    pub(crate) data: PathBuf,
    /// More of its environment.
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
    /// A command that begins it, if it needs one.
    pub(crate) under: &'static [&'static str],
}

impl World {
    /// An agent that has just begun.
    pub(crate) fn new(more: &[&str]) -> Self {
        let mut world = Self::without_agent(more);
        world.start();
        world
    }

    /// A place for one that begins later.
    pub(crate) fn without_agent(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("manifests")).expect("a folder");
        let (data, more) = (folder.path().join("data"), more.iter().map(|word| (*word).to_owned()).collect());
        Self { folder, agent: None, more, data, environment: Vec::new(), under: &[] }
    }

    /// An agent with a configuration file.
    pub(crate) fn configured(text: &str) -> Self {
        let mut world = Self::without_agent(&[]);
        world.configure(text);
        world.start();
        world
    }

    /// From its next look at it the agent has this configuration.
    pub(crate) fn configure(&mut self, text: &str) {
        let file = self.path("config.yaml");
        std::fs::write(&file, text).expect("written");
        if self.more.is_empty() {
            self.more = vec!["--config".into(), file.display().to_string()];
        }
    }

    /// Begins, or begins again, and answers from then on.
    pub(crate) fn start(&mut self) {
        self.launch();
        self.answers();
    }

    /// Waits until it answers.
    pub(crate) fn answers(&mut self) {
        self.until("the agent answers", |world| world.get("/version").filter(|answer| answer.code == 200));
    }

    /// The same without waiting.
    pub(crate) fn launch(&mut self) {
        let mut agent = under(self.under, command());
        agent.args(["agent", "--node-name", "edge-7", "--data-dir"]).arg(&self.data);
        agent.arg("--socket").arg(self.path("husk.sock")).arg("--static-pods").arg(self.path("manifests"));
        agent.args(&self.more);
        self.launch_as(agent);
    }

    /// Begins with a command that names everything itself.
    pub(crate) fn launch_as(&mut self, mut agent: Command) {
        let log = std::fs::File::options().create(true).append(true).open(self.path("log")).expect("a log");
        agent.envs(self.environment.iter().map(|(name, value)| (name, value)));
        agent.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.agent = Some(agent.spawn().expect("husk starts"));
    }

    /// Something in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The agent's process.
    pub(crate) fn pid(&self) -> u32 {
        self.agent.as_ref().expect("it runs").id()
    }

    /// What the agent has said for people.
    pub(crate) fn log(&self) -> String {
        let mut bytes = Vec::new();
        // The start of it: a device that never ends may be in its place.
        let read = std::fs::File::open(self.path("log")).and_then(|log| log.take(4 << 20).read_to_end(&mut bytes));
        read.map_or_else(|error| error.to_string(), |_| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// As a power cut does.
    pub(crate) fn kill(&mut self) {
        let mut agent = self.agent.take().expect("it runs");
        agent.kill().expect("it is killed");
        agent.wait().expect("it ends");
    }

    /// As a service manager does. Its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.signal("TERM");
        let mut agent = self.agent.take().expect("it runs");
        agent.wait().expect("it ends").code()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        let told = kill.arg(format!("-{name}")).arg(self.pid().to_string()).status().expect("kill runs");
        assert!(told.success());
    }

    /// Begins and ends by itself, as what can't work does. Its exit code.
    pub(crate) fn ends(&mut self) -> Option<i32> {
        self.launch();
        let mut agent = self.agent.take().expect("begun");
        for _ in 0..LOOKS {
            if let Some(status) = agent.try_wait().expect("it is ours") {
                return status.code();
            }
            std::thread::sleep(PAUSE);
        }
        self.agent = Some(agent);
        panic!("it runs, although it can't:\n{}", self.log());
    }

    /// The most memory that the agent has had so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of it");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    pub(crate) fn get(&self, path: &str) -> Option<Answer> {
        ask(&self.path("husk.sock"), "GET", path, None)
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        ask(&self.path("husk.sock"), method, path, Some(body)).expect("an answer")
    }

    /// A command of a client of this agent.
    pub(crate) fn husk(&self, arguments: &[&str]) -> Command {
        let mut command = command();
        command.args(arguments).env("HUSK_SOCKET", self.path("husk.sock")).stdin(Stdio::null());
        command
    }

    /// What a container has written so far.
    pub(crate) fn written_by(&self, pod: &str, container: &str) -> Option<String> {
        let log = self.get(&format!("{PODS}/{pod}/log?container={container}"))?;
        (log.code == 200).then_some(log.body)
    }

    /// Creates a pod of the namespace `default`.
    pub(crate) fn create(&self, name: &str, spec: &Value) -> Value {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        self.send("POST", PODS, &pod).ok()
    }

    /// What `husk` says as a client of the agent, which it does not fail to be.
    pub(crate) fn husk_says(&self, arguments: &[&str]) -> String {
        let output = self.husk(arguments).output().expect("husk starts");
        let [said, wrong] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(output.status.success(), "husk {arguments:?}: {wrong}");
        said
    }

    /// A pod, if it is there.
    pub(crate) fn pod(&self, name: &str) -> Option<Value> {
        let answer = self.get(&format!("{PODS}/{name}"))?;
        (answer.code != 404).then(|| answer.ok())
    }

    pub(crate) fn delete(&self, name: &str) {
        self.send("DELETE", &format!("{PODS}/{name}"), &json!({})).ok();
    }

    /// Waits for a pod to be so.
    pub(crate) fn pod_until(&mut self, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.until(name, |world| world.pod(name).filter(|pod| is_so(pod)))
    }

    pub(crate) fn running(&mut self, name: &str) -> Value {
        self.pod_until(name, |pod| pod["status"]["phase"] == "Running" && is_ready(pod))
    }

    /// Waits for an event of a pod that says this. Its message.
    pub(crate) fn event(&mut self, pod: &str, reason: &str, says: &str) -> String {
        self.until(&format!("{reason} of {pod}: {says}"), |world| {
            let events = world.get("/api/v1/namespaces/default/events")?.ok();
            let is_of_pod = |event: &&Value| event["involvedObject"]["name"] == pod && event["reason"] == reason;
            let mut messages = events["items"].as_array()?.iter().filter(is_of_pod).map(|event| &event["message"]);
            messages.find_map(|message| message.as_str().filter(|message| message.contains(says)).map(str::to_owned))
        })
    }

    pub(crate) fn gone(&mut self, name: &str) {
        self.until(&format!("{name} is gone"), |world| world.pod(name).is_none().then_some(()));
    }

    /// Waits for something.
    pub(crate) fn until<T>(&mut self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        for _ in 0..LOOKS {
            if let Some(seen) = look(self) {
                return seen;
            }
            if let Some(agent) = &mut self.agent
                && let Ok(Some(status)) = agent.try_wait()
            {
                panic!("the agent ended ({status}) before {what}:\n{}", self.log());
            }
            std::thread::sleep(PAUSE);
        }
        panic!("{what} never came:\n{}", self.log());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

/// A command, begun by another one.
fn under(first: &[&str], command: Command) -> Command {
    let [program, args @ ..] = first else { return command };
    let mut outer = Command::new(program);
    outer.args(args).arg(command.get_program());
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Restarts of the first container.
pub(crate) fn restarts(pod: &Value) -> i64 {
    pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap_or(0)
}

/// A pod that runs a script.
pub(crate) fn shell(script: &str) -> Value {
    json!({
        "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "app", "image": "busybox", "command": ["sh", "-c", script]}],
    })
}

/// Text of a module that sleeps for ever, with something that makes it another one.
pub(crate) fn sleeper(own: &str) -> String {
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 1024) {own:?})
  (func (export "_start")
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 3600000000000))
    (loop (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 128) (i32.const 192))) (br 0))))"#
    )
}
