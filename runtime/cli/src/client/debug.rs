//! `husk debug`: another container in a pod that runs.

use clap::Args;
use serde_json::{Value, json};

use super::connection::{Ask, Connection};
use super::exec::{attach, over, path, prompt_hint};
use super::failure::Failure;
use super::follow::until;
use super::output::line;
use super::process::Manner;
use super::resources::Resources;
use super::target::{Namespace, Target, pod_named};
use super::websocket::random;
use super::{containers, query::Query};

const PATCH: &str = "application/strategic-merge-patch+json";
/// As Kubernetes makes names: without vowels and what looks alike.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// What `husk debug` is asked.
#[derive(Args, Debug)]
pub(crate) struct Debug {
    /// The pod: `web` or `pod/web`
    #[arg(value_name = "POD")]
    pod: String,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// What is run
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Name of the new container
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// The container to look at
    #[arg(long, value_name = "CONTAINER")]
    target: Option<String>,
    /// Environment variables
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Always, IfNotPresent or Never
    #[arg(long, value_name = "POLICY")]
    image_pull_policy: Option<String>,
    /// The words after -- are arguments of the image's program
    #[arg(long)]
    arguments_only: bool,
    /// Pass on standard input
    #[arg(short = 'i', long)]
    stdin: bool,
    /// Give it a terminal
    #[arg(short, long)]
    tty: bool,
    /// Connect to it (default: with -i)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    attach: Option<bool>,
    /// Say nothing but what the process says
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    connection: Connection,
}

impl Debug {
    /// Starts it, and connects to it.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let agent = self.connection.agent();
        let namespace = self.namespace.name();
        let name = pod_named(&agent, &self.pod).await?;
        let pod = agent.json(Ask::get(path(namespace, &name, ""))).await?;
        let container = match &self.container {
            Some(container) => container.clone(),
            None => {
                let container = format!("debugger-{}", suffix());
                if !self.quiet {
                    line(format_args!("Defaulting debug container name to {container}."))?;
                }
                container
            }
        };
        if containers::names(&pod).contains(&container.as_str()) {
            return Err(Failure::Other(format!("container with name {container:?} already exists in pod {name}")));
        }
        let patch = json!({"spec": {"ephemeralContainers": [self.added(&container)?]}});
        let query = Query::default().with("fieldManager", "husk-debug");
        let ask = Ask {
            method: "PATCH",
            body: Some((PATCH, patch.to_string().into())),
            ..Ask::get(path(namespace, &name, "ephemeralcontainers"))
        };
        agent.json(ask.query(query)).await?;
        if !self.attach.unwrap_or(self.stdin) {
            return Ok(());
        }
        let pods = Resources::of(&agent).await?.of_kind("v1", "Pod");
        let pods = pods.ok_or_else(|| Failure::other("the server doesn't have pods"))?;
        let target = Target { resource: pods, name: Some(name.clone()) };
        let begun = until(&agent, &target, Some(namespace), |pod| {
            let Some(pod) = pod else {
                return Err(Failure::Other(format!("pod {name} was deleted before its container {container} started")));
            };
            let state = &containers::status(pod, &container)["state"];
            Ok(match (&state["running"], &state["terminated"]) {
                (Value::Object(_), _) => Some(None),
                (_, Value::Object(_)) => Some(Some(state["terminated"].clone())),
                _ => None,
            })
        });
        if let Some(ended) = begun.await? {
            return self.over(&agent, namespace, &name, &container, &ended).await;
        }
        let manner = Manner { stdin: self.stdin, tty: self.tty };
        if !self.quiet {
            prompt_hint(manner);
        }
        attach(&agent, namespace, &name, &container, manner).await
    }

    /// The container.
    fn added(&self, name: &str) -> Result<Value, Failure> {
        let mut container = json!({
            "name": name,
            "image": self.image,
            "terminationMessagePolicy": "File",
            "stdin": self.stdin,
            "tty": self.tty,
        });
        let words = if self.arguments_only { "args" } else { "command" };
        if !self.command.is_empty() {
            container[words] = json!(self.command);
        }
        if let Some(policy) = &self.image_pull_policy {
            container["imagePullPolicy"] = json!(policy);
        }
        if let Some(target) = &self.target {
            container["targetContainerName"] = json!(target);
        }
        let pair = |pair: &String| match pair.split_once('=') {
            Some((name, value)) => Ok(json!({"name": name, "value": value})),
            None => Err(Failure::Other(format!("invalid env {pair:?}: write NAME=VALUE"))),
        };
        let env: Vec<Value> = self.env.iter().map(pair).collect::<Result<_, _>>()?;
        if !env.is_empty() {
            container["env"] = env.into();
        }
        Ok(container)
    }

    /// It has ended before anybody could connect: what it said, and its code.
    async fn over(
        &self,
        agent: &super::connection::Agent,
        namespace: &str,
        pod: &str,
        container: &str,
        ended: &Value,
    ) -> Result<(), Failure> {
        let query = Query::default().with("container", container);
        let ask = Ask::get(path(namespace, pod, "log")).query(query).accept("*/*");
        let mut lines = super::stream::Lines::of(agent, ask).await?;
        while let Some(line) = lines.next().await? {
            super::output::bytes(&line)?;
        }
        over(container, ended)
    }
}

fn suffix() -> String {
    random().iter().take(5).map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}
