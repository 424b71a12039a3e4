//! In which form a client wants its answer.

use crate::status::ApiError;

/// A form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object as JSON.
    Json,
    /// The object as YAML, which JSON is.
    Yaml,
    /// A table.
    Table,
    /// Metadata only.
    Metadata,
}

/// The first form of an `Accept` header that can be given.
pub(crate) fn form(accept: Option<&str>) -> Result<Form, ApiError> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else { return Ok(Form::Json) };
    accept.split(',').find_map(offered).ok_or_else(ApiError::not_acceptable)
}

fn offered(clause: &str) -> Option<Form> {
    let mut parts = clause.split(';').map(str::trim);
    let media_type = parts.next()?;
    let mut kind = "";
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => kind = value,
            Some(("g", group)) if group != "meta.k8s.io" => return None,
            Some(("v", version)) if !matches!(version, "v1" | "v1beta1") => return None,
            _ => {}
        }
    }
    match (media_type, kind) {
        ("application/json" | "application/*" | "*/*", "") => Some(Form::Json),
        ("application/yaml", "") => Some(Form::Yaml),
        ("application/json", "Table") => Some(Form::Table),
        ("application/json", "PartialObjectMetadata" | "PartialObjectMetadataList") => Some(Form::Metadata),
        _ => None,
    }
}

/// Does the client take the newer form of discovery? With an answer in a form that it didn't ask for it finds nothing, and
/// doesn't say so.
pub(crate) fn takes_aggregated_discovery(accept: Option<&str>) -> bool {
    accept.into_iter().flat_map(|accept| accept.split(',')).any(|clause| {
        let has = |wanted: &str| clause.split(';').any(|part| part.trim() == wanted);
        has("application/json") && has("g=apidiscovery.k8s.io") && has("v=v2") && has("as=APIGroupDiscoveryList")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_can_be_given_is() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(Some(kubectl)), Ok(Form::Table));
        assert_eq!(form(Some("application/vnd.kubernetes.protobuf,application/json")), Ok(Form::Json));
        assert_eq!(form(Some("application/json;as=Table;v=v9;g=meta.k8s.io, */*")), Ok(Form::Json));
        assert_eq!(form(None), Ok(Form::Json));
        assert_eq!(form(Some("text/html")).map_err(|error| error.code), Err(406));
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(form(Some(metadata)), Ok(Form::Metadata));
    }

    #[test]
    fn only_the_version_that_was_asked_for_is_given() {
        let accept = |version: &str| {
            format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList,application/json")
        };
        assert!(takes_aggregated_discovery(Some(&accept("v2"))));
        assert!(!takes_aggregated_discovery(Some(&accept("v2beta1"))));
        assert!(!takes_aggregated_discovery(None));
    }
}
