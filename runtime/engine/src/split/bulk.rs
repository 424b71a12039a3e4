//! The instructions that move as much as they are told.

use wasm_encoder::InstructionSink;
use wasmparser::Operator;

/// An instruction that moves as much as it is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Bulk {
    MemoryFill { mem: u32 },
    MemoryCopy { to: u32, from: u32 },
    MemoryInit { mem: u32, data: u32 },
    TableFill { table: u32 },
    TableCopy { to: u32, from: u32 },
    TableInit { table: u32, elem: u32 },
}

impl Bulk {
    pub(super) fn of(operator: &Operator<'_>) -> Option<Self> {
        Some(match *operator {
            Operator::MemoryFill { mem } => Self::MemoryFill { mem },
            Operator::MemoryCopy { dst_mem: to, src_mem: from } => Self::MemoryCopy { to, from },
            Operator::MemoryInit { data_index: data, mem } => Self::MemoryInit { mem, data },
            Operator::TableFill { table } => Self::TableFill { table },
            Operator::TableCopy { dst_table: to, src_table: from } => Self::TableCopy { to, from },
            Operator::TableInit { elem_index: elem, table } => Self::TableInit { table, elem },
            _ => return None,
        })
    }

    /// What it is called in the text format, and where a guest was when it trapped in it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MemoryFill { .. } => "memory.fill",
            Self::MemoryCopy { .. } => "memory.copy",
            Self::MemoryInit { .. } => "memory.init",
            Self::TableFill { .. } => "table.fill",
            Self::TableCopy { .. } => "table.copy",
            Self::TableInit { .. } => "table.init",
        }
    }

    /// Its second operand is a place as well.
    pub(super) fn has_source(self) -> bool {
        !matches!(self, Self::MemoryFill { .. } | Self::TableFill { .. })
    }

    pub(super) fn encode(self, code: &mut InstructionSink<'_>) {
        match self {
            Self::MemoryFill { mem } => code.memory_fill(mem),
            Self::MemoryCopy { to, from } => code.memory_copy(to, from),
            Self::MemoryInit { mem, data } => code.memory_init(mem, data),
            Self::TableFill { table } => code.table_fill(table),
            Self::TableCopy { to, from } => code.table_copy(to, from),
            Self::TableInit { table, elem } => code.table_init(table, elem),
        };
    }
}
