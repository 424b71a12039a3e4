//! One request: from its path to its answer.

use std::sync::{Arc, OnceLock};

use husk_api::Gates;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Method, Request};
use serde_json::json;
use tokio::sync::watch;

use crate::backend::{Backend, Metrics};
use crate::body::Body;
use crate::health::Check;
use crate::negotiate::{Form, form};
use crate::objects::Objects;
use crate::query::Query;
use crate::resource::Door;
use crate::respond::{self, Response};
use crate::route::{Place, Route, route};
use crate::status::ApiError;
use crate::{create, delete, discovery, eviction, exec, health, logs, openapi, read, stream, timeline, update};

/// Facts about the device that answers depend on.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Name of the node that pods run on.
    pub node_name: String,
    /// Version of the agent.
    pub agent_version: String,
    /// Features that are on.
    pub gates: Gates,
}

/// The Kubernetes API of a device. Clones share it.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    objects: Objects,
    backend: Arc<dyn Backend>,
    device: Device,
    ending: watch::Sender<bool>,
    checks: OnceLock<Vec<Check>>,
}

impl Api {
    /// Over objects and what runs them.
    pub fn new(objects: Objects, backend: Arc<dyn Backend>, device: Device) -> Self {
        Self(Arc::new(Inner { objects, backend, device, ending: watch::Sender::new(false), checks: OnceLock::new() }))
    }

    /// With what else is looked at when somebody asks how it is; once.
    #[must_use]
    pub fn checked(self, checks: Vec<Check>) -> Self {
        // Who says it again is not heard.
        let _ = self.0.checks.set(checks);
        self
    }

    pub(crate) fn checks(&self) -> &[Check] {
        self.0.checks.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// The objects.
    pub fn objects(&self) -> &Objects {
        &self.0.objects
    }

    /// About the device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    /// Ends what would go on for ever: watches and followed logs.
    pub fn end(&self) {
        self.0.ending.send_replace(true);
    }

    /// Resolves when the server ends.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as this does.
        let _ = self.0.ending.subscribe().wait_for(|ending| *ending).await;
    }

    /// Answers a request.
    pub(crate) async fn handle(&self, request: &mut Request<Incoming>) -> Response {
        let answer = match route(request.uri().path()) {
            Some(Route::Objects(place)) => self.objects_request(place, request).await,
            Some(Route::Health { question, check }) if request.method() == Method::GET => {
                let query = Query::parse(request.uri().query().unwrap_or_default());
                let answer = health::answer(self, question, check.as_deref(), &query).await;
                answer.ok_or_else(ApiError::no_such_path)
            }
            Some(route) if request.method() == Method::GET => Ok(self.fixed(&route, request)),
            Some(_) => Err(ApiError::method_not_allowed()),
            None => Err(ApiError::no_such_path()),
        };
        answer.unwrap_or_else(|error| respond::error(&error))
    }

    /// What doesn't depend on objects.
    fn fixed(&self, route: &Route, request: &Request<Incoming>) -> Response {
        let accept = header(request, &ACCEPT);
        match route {
            Route::Version => respond::json(200, &self.version()),
            Route::Metrics => match self.backend().metrics() {
                Some(Metrics { content_type, text }) => respond::bytes(200, content_type, text.into()),
                None => respond::error(&ApiError::no_such_path()),
            },
            Route::CoreVersions => discovery::core(accept),
            Route::Groups => discovery::groups(accept),
            Route::Group(group) => discovery::group(group),
            Route::Resources { group, version } => discovery::resources(group, version),
            Route::OpenApiIndex => openapi::index(),
            Route::OpenApi { group, version } => openapi::document(group, version),
            Route::OpenApiV2 => openapi::v2(),
            Route::Objects(_) | Route::Health { .. } => respond::error(&ApiError::no_such_path()),
        }
    }

    fn version(&self) -> serde_json::Value {
        json!({
            "major": "1",
            "minor": "33",
            "gitVersion": format!("v1.33.0+husk-{}", self.device().agent_version),
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "rustc",
            "platform": format!("linux/{}", std::env::consts::ARCH),
        })
    }

    async fn objects_request(&self, place: Place, request: &mut Request<Incoming>) -> Result<Response, ApiError> {
        let verb = verb(request, &place)?;
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let door = place.subresource.map_or(Door::Main, |subresource| subresource.door);
        // Streams have forms of their own.
        match door {
            Door::Timeline => return timeline::answer(self, &place, &query),
            Door::Log => return logs::answer(self, &place, &query).await,
            Door::Exec | Door::Attach => return exec::answer(self, &place, &query, request).await,
            _ => {}
        }
        let form = form(header(request, &ACCEPT))?;
        let ask = Ask { place, query, form, door };
        let content_type = header(request, &CONTENT_TYPE).map(str::to_owned);
        let body =
            async |request: &mut Request<Incoming>| Body::read(content_type.as_deref(), request.body_mut()).await;
        match verb {
            "get" => read::get(self, &ask).await,
            "list" => read::list(self, &ask).await,
            "watch" => stream::watch(self, &ask).await,
            "create" if door == Door::Eviction => eviction::evict(self, &ask, body(request).await?).await,
            "create" => create::create(self, &ask, body(request).await?).await,
            "update" => update::replace(self, &ask, body(request).await?).await,
            "patch" => update::patch(self, &ask, body(request).await?).await,
            "delete" => delete::delete(self, &ask, body(request).await?).await,
            "deletecollection" => delete::collection(self, &ask, body(request).await?).await,
            _ => Err(ApiError::method_not_allowed()),
        }
    }
}

/// A request about objects.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) place: Place,
    pub(crate) query: Query,
    pub(crate) form: Form,
    pub(crate) door: Door,
}

impl Ask {
    /// The object that it is about; routes with these verbs have a name.
    pub(crate) fn name(&self) -> &str {
        self.place.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> crate::storage::Key {
        self.place.resource.key(self.place.namespace(), self.name())
    }
}

/// What is to be done, if the resource has that.
fn verb(request: &Request<Incoming>, place: &Place) -> Result<&'static str, ApiError> {
    let watches = || Query::parse(request.uri().query().unwrap_or_default()).flag("watch");
    let verb = match (request.method().as_str(), &place.name) {
        ("GET", Some(_)) => "get",
        ("GET", None) if watches() => "watch",
        ("GET", None) => "list",
        ("POST", _) => "create",
        ("PUT", Some(_)) => "update",
        ("PATCH", Some(_)) => "patch",
        ("DELETE", Some(_)) => "delete",
        ("DELETE", None) => "deletecollection",
        _ => return Err(ApiError::method_not_allowed()),
    };
    let verbs = place.subresource.map_or(place.resource.verbs, |subresource| subresource.verbs);
    // Objects are made in a collection, in the namespace that they are to be in.
    let misplaced = verb == "create"
        && place.subresource.is_none()
        && (place.name.is_some() || place.resource.namespaced && place.namespace.is_none());
    if !verbs.contains(&verb) || misplaced { Err(ApiError::method_not_allowed()) } else { Ok(verb) }
}

fn header<'a>(request: &'a Request<Incoming>, name: &hyper::header::HeaderName) -> Option<&'a str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}
