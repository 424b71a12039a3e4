//! The functions that are added: each does what an instruction does, a piece at a time.

use wasm_encoder::{BlockType, Function, InstructionSink, MemArg, ValType};

use super::bulk::Bulk;

/// The function that does what an instruction does.
pub(super) struct Mover {
    pub(super) bulk: Bulk,
    pub(super) params: [ValType; 3],
    pub(super) piece: u32,
}

/// Its parameters.
const TO: u32 = 0;
const FROM: u32 = 1;
const COUNT: u32 = 2;

impl Mover {
    pub(super) fn function(&self) -> Function {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        // Little is moved at once.
        code.local_get(COUNT);
        self.constant(&mut code, COUNT, self.piece);
        self.unsigned(&mut code, COUNT, Compare::LessOrEqual);
        self.all_and_return_if(&mut code);
        self.trap_if_out_of_bounds(&mut code);
        if self.may_overlap() {
            code.local_get(TO).local_get(FROM);
            self.unsigned(&mut code, TO, Compare::Greater);
            code.if_(BlockType::Empty);
            self.downwards(&mut code);
            code.else_();
            self.upwards(&mut code);
            code.end();
        } else {
            self.upwards(&mut code);
        }
        self.all(&mut code);
        code.end();
        function
    }

    /// What is read may be what is written, under another index as well: an import can be given twice. Then the end that isn't overwritten
    /// before it is read comes first; otherwise it doesn't matter.
    fn may_overlap(&self) -> bool {
        matches!(self.bulk, Bulk::MemoryCopy { .. } | Bulk::TableCopy { .. }) && self.of(TO) == self.of(FROM)
    }

    /// The last element is there, or nothing is moved.
    fn trap_if_out_of_bounds(&self, code: &mut InstructionSink<'_>) {
        self.trap_if_beyond_all(code, TO);
        if self.bulk.has_source() {
            self.trap_if_beyond_all(code, FROM);
        }
        self.last(code, TO);
        match self.bulk {
            Bulk::MemoryCopy { to, from } => {
                let at = |memory_index| MemArg { offset: 0, align: 0, memory_index };
                code.i32_load8_u(at(to)).drop();
                self.last(code, FROM);
                code.i32_load8_u(at(from)).drop();
            }
            Bulk::TableCopy { to, from } => {
                code.table_get(to).drop();
                self.last(code, FROM);
                code.table_get(from).drop();
            }
            // What is read can't be written, so the last one can as well be moved first.
            Bulk::MemoryInit { .. } | Bulk::TableInit { .. } => {
                self.last(code, FROM);
                self.constant(code, COUNT, 1);
                self.bulk.encode(code);
            }
            Bulk::MemoryFill { .. } | Bulk::TableFill { .. } => {
                code.local_get(FROM);
                self.constant(code, COUNT, 1);
                self.bulk.encode(code);
            }
        }
    }

    /// Moves pieces from the start until no more than one is left.
    fn upwards(&self, code: &mut InstructionSink<'_>) {
        code.loop_(BlockType::Empty);
        code.local_get(TO).local_get(FROM);
        self.constant(code, COUNT, self.piece);
        self.bulk.encode(code);
        let places = if self.bulk.has_source() { &[TO, FROM][..] } else { &[TO] };
        for place in places {
            code.local_get(*place);
            self.constant(code, *place, self.piece);
            self.add(code, *place);
            code.local_set(*place);
        }
        self.less_to_do(code);
        self.again_if_much_is_left(code);
        code.end();
    }

    /// Moves pieces from the end until no more than one is left.
    fn downwards(&self, code: &mut InstructionSink<'_>) {
        code.loop_(BlockType::Empty);
        self.less_to_do(code);
        for place in [TO, FROM] {
            code.local_get(place);
            self.count_as(code, place);
            self.add(code, place);
        }
        self.constant(code, COUNT, self.piece);
        self.bulk.encode(code);
        self.again_if_much_is_left(code);
        code.end();
    }

    fn less_to_do(&self, code: &mut InstructionSink<'_>) {
        code.local_get(COUNT);
        self.constant(code, COUNT, self.piece);
        self.subtract(code, COUNT);
        code.local_set(COUNT);
    }

    fn again_if_much_is_left(&self, code: &mut InstructionSink<'_>) {
        code.local_get(COUNT);
        self.constant(code, COUNT, self.piece);
        self.unsigned(code, COUNT, Compare::Greater);
        code.br_if(0);
    }

    /// Where the end of a place would be beyond all numbers the instruction itself traps.
    fn trap_if_beyond_all(&self, code: &mut InstructionSink<'_>, place: u32) {
        self.last(code, place);
        code.local_get(place);
        self.unsigned(code, place, Compare::Less);
        self.all_and_return_if(code);
    }

    fn all_and_return_if(&self, code: &mut InstructionSink<'_>) {
        code.if_(BlockType::Empty);
        self.all(code);
        code.return_().end();
    }

    fn all(&self, code: &mut InstructionSink<'_>) {
        code.local_get(TO).local_get(FROM).local_get(COUNT);
        self.bulk.encode(code);
    }

    /// The count as a number of a place's type, which is never the smaller one.
    fn count_as(&self, code: &mut InstructionSink<'_>, place: u32) {
        code.local_get(COUNT);
        if (self.of(place), self.of(COUNT)) == (ValType::I64, ValType::I32) {
            code.i64_extend_i32_u();
        }
    }

    /// The place of the last element.
    fn last(&self, code: &mut InstructionSink<'_>, place: u32) {
        code.local_get(place);
        self.count_as(code, place);
        self.add(code, place);
        self.constant(code, place, 1);
        self.subtract(code, place);
    }

    fn of(&self, local: u32) -> ValType {
        self.params[local as usize]
    }

    fn constant(&self, code: &mut InstructionSink<'_>, like: u32, value: u32) {
        match self.of(like) {
            ValType::I64 => code.i64_const(i64::from(value)),
            _ => code.i32_const(value.cast_signed()),
        };
    }

    fn add(&self, code: &mut InstructionSink<'_>, like: u32) {
        match self.of(like) {
            ValType::I64 => code.i64_add(),
            _ => code.i32_add(),
        };
    }

    fn subtract(&self, code: &mut InstructionSink<'_>, like: u32) {
        match self.of(like) {
            ValType::I64 => code.i64_sub(),
            _ => code.i32_sub(),
        };
    }

    fn unsigned(&self, code: &mut InstructionSink<'_>, like: u32, compare: Compare) {
        match (self.of(like), compare) {
            (ValType::I64, Compare::Less) => code.i64_lt_u(),
            (ValType::I64, Compare::LessOrEqual) => code.i64_le_u(),
            (ValType::I64, Compare::Greater) => code.i64_gt_u(),
            (_, Compare::Less) => code.i32_lt_u(),
            (_, Compare::LessOrEqual) => code.i32_le_u(),
            (_, Compare::Greater) => code.i32_gt_u(),
        };
    }
}

#[derive(Clone, Copy)]
enum Compare {
    Less,
    LessOrEqual,
    Greater,
}
