//! `husk exec` and `husk attach`: into containers.

use clap::Args;
use serde_json::Value;

use super::connection::{Agent, Ask, Connection};
use super::containers;
use super::failure::Failure;
use super::follow::until;
use super::output::text;
use super::process::{Manner, converse};
use super::query::{Query, encoded};
use super::resources::Resources;
use super::target::{Namespace, Target, pod_named};

/// What `husk exec` is asked.
#[derive(Args, Debug)]
pub(crate) struct Exec {
    /// The pod: `web` or `pod/web`
    #[arg(value_name = "POD")]
    pod: String,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    into: Entrance,
}

/// What `husk attach` is asked.
#[derive(Args, Debug)]
pub(crate) struct Attach {
    /// The pod: `web` or `pod/web`
    #[arg(value_name = "POD")]
    pod: String,
    #[command(flatten)]
    into: Entrance,
}

/// Into which container, and how.
#[derive(Args, Debug)]
struct Entrance {
    /// The container; by default the first of the pod, or the one that it names in an annotation
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Pass on standard input
    #[arg(short = 'i', long)]
    stdin: bool,
    /// Give it a terminal
    #[arg(short, long)]
    tty: bool,
    /// Say nothing but what the process says
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    connection: Connection,
}

impl Exec {
    /// Runs it; its exit code is ours.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let agent = self.into.connection.agent();
        let name = pod_named(&agent, &self.pod).await?;
        let container = self.into.container(&agent, &name).await?;
        let query = Query::default().with("container", container);
        let query = self.command.iter().fold(query, |query, word| query.with("command", word));
        let manner = Manner { stdin: self.into.stdin, tty: self.into.tty };
        converse(&agent, &path(self.into.namespace.name(), &name, "exec"), query, manner).await.map(drop)
    }
}

impl Attach {
    /// Connects; what the process exits with is our exit code.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let agent = self.into.connection.agent();
        let name = pod_named(&agent, &self.pod).await?;
        let container = self.into.container(&agent, &name).await?;
        let manner = Manner { stdin: self.into.stdin, tty: self.into.tty };
        if !self.into.quiet {
            prompt_hint(manner);
        }
        attach(&agent, self.into.namespace.name(), &name, &container, manner).await
    }
}

impl Entrance {
    async fn container(&self, agent: &Agent, name: &str) -> Result<String, Failure> {
        let pod = agent.json(Ask::get(path(self.namespace.name(), name, ""))).await?;
        let phase = text(&pod["status"]["phase"]);
        if ["Succeeded", "Failed"].contains(&phase) {
            return Err(Failure::Other(format!(
                "cannot exec into a container in a completed pod; current phase is {phase}"
            )));
        }
        match &self.container {
            // The server knows whether there is one of that name.
            Some(container) => Ok(container.clone()),
            None => Ok(containers::default(&pod, self.quiet)?.to_owned()),
        }
    }
}

/// Connects to a container's own process; what that exits with is our exit code.
pub(crate) async fn attach(
    agent: &Agent,
    namespace: &str,
    pod: &str,
    container: &str,
    manner: Manner,
) -> Result<(), Failure> {
    let query = Query::default().with("container", container);
    let process =
        converse(agent, &path(namespace, pod, "attach"), query, manner).await?.map_or(Value::Null, Value::from);
    // The server says only that it is over, as upstream's does: how is in the status.
    let pods = Resources::of(agent).await?.of_kind("v1", "Pod");
    let pods = pods.ok_or_else(|| Failure::other("the server doesn't have pods"))?;
    let target = Target { resource: pods, name: Some(pod.to_owned()) };
    let end = until(agent, &target, Some(namespace), |pod| {
        let Some(pod) = pod.filter(|_| !process.is_null()) else { return Ok(Some(Value::Null)) };
        let status = containers::status(pod, container);
        let mut ends = [&status["state"]["terminated"], &status["lastState"]["terminated"]].into_iter();
        let end = ends.find(|end| end["containerID"] == process).cloned();
        // It may be too long ago to be known.
        Ok(end.or_else(|| (status["containerID"] != process).then_some(Value::Null)))
    });
    let end = end.await?;
    if end.is_null() {
        crate::out::err(format_args!("container {container} has ended; its exit code isn't known"));
    }
    over(container, &end)
}

/// A container's process has ended like this, if that is known.
pub(crate) fn over(container: &str, end: &Value) -> Result<(), Failure> {
    match end["exitCode"].as_u64() {
        Some(0) | None => Ok(()),
        Some(code) => {
            crate::out::err(format_args!("container {container} has ended: {}", text(&end["reason"])));
            Err(Failure::Exit(u8::try_from(code).unwrap_or(1)))
        }
    }
}

/// A shell that waits looks like one that hangs.
pub(crate) fn prompt_hint(manner: Manner) {
    if manner.stdin && manner.tty {
        crate::out::err("If you don't see a command prompt, try pressing enter.");
    }
}

/// The path of a pod or of something below it.
pub(crate) fn path(namespace: &str, pod: &str, below: &str) -> String {
    let path = format!("/api/v1/namespaces/{}/pods/{}", encoded(namespace), encoded(pod));
    if below.is_empty() { path } else { format!("{path}/{below}") }
}
