//! `husk logs`: the output of containers.

use clap::Args;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::task::JoinSet;

use super::connection::{Agent, Ask, Connection};
use super::containers;
use super::duration::Span;
use super::exec::path;
use super::failure::Failure;
use super::output::{self, name_of};
use super::query::Query;
use super::resources::items;
use super::stream::Lines;
use super::target::{Namespace, Selectors, pod_named};

/// Of many pods only so many lines are shown, unless somebody says how many.
const TAIL_OF_MANY: i64 = 10;
const ALL: i64 = -1;

/// What `husk logs` is asked.
#[derive(Args, Debug)]
pub(crate) struct Logs {
    /// The pod: `web` or `pod/web`
    #[arg(value_name = "POD", required_unless_present = "selector")]
    pod: Option<String>,
    /// The container
    #[arg(value_name = "CONTAINER", conflicts_with = "container")]
    of: Option<String>,
    /// The container; by default the first of the pod, or the one that it names in an annotation
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// All containers of the pod
    #[arg(long, conflicts_with_all = ["container", "of"])]
    all_containers: bool,
    /// Go on as more is written
    #[arg(short, long)]
    follow: bool,
    /// Of the container's run before the present one
    #[arg(short, long)]
    previous: bool,
    /// The last lines only; -1 for all
    #[arg(long, value_name = "LINES", allow_negative_numbers = true)]
    tail: Option<i64>,
    /// Only what was written since so long ago, as in 5m
    #[arg(long, value_name = "TIME", conflicts_with = "since_time")]
    since: Option<Span>,
    /// Only what was written since that time, as in 2026-11-30T06:00:00Z
    #[arg(long, value_name = "TIME")]
    since_time: Option<String>,
    /// With the time before each line
    #[arg(long)]
    timestamps: bool,
    /// At most so many bytes
    #[arg(long, value_name = "BYTES")]
    limit_bytes: Option<u64>,
    /// With the pod and the container before each line
    #[arg(long)]
    prefix: bool,
    /// Follow at most so many logs at once
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    max_log_requests: usize,
    /// What can't be read doesn't end the others
    #[arg(long)]
    ignore_errors: bool,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    selectors: Selectors,
    #[command(flatten)]
    connection: Connection,
}

/// One log.
struct Log {
    pod: String,
    container: String,
}

impl Logs {
    /// Shows them.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let agent = self.connection.agent();
        let namespace = self.namespace.name();
        let pods = match &self.pod {
            Some(word) => {
                let name = pod_named(&agent, word).await?;
                let pod = agent.find(Ask::get(path(namespace, &name, ""))).await?;
                vec![pod.ok_or_else(|| {
                    Failure::Other(format!(
                        "error from server (NotFound): pods {name:?} not found in namespace {namespace:?}"
                    ))
                })?]
            }
            None => {
                let ask = Ask::get(format!("/api/v1/namespaces/{}/pods", super::query::encoded(namespace)));
                let list = agent.json(ask.query(self.selectors.query())).await?;
                items(&list["items"]).to_vec()
            }
        };
        if pods.is_empty() {
            crate::out::err(format_args!("No resources found in {namespace} namespace."));
        }
        let mut logs = Vec::new();
        for pod in &pods {
            logs.extend(self.of_pod(pod)?);
        }
        if !self.follow {
            for log in &logs {
                match self.copy(&agent, log).await {
                    Err(Failure::Server(status)) if self.ignore_errors => {
                        output::line(format_args!("error: {}", status.message))?;
                    }
                    result => result?,
                }
            }
            return Ok(());
        }
        if logs.len() > self.max_log_requests {
            return Err(Failure::Other(format!(
                "you are attempting to follow {} log streams, but maximum allowed concurrency is {}, use --max-log-requests to increase the limit",
                logs.len(),
                self.max_log_requests
            )));
        }
        let this = std::sync::Arc::new(self);
        let mut following = JoinSet::new();
        for log in logs {
            let (this, agent) = (this.clone(), agent.clone());
            following.spawn(async move { this.copy(&agent, &log).await });
        }
        while let Some(ended) = following.join_next().await {
            let ended = ended.map_err(Failure::other)?;
            match ended {
                Err(Failure::Server(status)) if this.ignore_errors => {
                    output::line(format_args!("error: {}", status.message))?;
                }
                result => result?,
            }
        }
        Ok(())
    }

    fn of_pod(&self, pod: &Value) -> Result<Vec<Log>, Failure> {
        let name = name_of(pod);
        let log = |container: &str| Log { pod: name.to_owned(), container: container.to_owned() };
        if self.all_containers {
            return Ok(containers::names(pod).into_iter().map(log).collect());
        }
        let named = self.container.as_deref().or(self.of.as_deref());
        match named {
            Some(named) if containers::names(pod).contains(&named) => Ok(vec![log(named)]),
            Some(named) => Err(Failure::Other(format!("container {named} is not valid for pod {name}"))),
            None => Ok(vec![log(containers::default(pod, false)?)]),
        }
    }

    async fn copy(&self, agent: &Agent, log: &Log) -> Result<(), Failure> {
        let is_many = self.selectors.selector.is_some();
        let tail = self.tail.unwrap_or(if is_many { TAIL_OF_MANY } else { ALL });
        let query = Query::default()
            .with("container", &log.container)
            .flag("follow", self.follow)
            .flag("previous", self.previous)
            .flag("timestamps", self.timestamps)
            .maybe("tailLines", (tail != ALL).then_some(tail))
            .maybe("sinceSeconds", self.since.map(Span::seconds))
            .maybe("sinceTime", self.since_time.as_deref())
            .maybe("limitBytes", self.limit_bytes);
        let ask = Ask::get(path(self.namespace.name(), &log.pod, "log")).query(query).accept("*/*");
        if self.prefix || (self.follow && is_many) || self.all_containers {
            let mut lines = Lines::of(agent, ask).await?;
            // Whole lines, so that those of several logs don't mix.
            while let Some(line) = lines.next().await? {
                let prefix = if self.prefix { format!("[pod/{}/{}] ", log.pod, log.container) } else { String::new() };
                let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
                output::bytes(&[prefix.as_bytes(), &line, end].concat())?;
            }
            return Ok(());
        }
        let mut body = agent.open(ask).await?.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Failure::Other(format!("the agent ended the connection: {error}")))?;
            if let Ok(data) = frame.into_data() {
                output::bytes(&data)?;
            }
        }
        Ok(())
    }
}
