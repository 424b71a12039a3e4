//! `husk top`: what pods and the node use, if the agent measures it.

use clap::{Args, Subcommand};
use husk_core::quantity::Quantity;
use serde_json::Value;

use super::choice::nothing_in;
use super::connection::{Ask, Connection};
use super::failure::Failure;
use super::output::{name_of, text};
use super::query::{Query, encoded};
use super::resources::items;
use super::table::{Columns, cell};
use super::target::Namespace;

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
const MEBI: i128 = 1 << 20;

/// What `husk top` is asked.
#[derive(Args, Debug)]
pub(crate) struct Top {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Of pods
    #[command(visible_alias = "pods", alias = "po")]
    Pod {
        /// The pod; all of the namespace if none is named
        name: Option<String>,
        /// Of each container
        #[arg(long)]
        containers: bool,
        /// Only pods with these labels
        #[arg(short = 'l', long, value_name = "LABELS")]
        selector: Option<String>,
        #[command(flatten)]
        namespace: Namespace,
        /// In all namespaces
        #[arg(short = 'A', long)]
        all_namespaces: bool,
        /// Without the line above the table
        #[arg(long)]
        no_headers: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// Of the node
    #[command(visible_alias = "nodes", alias = "no")]
    Node {
        /// The node
        name: Option<String>,
        /// Without the line above the table
        #[arg(long)]
        no_headers: bool,
        #[command(flatten)]
        connection: Connection,
    },
}

/// Nothing is shown that wasn't measured.
fn missing(error: Failure) -> Failure {
    match error {
        Failure::Server(status) if status.code == 404 && !status.message.contains('"') => {
            Failure::other("Metrics API not available: this agent doesn't measure what pods use")
        }
        error => error,
    }
}

impl Top {
    /// Shows it.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Pod { name, containers, selector, namespace, all_namespaces, no_headers, connection } => {
                let agent = connection.agent();
                let scope = match all_namespaces {
                    true => format!("{METRICS}/pods"),
                    false => format!("{METRICS}/namespaces/{}/pods", encoded(namespace.name())),
                };
                let path = name.as_deref().map_or_else(|| scope.clone(), |name| format!("{scope}/{}", encoded(name)));
                let ask = Ask::get(path).query(Query::default().maybe("labelSelector", selector));
                let answer = agent.json(ask).await.map_err(missing)?;
                let pods = if name.is_some() { std::slice::from_ref(&answer) } else { items(&answer["items"]) };
                if pods.is_empty() {
                    crate::out::err(format_args!("{}", nothing_in((!all_namespaces).then(|| namespace.name()))));
                    return Ok(());
                }
                let mut header = vec!["NAMESPACE", "POD", "NAME", "CPU(cores)", "MEMORY(bytes)"];
                header.retain(|column| match *column {
                    "NAMESPACE" => all_namespaces,
                    "POD" => containers,
                    _ => true,
                });
                let mut rows: Vec<Vec<String>> = Vec::new();
                if !no_headers {
                    rows.push(header.into_iter().map(str::to_owned).collect());
                }
                for pod in pods {
                    let namespace = all_namespaces.then(|| cell(text(&pod["metadata"]["namespace"])));
                    let list = items(&pod["containers"]);
                    if containers {
                        for container in list {
                            let mut row: Vec<String> = namespace.iter().cloned().collect();
                            row.extend([cell(name_of(pod)), cell(text(&container["name"]))]);
                            row.extend(usage([&container["usage"]]));
                            rows.push(row);
                        }
                    } else {
                        let mut row: Vec<String> = namespace.into_iter().collect();
                        row.push(cell(name_of(pod)));
                        row.extend(usage(list.iter().map(|container| &container["usage"])));
                        rows.push(row);
                    }
                }
                Columns::default().write(&rows)
            }
            What::Node { name, no_headers, connection } => {
                let agent = connection.agent();
                let path = name
                    .as_deref()
                    .map_or_else(|| format!("{METRICS}/nodes"), |name| format!("{METRICS}/nodes/{}", encoded(name)));
                let answer = agent.json(Ask::get(path)).await.map_err(missing)?;
                let nodes = if name.is_some() { std::slice::from_ref(&answer) } else { items(&answer["items"]) };
                let mut rows: Vec<Vec<String>> = Vec::new();
                if !no_headers {
                    let header = ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"];
                    rows.push(header.map(str::to_owned).to_vec());
                }
                for metrics in nodes {
                    let node = agent.json(Ask::get(format!("/api/v1/nodes/{}", encoded(name_of(metrics))))).await?;
                    let [cpu, memory] = usage([&metrics["usage"]]);
                    let share =
                        |resource: &str| share(&metrics["usage"][resource], &node["status"]["allocatable"][resource]);
                    rows.push(vec![cell(name_of(metrics)), cpu, share("cpu"), memory, share("memory")]);
                }
                Columns::default().write(&rows)
            }
        }
    }
}

fn milli(quantity: &Value) -> i128 {
    Quantity::parse(text(quantity)).map(|quantity| quantity.milli_value().into()).unwrap_or_default()
}

/// CPU and memory, as `kubectl top` writes them.
fn usage<'a>(usages: impl IntoIterator<Item = &'a Value>) -> [String; 2] {
    let (mut cpu, mut memory) = (0, 0);
    for usage in usages {
        cpu += milli(&usage["cpu"]);
        memory += milli(&usage["memory"]);
    }
    [format!("{cpu}m"), format!("{}Mi", memory / 1000 / MEBI)]
}

fn share(used: &Value, of: &Value) -> String {
    match milli(of) {
        0 => "<unknown>".into(),
        of => format!("{}%", milli(used) * 100 / of),
    }
}
