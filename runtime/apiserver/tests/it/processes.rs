//! A small node: containers are processes of this machine.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use husk_apiserver::{
    ApiError, Attached, Backend, BoxFuture, Exit, Key, LogLine, LogSource, Objects, RESOURCES, Scope, Shared, Streams,
    Target,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};

/// The output of one container so far, and how much there is.
#[derive(Clone)]
struct Output(Arc<Kept>);

struct Kept {
    lines: Mutex<Vec<LogLine>>,
    /// How many there are, and whether there can be more.
    grown: watch::Sender<(usize, bool)>,
}

impl Output {
    fn new() -> Self {
        Self(Arc::new(Kept { lines: Mutex::default(), grown: watch::Sender::new((0, false)) }))
    }

    fn push(&self, text: String) {
        let mut lines = self.0.lines.lock().expect("a lock");
        lines.push(LogLine { time: Timestamp::now(), text: text.into(), partial: false });
        self.0.grown.send_replace((lines.len(), false));
    }

    fn close(&self) {
        self.0.grown.send_modify(|(_, is_closed)| *is_closed = true);
    }

    fn lines(&self, from: usize) -> Vec<LogLine> {
        self.0.lines.lock().expect("a lock")[from..].to_vec()
    }
}

pub(crate) struct Processes {
    objects: Objects,
    outputs: Mutex<HashMap<String, Output>>,
}

impl Processes {
    pub(crate) fn new(objects: Objects) -> Self {
        Self { objects, outputs: Mutex::default() }
    }

    /// Takes pods from the objects, as an agent does.
    pub(crate) async fn run(self: Arc<Self>) {
        let scope = pods();
        let mut changes = self.objects.watch(scope.clone(), 1).expect("a watch");
        let mut orders: HashMap<String, watch::Sender<Option<i64>>> = HashMap::new();
        loop {
            let change = changes.next().await.expect("a change");
            let pod = change.after.clone().or_else(|| change.before.clone()).expect("a pod");
            let uid = uid(&pod).to_owned();
            let is_gone = change.after.is_none();
            let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
            match orders.get(&uid) {
                Some(order) if is_gone => {
                    order.send_replace(Some(0));
                    orders.remove(&uid);
                }
                Some(order) => {
                    order.send_if_modified(|known| {
                        *known != grace && {
                            *known = grace;
                            true
                        }
                    });
                }
                None if is_gone || pod["spec"]["nodeName"].is_null() => {}
                None => {
                    let (order, orders_of_pod) = watch::channel(grace);
                    orders.insert(uid, order);
                    tokio::spawn(self.clone().pod(change.key.clone(), pod, orders_of_pod));
                }
            }
        }
    }

