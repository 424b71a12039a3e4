//! Proof that the table has every field that the typed objects have, and no other.
//!
//! A deserializer asks each type for the fields it knows, follows all of them, and writes down what it met.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::{DaemonSetSpec, DeploymentSpec, ReplicaSetSpec, StatefulSetSpec};
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{KINDS, Object, Type};

/// Name of a type → its fields.
type Met = BTreeMap<String, BTreeSet<String>>;

/// A text that is also a time.
const TEXT: &str = "2026-01-01T00:00:00Z";

struct Tracer<'a> {
    met: &'a mut Met,
}

macro_rules! answers {
    ($($method:ident => $visit:ident($($value:expr)?);)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit($($value)?)
        })*
    };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Error;

    answers! {
        deserialize_any => visit_i32(1);
        deserialize_bool => visit_bool(true);
        deserialize_i8 => visit_i8(1);
        deserialize_i16 => visit_i16(1);
        deserialize_i32 => visit_i32(1);
        deserialize_i64 => visit_i64(1);
        deserialize_u8 => visit_u8(1);
        deserialize_u16 => visit_u16(1);
        deserialize_u32 => visit_u32(1);
        deserialize_u64 => visit_u64(1);
        deserialize_f32 => visit_f32(1.0);
        deserialize_f64 => visit_f64(1.0);
        deserialize_char => visit_char('x');
        deserialize_str => visit_str(TEXT);
        deserialize_string => visit_str(TEXT);
        deserialize_bytes => visit_bytes(b"");
        deserialize_byte_buf => visit_bytes(b"");
        deserialize_unit => visit_unit();
        deserialize_identifier => visit_str(TEXT);
        deserialize_ignored_any => visit_unit();
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Once { met: self.met, is_done: false })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Fields { met: self.met, names: ["key"].iter() })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.met.insert(name.into(), fields.iter().map(|field| (*field).into()).collect());
        visitor.visit_map(Fields { met: self.met, names: fields.iter() })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom(format!("no object has an enum: {name}")))
    }
}

/// A list of one item.
struct Once<'a> {
    met: &'a mut Met,
    is_done: bool,
}

impl<'de> SeqAccess<'de> for Once<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if core::mem::replace(&mut self.is_done, true) {
            return Ok(None);
        }
        seed.deserialize(Tracer { met: self.met }).map(Some)
    }
}

/// An object with all its fields, or a map with one key.
struct Fields<'a> {
    met: &'a mut Met,
    names: core::slice::Iter<'static, &'static str>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        // The type checks these two, and they are not what is asked about.
        match self.names.find(|name| !["apiVersion", "kind"].contains(*name)) {
            Some(name) => seed.deserialize(StrDeserializer::new(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Tracer { met: self.met })
    }
}

fn trace<'de, T: Deserialize<'de>>(met: &mut Met) {
    if let Err(error) = T::deserialize(Tracer { met }) {
        panic!("{}: {error}", std::any::type_name::<T>());
    }
}

fn listed(object: &Object, met: &mut Met) {
    let fields = object.fields.iter().map(|field| field.name.into()).collect();
    if met.insert(object.name.into(), fields).is_none() {
        object.fields.iter().for_each(|field| listed_type(&field.ty, met));
    }
}

fn listed_type(ty: &Type, met: &mut Met) {
    match ty {
        Type::Object(object) => listed(object, met),
        Type::List(item) | Type::Map(item) => listed_type(item, met),
        _ => {}
    }
}

#[test]
fn the_table_has_every_field_of_the_typed_objects_and_no_other() {
    let mut typed = Met::new();
    trace::<PodSpec>(&mut typed);
    trace::<ObjectMeta>(&mut typed);
    trace::<JobSpec>(&mut typed);
    trace::<DeploymentSpec>(&mut typed);
    trace::<ReplicaSetSpec>(&mut typed);
    trace::<DaemonSetSpec>(&mut typed);
    trace::<StatefulSetSpec>(&mut typed);
    let mut table = Met::new();
    KINDS.iter().for_each(|kind| listed(kind.object, &mut table));
    assert!(typed.len() > 100, "only {} types were met", typed.len());
    // What is never looked into has no rows: status and the like.
    for (name, fields) in &table {
        if let Some(typed) = typed.get(name) {
            assert_eq!(fields, typed, "{name}");
        } else {
            // Objects without any field are not asked for fields.
            let is_kind = KINDS.iter().any(|kind| kind.kind == name) || name == "PersistentVolumeClaim";
            assert!(fields.is_empty() || is_kind, "{name} is no type of an object");
        }
    }
    // Parts of status, which is not read, and of managedFields.
    let opaque =
        |name: &str| ["Status", "Condition"].iter().any(|end| name.ends_with(end)) || name == "ManagedFieldsEntry";
    for name in typed.keys() {
        assert!(table.contains_key(name) || opaque(name), "{name} is not in the table");
    }
}
