//! An agent that is measured from outside: its process, and its API over the socket.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::run::target_dir;

/// The pods of the namespace in which everything is measured.
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between looks at something that takes long.
const LOOK: Duration = Duration::from_millis(100);

/// A folder with an agent.
pub(super) struct Device {
    husk: PathBuf,
    folder: PathBuf,
    agent: Option<Child>,
}

impl Device {
    /// One without any state; nothing runs yet. Compiled modules stay from one to the next.
    pub(super) fn new(husk: &Path) -> Result<Self> {
        let folder = target_dir().join("bench").join("device");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(folder.join("manifests"))?;
        Ok(Self { husk: husk.to_owned(), folder, agent: None })
    }

    /// Writes the manifest of a static pod, as one that has been there for long: the agent waits until a file that was just written
    /// changes no more.
    pub(super) fn static_pod(&self, name: &str, manifest: &Value) -> Result<()> {
        let path = self.folder.join("manifests").join(format!("{name}.json"));
        fs::write(&path, manifest.to_string())?;
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        Ok(fs::File::options().write(true).open(path)?.set_modified(long_ago)?)
    }

    /// Starts the agent, and returns how long it took until the API answered.
    pub(super) fn start(&mut self) -> Result<Duration> {
        self.start_under(&[])
    }

    /// The same by a command that starts another one, as `taskset` does.
    pub(super) fn start_under(&mut self, starter: &[&str]) -> Result<Duration> {
        let begun = Instant::now();
        let guests = target_dir().join("guests");
        let mut command = match starter {
            [] => Command::new(&self.husk),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&self.husk);
                command
            }
        };
        command.args(["agent", "--node-name", "bench", "--data-dir"]).arg(self.folder.join("data"));
        command.arg("--socket").arg(self.socket()).arg("--static-pods").arg(self.folder.join("manifests"));
        command.arg("--config").arg(self.config()?);
        for guest in ["pause", "crasher"] {
            command.arg("--image").arg(format!("{guest}={}", guests.join(format!("{guest}.wasm")).display()));
        }
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log"))?;
        let agent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.agent = Some(agent.with_context(|| self.husk.display().to_string())?);
        self.until(Duration::from_millis(1), |device| Ok(device.ask("GET", "/livez", None).is_ok().then_some(())))?;
        Ok(begun.elapsed())
    }

    /// As a power cut does.
    pub(super) fn kill(&mut self) -> Result<()> {
        if let Some(mut agent) = self.agent.take() {
            agent.kill()?;
            agent.wait()?;
        }
        Ok(())
    }

    /// Asks its API and returns the body of a good answer.
    pub(super) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<String> {
        self.ask_as(method, path, body, "application/json")
    }

    /// The same, with a body of another type.
    pub(super) fn ask_as(&self, method: &str, path: &str, body: Option<&Value>, media_type: &str) -> Result<String> {
        let mut stream = self.send(method, path, body, media_type)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8(answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        if !head.starts_with("HTTP/1.1 2") {
            bail!("{method} {path}: {}: {body}", head.lines().next().unwrap_or_default());
        }
        Ok(body.to_owned())
    }

    /// Begins a watch, whose answers are left to be read.
    pub(super) fn watch(&self, path: &str) -> Result<UnixStream> {
        self.send("GET", &format!("{path}?watch=1"), None, "application/json")
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>, media_type: &str) -> Result<UnixStream> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = UnixStream::connect(self.socket())?;
        // The end of the connection is the end of the answer.
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: husk\r\nConnection: close\r\nAccept: application/json\r\n\
             Content-Type: {media_type}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        Ok(stream)
    }

    /// Does that pod run, as the API says?
    pub(super) fn is_running(&self, name: &str) -> bool {
        let shown = self.ask("GET", &format!("{PODS}/{name}"), None);
        let pod = shown.ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
    }

    /// Waits until so many containers run.
    pub(super) fn until_running(&self, count: usize) -> Result<()> {
        let line = format!("kubelet_running_containers{{container_state=\"running\"}} {count}");
        self.until(LOOK, |device| {
            let figures = device.ask("GET", "/metrics", None)?;
            Ok(figures.lines().any(|figure| figure == line).then_some(()))
        })
    }

    /// Waits until a look finds what it looks for.
    pub(super) fn until<T>(&self, pause: Duration, look: impl Fn(&Self) -> Result<Option<T>>) -> Result<T> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            sleep(pause);
        }
        bail!("the agent does not come to it; its log is {}", self.folder.join("log").display())
    }

    /// Files that the agent has open.
    pub(super) fn open_files(&self) -> Result<usize> {
        let agent = self.agent.as_ref().context("no agent")?;
        Ok(fs::read_dir(format!("/proc/{}/fd", agent.id()))?.count())
    }

    /// A figure of a file of the kernel about the agent's process, as in `VmRSS` of `status`.
    pub(super) fn kernel_figure(&self, file: &str, name: &str) -> Result<u64> {
        let agent = self.agent.as_ref().context("no agent")?;
        let text = fs::read_to_string(format!("/proc/{}/{file}", agent.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let figure = line.and_then(|line| line.split_whitespace().next());
        figure.and_then(|figure| figure.parse().ok()).with_context(|| format!("no {name} in {file}"))
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("husk.sock")
    }

    fn config(&self) -> Result<PathBuf> {
        let path = self.folder.join("config.yaml");
        let cache = target_dir().join("bench").join("modules");
        let text = format!(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 2000\nhusk: {{cacheDir: '{}'}}\n",
            cache.display()
        );
        fs::write(&path, text)?;
        Ok(path)
    }
}

/// A pod whose container runs a guest that the agent knows by name.
pub(super) fn pod(name: &str, command: &[&str]) -> Value {
    let container = json!({"name": "app", "image": command[0], "command": command, "imagePullPolicy": "IfNotPresent"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}})
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
