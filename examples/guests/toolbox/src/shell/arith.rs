//! `$(( ))`.

use brush_parser::arithmetic;
use brush_parser::ast::{ArithmeticExpr, ArithmeticTarget, BinaryOperator, UnaryAssignmentOperator, UnaryOperator};

use super::{Flow, Shell};

/// Variables may hold expressions that name variables; so deep and no deeper.
const MAX_DEPTH: u32 = 32;

impl Shell {
    /// The value of an expression, after expanding what is in it.
    pub(crate) fn arithmetic(&mut self, expression: &str) -> Result<i64, Flow> {
        let text = self.expand_document(expression)?;
        self.evaluate_text(&text, 0).map_err(|message| self.fatal(&format!("arithmetic: {message} in {}", text.trim())))
    }

    fn evaluate_text(&mut self, text: &str, depth: u32) -> Result<i64, String> {
        if text.trim().is_empty() {
            return Ok(0);
        }
        if depth > MAX_DEPTH {
            return Err("expression recursion".to_owned());
        }
        let expression = arithmetic::parse(text.trim()).map_err(|_| "syntax error".to_owned())?;
        self.evaluate(&expression, depth)
    }

    fn evaluate(&mut self, expression: &ArithmeticExpr, depth: u32) -> Result<i64, String> {
        match expression {
            ArithmeticExpr::Literal(value) => Ok(*value),
            ArithmeticExpr::Reference(target) => self.variable(target, depth),
            ArithmeticExpr::UnaryOp(operator, operand) => {
                let value = self.evaluate(operand, depth)?;
                Ok(match operator {
                    UnaryOperator::UnaryPlus => value,
                    UnaryOperator::UnaryMinus => value.wrapping_neg(),
                    UnaryOperator::BitwiseNot => !value,
                    UnaryOperator::LogicalNot => i64::from(value == 0),
                })
            }
            ArithmeticExpr::BinaryOp(BinaryOperator::LogicalAnd, left, right) => {
                Ok(i64::from(self.evaluate(left, depth)? != 0 && self.evaluate(right, depth)? != 0))
            }
            ArithmeticExpr::BinaryOp(BinaryOperator::LogicalOr, left, right) => {
                Ok(i64::from(self.evaluate(left, depth)? != 0 || self.evaluate(right, depth)? != 0))
            }
            ArithmeticExpr::BinaryOp(operator, left, right) => {
                let left = self.evaluate(left, depth)?;
                let right = self.evaluate(right, depth)?;
                binary(operator, left, right)
            }
            ArithmeticExpr::Conditional(condition, yes, no) => {
                let branch = if self.evaluate(condition, depth)? != 0 { yes } else { no };
                self.evaluate(branch, depth)
            }
            ArithmeticExpr::Assignment(target, value) => {
                let value = self.evaluate(value, depth)?;
                self.store(target, value)
            }
            ArithmeticExpr::BinaryAssignment(operator, target, value) => {
                let old = self.variable(target, depth)?;
                let operand = self.evaluate(value, depth)?;
                let value = binary(operator, old, operand)?;
                self.store(target, value)
            }
            ArithmeticExpr::UnaryAssignment(operator, target) => {
                let old = self.variable(target, depth)?;
                match operator {
                    UnaryAssignmentOperator::PrefixIncrement => self.store(target, old.wrapping_add(1)),
                    UnaryAssignmentOperator::PrefixDecrement => self.store(target, old.wrapping_sub(1)),
                    UnaryAssignmentOperator::PostfixIncrement => {
                        self.store(target, old.wrapping_add(1))?;
                        Ok(old)
                    }
                    UnaryAssignmentOperator::PostfixDecrement => {
                        self.store(target, old.wrapping_sub(1))?;
                        Ok(old)
                    }
                }
            }
        }
    }

    fn variable(&mut self, target: &ArithmeticTarget, depth: u32) -> Result<i64, String> {
        let name = name_of(target)?;
        let Some(value) = self.vars.value(name).map(str::to_owned) else { return Ok(0) };
        match value.trim().parse() {
            Ok(number) => Ok(number),
            Err(_) => self.evaluate_text(&value, depth + 1),
        }
    }

    fn store(&mut self, target: &ArithmeticTarget, value: i64) -> Result<i64, String> {
        self.vars.set(name_of(target)?, value.to_string())?;
        Ok(value)
    }
}

fn name_of(target: &ArithmeticTarget) -> Result<&str, String> {
    match target {
        ArithmeticTarget::Variable(name) => Ok(name),
        ArithmeticTarget::ArrayElement(name, _) => Err(format!("{name} is no array")),
    }
}

fn binary(operator: &BinaryOperator, left: i64, right: i64) -> Result<i64, String> {
    let shift = (right & 63) as u32;
    let is = i64::from;
    Ok(match operator {
        BinaryOperator::Power => {
            let exponent = u32::try_from(right).map_err(|_| "exponent less than 0".to_owned())?;
            left.wrapping_pow(exponent)
        }
        BinaryOperator::Multiply => left.wrapping_mul(right),
        BinaryOperator::Divide | BinaryOperator::Modulo if right == 0 => return Err("division by zero".to_owned()),
        BinaryOperator::Divide => left.wrapping_div(right),
        BinaryOperator::Modulo => left.wrapping_rem(right),
        BinaryOperator::Comma => right,
        BinaryOperator::Add => left.wrapping_add(right),
        BinaryOperator::Subtract => left.wrapping_sub(right),
        BinaryOperator::ShiftLeft => left.wrapping_shl(shift),
        BinaryOperator::ShiftRight => left.wrapping_shr(shift),
        BinaryOperator::LessThan => is(left < right),
        BinaryOperator::LessThanOrEqualTo => is(left <= right),
        BinaryOperator::GreaterThan => is(left > right),
        BinaryOperator::GreaterThanOrEqualTo => is(left >= right),
        BinaryOperator::Equals => is(left == right),
        BinaryOperator::NotEquals => is(left != right),
        BinaryOperator::BitwiseAnd => left & right,
        BinaryOperator::BitwiseXor => left ^ right,
        BinaryOperator::BitwiseOr => left | right,
        BinaryOperator::LogicalAnd => is(left != 0 && right != 0),
        BinaryOperator::LogicalOr => is(left != 0 || right != 0),
    })
}
