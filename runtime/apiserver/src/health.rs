//! `/livez`, `/readyz` and `/healthz`: checks by name, in the form of a kube-apiserver.
//!
//! What is not live should be started anew, what is not ready may be waited for. `/healthz` means the same as `/livez`, as a kubelet's does:
//! watchdogs ask it. Reasons are told: who can ask may see everything.

use std::fmt::Write;

use crate::api::Api;
use crate::backend::BoxFuture;
use crate::query::Query;
use crate::respond::{self, Response};

const TEXT: &str = "text/plain; charset=utf-8";

/// Something that is looked at when somebody asks how the server is.
pub struct Check {
    /// As in `[+]NAME ok`.
    pub name: &'static str,
    /// Would it help to start it anew if this fails? If so, it is part of `/livez` and `/healthz`.
    pub is_vital: bool,
    /// Why it isn't well, if it isn't.
    pub look: Box<dyn Fn() -> BoxFuture<Result<(), String>> + Send + Sync>,
}

/// Which question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// `/livez`
    Live,
    /// `/readyz`
    Ready,
    /// `/healthz`
    Healthy,
}

impl Question {
    /// As in a path.
    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::Live, Self::Ready, Self::Healthy].into_iter().find(|question| question.as_str() == word)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "livez",
            Self::Ready => "readyz",
            Self::Healthy => "healthz",
        }
    }

    fn has(self, check: &Check) -> bool {
        self == Self::Ready || check.is_vital
    }
}

/// Answers one of them, or one check of it. None if there is no such check.
pub(crate) async fn answer(api: &Api, question: Question, name: Option<&str>, query: &Query) -> Option<Response> {
    let ping = ping();
    let all = || std::iter::once(&ping).chain(api.checks()).filter(|check| question.has(check));
    if let Some(name) = name {
        let check = all().find(|check| check.name == name)?;
        return Some(match (check.look)().await {
            Ok(()) => respond::bytes(200, TEXT, "ok".into()),
            Err(reason) => respond::bytes(500, TEXT, format!("internal server error: {reason}\n").into()),
        });
    }
    let mut excluded: Vec<&str> = query.all("exclude").filter(|name| !name.is_empty()).collect();
    let (mut text, mut is_well) = (String::new(), true);
    for check in all() {
        // A string takes everything.
        let _ = if excluded.contains(&check.name) {
            writeln!(text, "[+]{} excluded: ok", check.name)
        } else {
            match (check.look)().await {
                Ok(()) => writeln!(text, "[+]{} ok", check.name),
                Err(reason) => {
                    is_well = false;
                    writeln!(text, "[-]{} failed: {}", check.name, reason.replace(char::is_control, " "))
                }
            }
        };
    }
    excluded.retain(|name| all().all(|check| check.name != *name));
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let _ = writeln!(text, "warn: some health checks cannot be excluded: no matches for {}", names.join(", "));
    }
    let word = question.as_str();
    Some(match is_well {
        true if !query.flag("verbose") => respond::bytes(200, TEXT, "ok".into()),
        true => respond::bytes(200, TEXT, format!("{text}{word} check passed\n").into()),
        false => respond::bytes(500, TEXT, format!("{text}{word} check failed\n").into()),
    })
}

/// Who answers is there.
fn ping() -> Check {
    Check { name: "ping", is_vital: true, look: Box::new(|| Box::pin(async { Ok(()) })) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;
    use crate::api::Device;
    use crate::backend::tests::Empty;
    use crate::memory::Memory;
    use crate::objects::Objects;

    fn api() -> Api {
        let check = |name, is_vital, fails: Option<&'static str>| Check {
            name,
            is_vital,
            look: Box::new(move || Box::pin(async move { fails.map_or(Ok(()), |reason| Err(reason.to_owned())) })),
        };
        let checks = vec![check("syncloop", true, None), check("store", false, Some("no space left\non the disk"))];
        Api::new(Objects::new(Arc::new(Memory::default())), Arc::new(Empty), Device::default()).checked(checks)
    }

    async fn ask(question: Question, name: Option<&str>, query: &str) -> Option<(u16, String)> {
        let response = answer(&api(), question, name, &Query::parse(query)).await?;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        Some((code, String::from_utf8_lossy(&body).into_owned()))
    }

    #[tokio::test]
    async fn checks_are_told_as_upstream_tells_them() {
        let live = (200, "ok".to_owned());
        assert_eq!(ask(Question::Live, None, "").await, Some(live));
        let verbose = "[+]ping ok\n[+]syncloop ok\nlivez check passed\n";
        assert_eq!(ask(Question::Live, None, "verbose").await, Some((200, verbose.into())));
        // What fails is told whether it was asked for or not, on one line.
        let failed = "[+]ping ok\n[+]syncloop ok\n[-]store failed: no space left on the disk\nreadyz check failed\n";
        assert_eq!(ask(Question::Ready, None, "").await, Some((500, failed.into())));
        let healthz = verbose.replace("livez", "healthz");
        assert_eq!(ask(Question::Healthy, None, "verbose=true").await, Some((200, healthz)));
        let without = "[+]ping ok\n[+]syncloop ok\n[+]store excluded: ok\nreadyz check passed\n";
        assert_eq!(ask(Question::Ready, None, "verbose&exclude=store").await, Some((200, without.into())));
        let unknown = ask(Question::Ready, None, "verbose&exclude=store&exclude=etcd").await.expect("an answer").1;
        assert!(
            unknown.contains("warn: some health checks cannot be excluded: no matches for \"etcd\"\n"),
            "{unknown}"
        );
        assert_eq!(ask(Question::Ready, Some("syncloop"), "").await, Some((200, "ok".into())));
        assert_eq!(ask(Question::Ready, Some("store"), "").await.expect("an answer").0, 500);
        assert_eq!(ask(Question::Live, Some("store"), "").await, None);
    }
}
