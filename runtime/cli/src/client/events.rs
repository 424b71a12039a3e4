//! `husk events`: what happened to objects.

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::connection::{Agent, Ask, Connection};
use super::failure::Failure;
use super::happenings::{interval, order};
use super::output::{Form, Printer, text};
use super::query::{Query, encoded};
use super::resources::{Resources, items};
use super::stream::{Happened, Watch};
use super::table::{Columns, cell};
use super::target::{Namespace, targets};
use crate::out::err;

/// What `husk events` is asked.
#[derive(Args, Debug)]
pub(crate) struct Events {
    /// Only those about one object, as in pod/web
    #[arg(long = "for", value_name = "TYPE/NAME")]
    about: Option<String>,
    /// Go on as more happens
    #[arg(short, long)]
    watch: bool,
    /// Only these types: Normal, Warning
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    types: Vec<String>,
    /// The form: json, yaml, name
    #[arg(short, long, value_name = "FORM", value_parser = Form::parse, default_value = "", hide_default_value = true)]
    output: Form,
    /// Without the line above the table
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    namespace: Namespace,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Events {
    /// Shows them.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if let Some(wrong) = self.types.iter().find(|kind| !["normal", "warning"].contains(&&*kind.to_lowercase())) {
            return Err(Failure::Other(format!("valid --types are Normal or Warning, not {wrong:?}")));
        }
        let agent = self.connection.agent();
        let resources = Resources::of(&agent).await?;
        let path = match self.all_namespaces {
            true => "/api/v1/events".to_owned(),
            false => format!("/api/v1/namespaces/{}/events", encoded(self.namespace.name())),
        };
        let selector = self.selector(&resources)?;
        let query = || Query::default().maybe("fieldSelector", selector.as_ref());
        let list = agent.json(Ask::get(&path).query(query())).await?;
        let mut events: Vec<Value> = items(&list["items"]).iter().filter(|event| self.wants(event)).cloned().collect();
        events.sort_by_key(order);
        let version = list["metadata"]["resourceVersion"].clone();
        let Form::Table { .. } = self.output else {
            return self
                .objects(
                    &agent,
                    &resources,
                    events,
                    Ask::get(&path).query(query().with("resourceVersion", text(&version))),
                )
                .await;
        };
        let mut columns = Columns::default();
        let mut rows = Vec::new();
        if events.is_empty() && !self.watch {
            err(match self.all_namespaces {
                true => "No events found.".to_owned(),
                false => format!("No events found in {} namespace.", self.namespace.name()),
            });
            return Ok(());
        }
        if !self.no_headers {
            let header = ["NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
            rows.push(header[usize::from(!self.all_namespaces)..].iter().map(|cell| (*cell).to_owned()).collect());
        }
        rows.extend(events.iter().map(|event| self.row(event)));
        columns.write(&rows)?;
        if !self.watch {
            return Ok(());
        }
        let ask = Ask::get(&path).query(query().with("resourceVersion", text(&version)));
        let mut watch = Watch::begin(&agent, ask).await?;
        while let Some((happened, event)) = watch.next().await? {
            if matches!(happened, Happened::Added | Happened::Modified) && self.wants(&event) {
                columns.write(&[self.row(&event)])?;
            }
        }
        Ok(())
    }

    async fn objects(
        &self,
        agent: &Agent,
        resources: &Resources,
        events: Vec<Value>,
        ask: Ask<'_>,
    ) -> Result<(), Failure> {
        let Some(resource) = resources.of_kind("v1", "Event") else {
            return Err(Failure::other("the server doesn't have events"));
        };
        let mut printer = Printer::new(self.output.clone());
        if !self.watch {
            return printer.list(events.into_iter().map(|event| (event, resource.as_ref())).collect());
        }
        events.iter().try_for_each(|event| printer.object(event, &resource))?;
        let mut watch = Watch::begin(agent, ask).await?;
        while let Some((happened, event)) = watch.next().await? {
            if matches!(happened, Happened::Added | Happened::Modified) && self.wants(&event) {
                printer.object(&event, &resource)?;
            }
        }
        Ok(())
    }

    fn selector(&self, resources: &Resources) -> Result<Option<String>, Failure> {
        let Some(about) = &self.about else { return Ok(None) };
        if !about.contains('/') {
            return Err(Failure::other("--for must be in resource/name form"));
        }
        let target = targets(resources, std::slice::from_ref(about))?.remove(0);
        Ok(Some(format!(
            "involvedObject.kind={},involvedObject.apiVersion={},involvedObject.name={}",
            target.resource.kind,
            target.resource.api_version(),
            target.name.unwrap_or_default()
        )))
    }

    fn wants(&self, event: &Value) -> bool {
        self.types.is_empty() || self.types.iter().any(|kind| kind.eq_ignore_ascii_case(text(&event["type"])))
    }

    fn row(&self, event: &Value) -> Vec<String> {
        let object = &event["involvedObject"];
        let mut row = Vec::new();
        if self.all_namespaces {
            row.push(cell(text(&event["metadata"]["namespace"])));
        }
        row.push(interval(event, Timestamp::now()));
        row.extend([cell(text(&event["type"])), cell(text(&event["reason"]))]);
        row.push(cell(&format!("{}/{}", text(&object["kind"]), text(&object["name"]))));
        row.push(cell(text(&event["message"]).trim()));
        row
    }
}
