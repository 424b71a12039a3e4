//! Family `expansion`: `$(VAR)` references.

use husk_core::expansion::{Room, expand};
use serde_json::Value;

use super::objects::text;

pub(super) fn answer(input: &Value) -> Value {
    expand(&text(&input["text"]), |name| input["env"][name].as_str(), &mut Room::default()).ok().into()
}
