//! `husk describe`: everything there is to know about objects, for people.

mod any;
mod container;
mod node;
mod pod;
mod text;
mod volume;

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use self::text::Text;
use super::choice::Choice;
use super::connection::{Agent, Ask, Connection};
use super::failure::Failure;
use super::happenings::{interval, order};
use super::output::{self, name_of, text};
use super::query::Query;
use super::resources::{Resources, items};
use super::target::{Selectors, Target, found};

/// What `husk describe` is asked.
#[derive(Args, Debug)]
pub(crate) struct Describe {
    #[command(flatten)]
    choice: Choice,
    /// With what happened to it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    show_events: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Describe {
    /// Describes them.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let agent = self.connection.agent();
        let resources = Resources::of(&agent).await?;
        let mut described = Vec::new();
        for (target, namespace) in self.choice.targets(&resources)? {
            described.extend(self.matching(&agent, &target, namespace.as_deref()).await?);
        }
        if described.is_empty() {
            crate::out::err(self.choice.nothing(true));
        }
        for (index, (target, object)) in described.iter().enumerate() {
            if index > 0 {
                output::line("\n")?;
            }
            let text = self.describe(&agent, target, object).await?;
            output::bytes(text.aligned().as_bytes())?;
        }
        Ok(())
    }

    /// The object of that name, or those whose names begin so.
    async fn matching(
        &self,
        agent: &Agent,
        target: &Target,
        namespace: Option<&str>,
    ) -> Result<Vec<(Target, Value)>, Failure> {
        match found(agent, std::slice::from_ref(target), namespace, &self.choice.selectors).await {
            Err(error) if error.is_not_found() && target.name.is_some() && !self.choice.is_from_files() => {
                let prefix = target.name.as_deref().unwrap_or_default();
                let all = Target { name: None, ..target.clone() };
                let mut found = found(agent, &[all], namespace, &Selectors::default()).await?;
                found.retain(|(_, object)| name_of(object).starts_with(prefix));
                if found.is_empty() { Err(error) } else { Ok(found) }
            }
            result => result,
        }
    }

    async fn describe(&self, agent: &Agent, target: &Target, object: &Value) -> Result<Text, Failure> {
        let mut text = Text::default();
        match (target.resource.group.as_str(), target.resource.kind.as_str()) {
            ("", "Pod") => pod::describe(&mut text, object),
            ("", "Node") => {
                let query = Query::default().with(
                    "fieldSelector",
                    format!("spec.nodeName={},status.phase!=Succeeded,status.phase!=Failed", name_of(object)),
                );
                let pods = agent.json(Ask::get("/api/v1/pods").query(query)).await?;
                node::describe(&mut text, object, items(&pods["items"]));
            }
            ("", "Secret") => any::secret(&mut text, object),
            ("", "ConfigMap") => any::config_map(&mut text, object),
            ("", "Namespace") => any::namespace(&mut text, object),
            _ => any::describe(&mut text, object),
        }
        // What happens to a namespace happens to what is in it, and nothing happens to secrets.
        if self.show_events && !["Namespace", "Secret"].contains(&target.resource.kind.as_str()) {
            self.events(agent, object, &mut text).await?;
        }
        Ok(text)
    }

    async fn events(&self, agent: &Agent, object: &Value, described: &mut Text) -> Result<(), Failure> {
        let metadata = &object["metadata"];
        // Who writes events about a node knows its name and not its uid.
        let uid = if object["kind"] == "Node" { &metadata["name"] } else { &metadata["uid"] };
        let query = Query::default().with(
            "fieldSelector",
            format!(
                "involvedObject.name={},involvedObject.kind={},involvedObject.uid={}",
                text(&metadata["name"]),
                text(&object["kind"]),
                text(uid)
            ),
        );
        let list = agent.json(Ask::get("/api/v1/events").query(query)).await?;
        let mut events: Vec<&Value> = items(&list["items"]).iter().collect();
        if events.is_empty() {
            described.pair(0, "Events", text::NONE);
            return Ok(());
        }
        events.sort_by_key(|event| order(event));
        let now = Timestamp::now();
        described.line(0, "Events:");
        described.line(1, "Type\tReason\tAge\tFrom\tMessage");
        described.line(1, "----\t------\t----\t----\t-------");
        for event in events {
            let source = match text(&event["source"]["component"]) {
                "" => text(&event["reportingComponent"]),
                source => source,
            };
            described.line(
                1,
                format_args!(
                    "{}\t{}\t{}\t{source}\t{}",
                    text(&event["type"]),
                    text(&event["reason"]),
                    interval(event, now),
                    text(&event["message"]).trim().replace(['\n', '\t'], " ")
                ),
            );
        }
        Ok(())
    }
}
