//! Family `quantity`: parsing, printing, rounding, arithmetic.

use husk_core::quantity::{Quantity, QuantityError};
use serde_json::{Value, json};

pub(super) fn answer(input: &Value) -> Value {
    match input {
        Value::String(text) => parse(text),
        operands => arithmetic(operands),
    }
}

fn parse(text: &str) -> Value {
    match Quantity::parse(text) {
        Err(QuantityError::OutOfRange) => json!({"outOfRange": true}),
        Err(_) => json!({"error": true}),
        Ok(quantity) => match quantity.scaled(1) {
            None => json!({"outOfRange": true}),
            Some(value) => json!({
                "canonical": quantity.to_string(),
                "value": value,
                "milli": quantity.scaled(1000),
                "sign": quantity.signum(),
            }),
        },
    }
}

fn arithmetic(operands: &Value) -> Value {
    let operand = |name: &str| operands[name].as_str().and_then(|text| Quantity::parse(text).ok());
    let (Some(a), Some(b)) = (operand("a"), operand("b")) else { return json!({"error": true}) };
    json!({
        "cmp": a.cmp(&b) as i8,
        "sum": a.checked_add(&b).map(|sum| sum.to_string()),
        "difference": a.checked_sub(&b).map(|difference| difference.to_string()),
    })
}