    /// The life of a pod with one container.
    async fn pod(self: Arc<Self>, key: Key, pod: Shared, mut end: watch::Receiver<Option<i64>>) {
        let container = &pod["spec"]["containers"][0];
        let name = container["name"].as_str().expect("a name").to_owned();
        let command: Vec<&str> =
            container["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let output = Output::new();
        self.outputs.lock().expect("a lock").insert(uid(&pod).to_owned(), output.clone());
        let Some((program, arguments)) = command.split_first() else { return };
        let mut child = piped(Command::new(program).args(arguments)).spawn().expect("a process");
        let reading = tokio::spawn(read_lines(child.stdout.take().expect("a pipe"), output.clone()));
        let running = json!({"running": {"startedAt": second()}});
        self.status(&key, &pod, "Running", &name, &running).await;
        let code = tokio::select! {
            status = child.wait() => status.ok().and_then(|status| status.code()),
            _ = end.wait_for(Option::is_some) => None,
        };
        let code = match code {
            Some(code) => code,
            None => stopped(&mut child, end).await,
        };
        let _ = reading.await;
        output.close();
        let reason = if code == 0 { "Completed" } else { "Error" };
        let ended =
            json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": second(), "finishedAt": second()}});
        self.status(&key, &pod, if code == 0 { "Succeeded" } else { "Failed" }, &name, &ended).await;
        // What is being deleted goes now.
        let is_deleted = |pod: &Shared| !pod["metadata"]["deletionTimestamp"].is_null();
        if self.objects.get(&key).await.expect("memory").as_ref().is_some_and(is_deleted) {
            self.objects.end(&key, uid(&pod)).await.expect("memory");
        }
    }

    async fn status(&self, key: &Key, pod: &Shared, phase: &str, container: &str, state: &Value) {
        let ready = phase == "Running";
        let condition = |kind: &str, is_true: bool| json!({"type": kind, "status": if is_true { "True" } else { "False" }, "lastTransitionTime": second()});
        let changed = self.objects.update(key, |object| {
            if object["metadata"]["uid"] != pod["metadata"]["uid"] {
                return false;
            }
            let status = &mut object["status"];
            status["phase"] = phase.into();
            status["podIP"] = "127.1.2.3".into();
            status["podIPs"] = json!([{"ip": "127.1.2.3"}]);
            status["startTime"] = second().into();
            let kept = status["conditions"].as_array().cloned().unwrap_or_default();
            let mut conditions = vec![condition("Ready", ready), condition("PodScheduled", true)];
            conditions.extend(kept.into_iter().filter(|c| c["type"] != "Ready" && c["type"] != "PodScheduled"));
            status["conditions"] = conditions.into();
            status["containerStatuses"] = json!([{
                "name": container, "image": "shell", "imageID": "", "ready": ready, "started": ready, "restartCount": 0, "resources": {},
                "state": state,
            }]);
            true
        });
        changed.await.expect("memory");
    }

    fn output(&self, target: Target<'_>) -> Result<Output, ApiError> {
        let outputs = self.outputs.lock().expect("a lock");
        outputs.get(target.uid()).cloned().ok_or_else(|| ApiError::internal("the pod is not here"))
    }
}

async fn stopped(child: &mut Child, mut end: watch::Receiver<Option<i64>>) -> i32 {
    let id = child.id().map(|id| id.to_string()).unwrap_or_default();
    let _ = Command::new("kill").arg(&id).status().await;
    loop {
        let grace = end.borrow_and_update().unwrap_or(0);
        let time = std::time::Duration::from_secs(grace.unsigned_abs());
        tokio::select! {
            status = child.wait() => return status.ok().and_then(|status| status.code()).unwrap_or(143),
            Ok(()) = end.changed() => {}
            () = tokio::time::sleep(time) => {
                let _ = child.kill().await;
                return 137;
            }
        }
    }
}

#[async_trait]
impl Backend for Processes {
    async fn logs(&self, target: Target<'_>, _previous: bool, follow: bool) -> Result<LogSource, ApiError> {
        let output = self.output(target)?;
        let lines = output.lines(0);
        let mut seen = lines.len();
        if !follow {
            return Ok(LogSource { lines, more: None });
        }
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(async move {
            let mut grown = output.0.grown.subscribe();
            loop {
                let (_, is_closed) = *grown.borrow_and_update();
                for line in output.lines(seen) {
                    seen += 1;
                    if sender.send(line).await.is_err() {
                        return;
                    }
                }
                if is_closed || grown.changed().await.is_err() {
                    return;
                }
            }
        });
        Ok(LogSource { lines, more: Some(receiver) })
    }

    async fn exec(
        &self,
        _target: Target<'_>,
        command: Vec<String>,
        _tty: bool,
        streams: Streams,
    ) -> Result<BoxFuture<Exit>, ApiError> {
        let (program, arguments) = command.split_first().expect("a command");
        let mut child = match piped(Command::new(program).args(arguments)).spawn() {
            Ok(child) => child,
            Err(error) => return Ok(Box::pin(async move { Exit::Failed(error.to_string()) })),
        };
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        if let (Some(mut input), Some(mut pipe)) = (streams.stdin, stdin) {
            tokio::spawn(async move {
                while let Some(bytes) = input.recv().await {
                    if pipe.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
            });
        }
        let out = tokio::spawn(carry(stdout.expect("a pipe"), streams.stdout));
        let err = tokio::spawn(carry(stderr.expect("a pipe"), streams.stderr));
        Ok(Box::pin(async move {
            let status = child.wait().await;
            let _ = (out.await, err.await);
            Exit::Code(status.ok().and_then(|status| status.code()).unwrap_or(137))
        }))
    }

    async fn attach(&self, target: Target<'_>, _tty: bool, streams: Streams) -> Result<Attached, ApiError> {
        let mut source = self.logs(target, false, true).await?;
        let exit = Box::pin(async move {
            let mut more = source.more.take().expect("it is followed");
            while let (Some(line), Some(stdout)) = (more.recv().await, &streams.stdout) {
                if stdout.send([&line.text[..], b"\n"].concat().into()).await.is_err() {
                    break;
                }
            }
            Exit::Code(0)
        });
        Ok(Attached { container_id: format!("test://{}", uid(target.pod)), exit })
    }
}

fn piped(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true)
}

async fn read_lines(pipe: impl tokio::io::AsyncRead + Unpin, output: Output) {
    let mut lines = BufReader::new(pipe).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        output.push(line);
    }
}

async fn carry(mut pipe: impl tokio::io::AsyncRead + Unpin, sender: Option<mpsc::Sender<Bytes>>) {
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        if let Some(sender) = &sender
            && sender.send(Bytes::copy_from_slice(&buffer[..count])).await.is_err()
        {
            return;
        }
    }
}

pub(crate) fn pods() -> Scope {
    RESOURCES.iter().find(|resource| resource.kind == "Pod").expect("pods").scope(None)
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().expect("a uid")
}

fn second() -> String {
    Timestamp::from_second(Timestamp::now().as_second()).expect("a time").to_string()
}
