//! `husk create`: new objects from manifests.

use clap::Args;

use super::connection::{Agent, Ask, Connection};
use super::failure::{Failure, each};
use super::files::{Files, Found};
use super::output::{Form, Printer, line};
use super::query::Query;
use super::resources::Resources;
use super::target::Namespace;

/// What `husk create` is asked.
#[derive(Args, Debug)]
pub(crate) struct Create {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    namespace: Namespace,
    /// `server`: let the server check everything and create nothing
    #[arg(long, value_name = "WHERE", value_parser = ["none", "server"], default_value = "none")]
    dry_run: String,
    /// Show the objects: json, yaml, name
    #[arg(short, long, value_name = "FORM", value_parser = Form::parse)]
    output: Option<Form>,
    #[command(flatten)]
    connection: Connection,
}

impl Create {
    /// Creates them, one after the other. What fails doesn't hold up the others.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.files.is_empty() {
            return Err(Failure::other("must specify -f: a file, a folder, or - for standard input"));
        }
        let (objects, told) = self.files.checked()?;
        let agent = self.connection.agent().knowing(told);
        let resources = Resources::of(&agent).await?;
        let mut printer = self.output.clone().map(Printer::new);
        each(objects, async |found| self.create(&agent, &resources, found, &mut printer).await).await
    }

    async fn create(
        &self,
        agent: &Agent,
        resources: &Resources,
        found: Found,
        printer: &mut Option<Printer>,
    ) -> Result<(), Failure> {
        let placed = found.placed(resources, &self.namespace)?;
        let query = Query::default()
            .with("fieldManager", "husk-create")
            .with("fieldValidation", "Strict")
            .maybe("dryRun", (self.dry_run == "server").then_some("All"));
        let path = placed.target.resource.collection(placed.namespace.as_deref());
        let ask = Ask::with("POST", path, &placed.found.object(placed.namespace.as_deref()));
        let object = agent.json(ask.query(query)).await.map_err(|error| placed.found.explain(error, "creating"))?;
        match printer {
            Some(printer) => printer.object(&object, &placed.target.resource),
            None => {
                let dry = if self.dry_run == "server" { " (server dry run)" } else { "" };
                line(format_args!("{} created{dry}", placed.named(&object)))
            }
        }
    }
}
