//! Family `phase`: the pod's phase from its container statuses.

use husk_core::phase::{PhaseInput, phase};
use husk_core::statuses::Statuses;
use serde_json::{Value, json};

use super::objects;

pub(super) fn answer(input: &Value) -> Value {
    let spec = objects::pod_spec(&input["spec"]);
    let statuses = objects::list(&input["statuses"], objects::container_status);
    let phase = |terminal, initialized| {
        let statuses = Statuses { init: &[], app: &statuses };
        phase(PhaseInput { spec: &spec, statuses, is_static: objects::flag(&input["static"]), terminal, initialized })
            .as_str()
    };
    let by_initialized = |terminal| [phase(terminal, false), phase(terminal, true)];
    let [live, terminal] = [by_initialized(false), by_initialized(true)];
    if live == terminal && live[0] == live[1] {
        return json!({"phase": live[0]});
    }
    json!({
        "live": {"uninitialized": live[0], "initialized": live[1]},
        "terminal": {"uninitialized": terminal[0], "initialized": terminal[1]},
    })
}
