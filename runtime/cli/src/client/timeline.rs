//! `husk timeline`: what really happened to a pod.

use std::path::PathBuf;

use clap::Args;
use husk_sim::Span as Shown;
use husk_timeline::{Document, Timeline};

use super::connection::{Ask, Connection};
use super::duration::Span;
use super::exec::path;
use super::failure::Failure;
use super::output;
use super::query::Query;
use super::target::{Namespace, pod_named};
use crate::timeline::clock::local;
use crate::timeline::{Output, svg, table};

/// What `husk timeline` is asked.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The pod: `web` or `pod/web`; it may be gone
    #[arg(value_name = "POD")]
    pod: String,
    /// Of the pod that had this name before
    #[arg(short, long)]
    previous: bool,
    /// Only what happened since so long ago, as in 5m
    #[arg(long, value_name = "TIME")]
    since: Option<Span>,
    /// Draw a picture: a lane for each container
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// How the timeline is printed
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    output: Output,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    connection: Connection,
}

impl Show {
    /// Prints and draws.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let agent = self.connection.agent();
        let name = pod_named(&agent, &self.pod).await?;
        let query = Query::default().flag("previous", self.previous);
        let document = agent.json(Ask::get(path(self.namespace.name(), &name, "timeline")).query(query)).await?;
        let document: Document = serde_json::from_value(document).map_err(Failure::other)?;
        let mut timeline = document.timeline().map_err(Failure::other)?;
        if let Some(since) = self.since {
            let ago = since.or_forever().ok_or_else(|| Failure::other("--since needs a time, as in 5m"))?;
            let end = timeline.over.unwrap_or(timeline.end);
            timeline = timeline.since(husk_core::Instant::ZERO + end.since_epoch().saturating_sub(ago));
        }
        match self.output {
            Output::Table => output::line(table::table(&timeline).trim_end_matches('\n'))?,
            Output::Json => {
                let json = serde_json::to_string_pretty(&Document::of(&timeline)).map_err(Failure::other)?;
                output::line(json)?;
            }
            Output::None => {}
        }
        if let Some(path) = &self.svg {
            let written = std::fs::write(path, svg::draw(&timeline, &about(&timeline)));
            written.map_err(|error| Failure::Other(format!("can't write the picture {}: {error}", path.display())))?;
        }
        Ok(())
    }
}

/// The line under the picture's title.
fn about(timeline: &Timeline) -> String {
    let mut parts = Vec::new();
    parts.extend(timeline.start.map(|start| format!("from {}", local(start))));
    parts.push(format!("{} of real time", Shown(timeline.duration())));
    let restarts: u32 = timeline.lanes.iter().map(|lane| lane.restarts).sum();
    parts.push(format!("{restarts} restart{}", if restarts == 1 { "" } else { "s" }));
    parts.join("  ·  ")
}
