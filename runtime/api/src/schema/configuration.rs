//! ConfigMaps and Secrets.

use super::Type::*;
use super::meta::OBJECT_META;
use super::{Object, field, object};

pub(super) static CONFIG_MAP: Object = object(
    "ConfigMap",
    &[
        field("apiVersion", Str),
        field("binaryData", Map(&Str)),
        field("data", Map(&Str)),
        field("immutable", Bool),
        field("kind", Str),
        field("metadata", Object(&OBJECT_META)),
    ],
);
pub(super) static SECRET: Object = object(
    "Secret",
    &[
        field("apiVersion", Str),
        field("data", Map(&Str)),
        field("immutable", Bool),
        field("kind", Str),
        field("metadata", Object(&OBJECT_META)),
        field("stringData", Map(&Str)),
        field("type", Str),
    ],
);
