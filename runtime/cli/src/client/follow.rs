//! Waiting for what becomes of an object.

use std::time::Duration;

use serde_json::Value;

use super::connection::{Agent, Ask};
use super::failure::Failure;
use super::output::text;
use super::query::Query;
use super::resources::items;
use super::stream::{Happened, Watch};
use super::target::Target;

/// After a watch that ended at once.
const PAUSE: Duration = Duration::from_millis(200);

/// Looks at an object whenever it changes, until there is an answer. `look` gets none while there is no such object.
pub(crate) async fn until<T>(
    agent: &Agent,
    target: &Target,
    namespace: Option<&str>,
    mut look: impl FnMut(Option<&Value>) -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let name = target.name.as_deref().unwrap_or_default();
    let path = target.resource.collection(namespace);
    let only = || Query::default().with("fieldSelector", format!("metadata.name={name}"));
    loop {
        let list = agent.json(Ask::get(&path).query(only())).await?;
        if let Some(answer) = look(items(&list["items"]).first())? {
            return Ok(answer);
        }
        let since = text(&list["metadata"]["resourceVersion"]).to_owned();
        let query = only().with("resourceVersion", since).with("allowWatchBookmarks", true);
        let mut watch = Watch::begin(agent, Ask::get(&path).query(query)).await?;
        loop {
            let event = match watch.next().await {
                Ok(event) => event,
                // What it goes on from is forgotten: from the beginning.
                Err(Failure::Server(status)) if status.code == 410 => None,
                Err(error) => return Err(error),
            };
            let Some((happened, object)) = event else { break };
            let now = match happened {
                Happened::Bookmark => continue,
                Happened::Deleted => None,
                Happened::Added | Happened::Modified => Some(&object),
            };
            if let Some(answer) = look(now)? {
                return Ok(answer);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until an object is gone, or another one has its name.
pub(crate) async fn until_gone(
    agent: &Agent,
    target: &Target,
    namespace: Option<&str>,
    uid: &Value,
) -> Result<(), Failure> {
    let look = |object: Option<&Value>| Ok(object.is_none_or(|object| object["metadata"]["uid"] != *uid).then_some(()));
    until(agent, target, namespace, look).await
}
