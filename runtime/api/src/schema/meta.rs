//! Names, labels and references.

use super::Type::*;
use super::{Object, field, object};

pub(super) static OBJECT_META: Object = object(
    "ObjectMeta",
    &[
        field("annotations", Map(&Str)),
        field("creationTimestamp", Time).warned("it is ignored; the node sets it"),
        field("deletionGracePeriodSeconds", Int64).warned("it is ignored; the node sets it"),
        field("deletionTimestamp", Time).warned("it is ignored; the node sets it"),
        field("finalizers", List(&Str)).warned("finalizers are not waited for"),
        field("generateName", Str),
        field("generation", Int64).warned("it is ignored; the node sets it"),
        field("labels", Map(&Str)),
        field("managedFields", List(&Any)).warned("it is ignored"),
        field("name", Str),
        field("namespace", Str),
        field("ownerReferences", List(&Object(&OWNER_REFERENCE))).warned("owners are not tracked"),
        field("resourceVersion", Str).warned("it is ignored"),
        field("selfLink", Str).warned("it is ignored"),
        field("uid", Str),
    ],
);
pub(super) static OWNER_REFERENCE: Object = object(
    "OwnerReference",
    &[
        field("apiVersion", Str),
        field("blockOwnerDeletion", Bool),
        field("controller", Bool),
        field("kind", Str),
        field("name", Str),
        field("uid", Str),
    ],
);
pub(super) static LABEL_SELECTOR: Object = object(
    "LabelSelector",
    &[field("matchExpressions", List(&Object(&LABEL_SELECTOR_REQUIREMENT))), field("matchLabels", Map(&Str))],
);
pub(super) static LABEL_SELECTOR_REQUIREMENT: Object =
    object("LabelSelectorRequirement", &[field("key", Str), field("operator", Str), field("values", List(&Str))]);
pub(super) static LOCAL_OBJECT_REFERENCE: Object = object("LocalObjectReference", &[field("name", Str)]);
pub(super) static TYPED_LOCAL_OBJECT_REFERENCE: Object =
    object("TypedLocalObjectReference", &[field("apiGroup", Str), field("kind", Str), field("name", Str)]);
pub(super) static TYPED_OBJECT_REFERENCE: Object = object(
    "TypedObjectReference",
    &[field("apiGroup", Str), field("kind", Str), field("name", Str), field("namespace", Str)],
);
