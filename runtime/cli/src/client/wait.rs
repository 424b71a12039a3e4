//! `husk wait`: until objects are as they are wanted.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::choice::{Choice, Placed};
use super::connection::{Agent, Connection};
use super::duration::{Span, within};
use super::failure::{Failure, each};
use super::files::named;
use super::follow::{until, until_gone};
use super::jsonpath::{self, JsonPath};
use super::output::{line, text};
use super::resources::items;
use super::target::Target;

/// What a negative time means.
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What `husk wait` is asked.
#[derive(Args, Debug)]
pub(crate) struct Wait {
    #[command(flatten)]
    choice: Choice,
    /// condition=Ready, condition=Ready=False, jsonpath='{.status.phase}'=Running, create, delete
    #[arg(long = "for", value_name = "WHAT", value_parser = Wanted::parse)]
    wanted: Wanted,
    /// All of them
    #[arg(long)]
    all: bool,
    /// Wait no longer; 0 looks once, less than 0 is a week
    #[arg(long, value_name = "TIME", default_value = "30s", allow_hyphen_values = true)]
    timeout: Span,
    #[command(flatten)]
    connection: Connection,
}

/// What is waited for.
#[derive(Clone, Debug)]
enum Wanted {
    Condition { kind: String, status: String },
    JsonPath { path: JsonPath, value: Option<String> },
    Create,
    Delete,
}

/// That it is as it is wanted.
enum Met {
    Now,
    /// There was nothing to wait for.
    Before,
}

impl Wanted {
    fn parse(text: &str) -> Result<Self, String> {
        let unquoted = |text: &str| text.trim_matches(['\'', '"']).to_owned();
        if let Some(condition) = text.strip_prefix("condition=") {
            let (kind, status) = condition.split_once('=').unwrap_or((condition, "true"));
            return Ok(Self::Condition { kind: kind.into(), status: unquoted(status) });
        }
        if let Some(rest) = text.strip_prefix("jsonpath=") {
            // The path may have equals signs of its own, in filters.
            let end =
                rest.rfind('}').ok_or("jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3")?;
            let path = JsonPath::parse(rest[..=end].trim_start_matches(['\'', '"']))?;
            let value = rest[end + 1..].trim_start_matches(['\'', '"']).strip_prefix('=').map(unquoted);
            return Ok(Self::JsonPath { path, value });
        }
        match text.to_lowercase().as_str() {
            "create" => Ok(Self::Create),
            "delete" => Ok(Self::Delete),
            _ => Err(format!("unrecognized condition: {text:?}; use condition=…, jsonpath=…, create or delete")),
        }
    }

    /// Is an object as it is wanted?
    fn is_met(&self, object: &Value) -> bool {
        match self {
            Self::Condition { kind, status } => items(&object["status"]["conditions"]).iter().any(|condition| {
                let observed = condition["observedGeneration"].as_i64();
                let is_old = observed.is_some_and(|observed| {
                    object["metadata"]["generation"].as_i64().is_some_and(|generation| observed < generation)
                });
                !is_old
                    && text(&condition["type"]).eq_ignore_ascii_case(kind)
                    && text(&condition["status"]).eq_ignore_ascii_case(status)
            }),
            Self::JsonPath { path, value } => match (path.find(object).as_slice(), value) {
                ([], _) => false,
                (_, None) => true,
                (found, Some(value)) => found.iter().any(|found| jsonpath::shown(found) == *value),
            },
            Self::Create => true,
            Self::Delete => false,
        }
    }
}

impl Wait {
    /// Waits.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let agent = self.connection.agent();
        let time = match self.timeout.0 {
            time if time.is_negative() => Some(WEEK),
            time => Some(time.unsigned_abs()),
        };
        let deadline = tokio::time::Instant::now() + time.unwrap_or(WEEK);
        let chosen = self.choice.objects(&agent, self.all).await?;
        if chosen.is_empty() {
            return Err(Failure::other("no matching resources found"));
        }
        each(&chosen, async |(target, namespace): &Placed| {
            let name = target.name.as_deref().unwrap_or_default();
            let late = || {
                Failure::Other(format!("timed out waiting for the condition on {}/{name}", target.resource.qualified()))
            };
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            match within(Some(left), self.one(&agent, target, namespace.as_deref()), late).await? {
                Met::Now => line(format_args!("{} condition met", named(&target.resource, name))),
                Met::Before => Ok(()),
            }
        })
        .await
    }

    async fn one(&self, agent: &Agent, target: &Target, namespace: Option<&str>) -> Result<Met, Failure> {
        let ask = || super::connection::Ask::get(target.path(namespace));
        match self.wanted {
            Wanted::Delete => match agent.find(ask()).await? {
                Some(object) => until_gone(agent, target, namespace, &object["metadata"]["uid"]).await?,
                None => return Ok(Met::Before),
            },
            Wanted::Create => until(agent, target, namespace, |object| Ok(object.map(|_| ()))).await?,
            _ => {
                // What isn't there is an error at once.
                agent.json(ask()).await?;
                let look = |object: Option<&Value>| match object {
                    Some(object) => Ok(self.wanted.is_met(object).then_some(())),
                    None => Err(Failure::Other(format!(
                        "{}/{} was deleted while it was waited for",
                        target.resource.qualified(),
                        target.name.as_deref().unwrap_or_default()
                    ))),
                };
                until(agent, target, namespace, look).await?;
            }
        }
        Ok(Met::Now)
    }
}
