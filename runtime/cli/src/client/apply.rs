//! `husk apply`: objects become as a manifest says. The server merges: what others manage stays theirs.

use clap::Args;
use serde_json::Value;

use super::connection::{Agent, Ask, Connection};
use super::failure::{Failure, each};
use super::files::{Files, Placed};
use super::output::{Form, Printer, line};
use super::query::Query;
use super::resources::Resources;
use super::target::Namespace;

const MANAGER: &str = "husk";
const PATCH: &str = "application/apply-patch+yaml";

/// What `husk apply` is asked.
#[derive(Args, Debug)]
pub(crate) struct Apply {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    namespace: Namespace,
    /// Take fields from others who manage them
    #[arg(long, visible_alias = "force")]
    force_conflicts: bool,
    /// Who manages the fields
    #[arg(long, value_name = "NAME", default_value = MANAGER)]
    field_manager: String,
    /// `server`: let the server check everything and change nothing
    #[arg(long, value_name = "WHERE", value_parser = ["none", "server"], default_value = "none")]
    dry_run: String,
    /// Show the objects: json, yaml, name
    #[arg(short, long, value_name = "FORM", value_parser = Form::parse)]
    output: Option<Form>,
    /// As the server does it anyway
    #[arg(long, hide = true)]
    server_side: bool,
    #[command(flatten)]
    connection: Connection,
}

/// What becomes of an object.
struct Outcome {
    object: Value,
    word: &'static str,
}

impl Apply {
    /// Applies it, object after object. What fails doesn't hold up the others.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.files.is_empty() {
            return Err(Failure::other("must specify -f: a file, a folder, or - for standard input"));
        }
        let (objects, told) = self.files.checked()?;
        let agent = self.connection.agent().knowing(told);
        let resources = Resources::of(&agent).await?;
        let mut printer = self.output.clone().map(Printer::new);
        each(objects, async |found| {
            let placed = found.placed(&resources, &self.namespace)?;
            let Outcome { object, word } = self.apply(&agent, &placed).await?;
            match &mut printer {
                Some(printer) => printer.object(&object, &placed.target.resource),
                None => {
                    let dry = if self.dry_run == "server" { " (server dry run)" } else { "" };
                    line(format_args!("{} {word}{dry}", placed.named(&object)))
                }
            }
        })
        .await
    }

    async fn apply(&self, agent: &Agent, placed: &Placed) -> Result<Outcome, Failure> {
        if placed.target.name.is_none() {
            let metadata = &placed.found.written.json["metadata"];
            return Err(Failure::other(if metadata["generateName"].is_string() {
                "cannot use generate name with apply: use `husk create`"
            } else {
                "resource name may not be empty: give it one in metadata.name"
            }));
        }
        let path = placed.target.path(placed.namespace.as_deref());
        let before = agent.find(Ask::get(&path)).await?;
        let query = Query::default()
            .with("fieldManager", &self.field_manager)
            .with("fieldValidation", "Strict")
            .with("force", self.force_conflicts)
            .maybe("dryRun", (self.dry_run == "server").then_some("All"));
        let body = placed.found.object(placed.namespace.as_deref()).to_string();
        let ask = Ask { method: "PATCH", body: Some((PATCH, body.into())), ..Ask::get(path) };
        let applied = agent.answer(ask.query(query)).await;
        let (code, object) = applied.map_err(|error| conflicts(placed.found.explain(error, "applying")))?;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let word = match before {
            None if code == 201 => "created",
            Some(before) if version(&before) == version(&object) => "unchanged",
            _ => "configured",
        };
        Ok(Outcome { object, word })
    }
}

/// Says what can be done about fields that others manage.
fn conflicts(error: Failure) -> Failure {
    match error {
        Failure::Server(status) if status.causes.iter().any(|cause| cause.reason == "FieldManagerConflict") => {
            Failure::Other(format!(
                "{}\nPlease review the fields above--they currently have other managers.\n\
                 * To take them, apply again with --force-conflicts.\n\
                 * To leave them to the others, remove them from the manifest.",
                status.message
            ))
        }
        error => error,
    }
}
