//! `husk delete`: objects go; pods end within their grace.

use clap::Args;
use serde_json::{Value, json};

use super::choice::{Choice, Placed};
use super::connection::{Agent, Ask, Connection};
use super::duration::{Span, within};
use super::failure::{Failure, each};
use super::files::named;
use super::follow::until_gone;
use super::output::{Form, line, text};
use super::target::Target;
use crate::out::err;

/// What `husk delete` is asked.
#[derive(Args, Debug)]
pub(crate) struct Delete {
    #[command(flatten)]
    choice: Choice,
    /// All of them
    #[arg(long)]
    all: bool,
    /// So many seconds to end; by default what the pod says
    #[arg(long, value_name = "SECONDS", default_value_t = -1, hide_default_value = true, allow_negative_numbers = true)]
    grace_period: i64,
    /// One second to end
    #[arg(long, conflicts_with = "grace_period")]
    now: bool,
    /// No time to end, and don't wait for it
    #[arg(long)]
    force: bool,
    /// Wait until they are gone (default: true, without --force)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    wait: Option<bool>,
    /// Wait no longer; 0 for as long as it takes
    #[arg(long, value_name = "TIME", default_value = "0s", hide_default_value = true, allow_hyphen_values = true)]
    timeout: Span,
    /// What isn't there is no error
    #[arg(long)]
    ignore_not_found: bool,
    /// background, foreground or orphan
    #[arg(long, value_name = "HOW", value_parser = ["background", "foreground", "orphan"], default_value = "background", hide = true)]
    cascade: String,
    /// `server`: let the server check it and delete nothing
    #[arg(long, value_name = "WHERE", value_parser = ["none", "server"], default_value = "none")]
    dry_run: String,
    /// name: only the names of what was deleted
    #[arg(short, long, value_name = "FORM", value_parser = Form::parse)]
    output: Option<Form>,
    #[command(flatten)]
    connection: Connection,
}

impl Delete {
    /// Deletes and waits.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.output.as_ref().is_some_and(|form| *form != Form::Name) {
            return Err(Failure::other("unexpected -o output mode. We only support '-o name'"));
        }
        let agent = self.connection.agent();
        let chosen = self.choice.objects(&agent, self.all).await?;
        if chosen.is_empty() {
            line("No resources found")?;
        }
        if self.force {
            err(
                "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.",
            );
        }
        let mut going = Vec::new();
        let deleted = each(chosen, async |(target, namespace): Placed| {
            match self.delete(&agent, &target, namespace.as_deref()).await {
                Ok(uid) => {
                    self.tell(&target)?;
                    going.push((target, namespace, uid));
                    Ok(())
                }
                Err(error) if error.is_not_found() && (self.ignore_not_found || self.is_of_many()) => Ok(()),
                Err(error) => Err(error),
            }
        })
        .await;
        let waits = self.wait.unwrap_or(!(self.force && self.grace() == Some(0))) && self.dry_run == "none";
        if waits {
            let all = async {
                for (target, namespace, uid) in &going {
                    until_gone(&agent, target, namespace.as_deref(), uid).await?;
                }
                Ok(())
            };
            let timeout = self.timeout.or_forever();
            within(timeout, all, || Failure::other("timed out waiting for the condition")).await?;
        }
        deleted
    }

    fn is_of_many(&self) -> bool {
        self.all || !self.choice.selectors.is_empty()
    }

    /// The grace that is asked for; none for that of the object.
    fn grace(&self) -> Option<i64> {
        match self.grace_period {
            _ if self.now => Some(1),
            ..0 if self.force => Some(0),
            ..0 => None,
            // Without force nobody is sure what still runs.
            0 if !self.force => Some(1),
            seconds => Some(seconds),
        }
    }

    /// Its uid, so that another one of the same name isn't taken for it.
    async fn delete(&self, agent: &Agent, target: &Target, namespace: Option<&str>) -> Result<Value, Failure> {
        let policy = match self.cascade.as_str() {
            "foreground" => "Foreground",
            "orphan" => "Orphan",
            _ => "Background",
        };
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        if let Some(grace) = self.grace() {
            options["gracePeriodSeconds"] = grace.into();
        }
        if self.dry_run == "server" {
            options["dryRun"] = json!(["All"]);
        }
        let answer = agent.json(Ask::with("DELETE", target.path(namespace), &options)).await?;
        // The object, or a status about it.
        let uid = if answer["kind"] == "Status" { &answer["details"]["uid"] } else { &answer["metadata"]["uid"] };
        Ok(text(uid).into())
    }

    fn tell(&self, target: &Target) -> Result<(), Failure> {
        let name = target.name.as_deref().unwrap_or_default();
        if self.output.is_some() {
            return line(named(&target.resource, name));
        }
        let how = if self.force && self.grace() == Some(0) { "force deleted" } else { "deleted" };
        let dry = if self.dry_run == "server" { " (server dry run)" } else { "" };
        line(format_args!("{} {name:?} {how}{dry}", target.resource.prefix()))
    }
}
