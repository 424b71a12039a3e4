//! What a module has: how much of it, and how it is indexed.

use wasm_encoder::ValType;
use wasmparser::{BinaryReader, ElementItems, SectionLimited, TypeRef};

use super::bulk::Bulk;
use super::{Result, Section, SplitError, sum};

/// What a module has, as far as these instructions are concerned.
#[derive(Default)]
pub(super) struct Spaces {
    pub(super) types: u32,
    pub(super) functions: u32,
    /// By what each is indexed.
    memories: Vec<ValType>,
    /// By what each is indexed, and what is in it.
    tables: Vec<(ValType, Option<ValType>)>,
    /// Bytes of each.
    data: Vec<usize>,
    /// Items of each.
    elements: Vec<u32>,
}

impl Spaces {
    pub(super) fn read(&mut self, id: u8, content: &[u8]) -> Result<()> {
        let reader = BinaryReader::new(content, 0);
        match id {
            Section::TYPES => {
                for group in SectionLimited::<wasmparser::RecGroup>::new(reader)? {
                    self.types = sum(self.types, group?.types().len())?;
                }
            }
            Section::IMPORTS => {
                for import in wasmparser::ImportSectionReader::new(reader)?.into_imports() {
                    match import?.ty {
                        TypeRef::Func(_) | TypeRef::FuncExact(_) => self.functions = sum(self.functions, 1)?,
                        TypeRef::Memory(memory) => self.memories.push(index_type(memory.memory64)),
                        TypeRef::Table(table) => self.add_table(&table),
                        TypeRef::Global(_) | TypeRef::Tag(_) => {}
                    }
                }
            }
            Section::FUNCTIONS => {
                let count = SectionLimited::<u32>::new(reader)?.count();
                self.functions = self.functions.checked_add(count).ok_or(SplitError::TooMuch)?;
            }
            Section::TABLES => {
                for table in wasmparser::TableSectionReader::new(reader)? {
                    self.add_table(&table?.ty);
                }
            }
            Section::MEMORIES => {
                for memory in wasmparser::MemorySectionReader::new(reader)? {
                    self.memories.push(index_type(memory?.memory64));
                }
            }
            Section::ELEMENTS => {
                for element in wasmparser::ElementSectionReader::new(reader)? {
                    self.elements.push(match element?.items {
                        ElementItems::Functions(items) => items.count(),
                        ElementItems::Expressions(_, items) => items.count(),
                    });
                }
            }
            Section::DATA => {
                for data in wasmparser::DataSectionReader::new(reader)? {
                    self.data.push(data?.data.len());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_table(&mut self, table: &wasmparser::TableType) {
        self.tables.push((index_type(table.table64), reference(table.element_type)));
    }

    /// What an instruction takes: to where, from where or with what, how much. None for one that isn't valid here, or can't move
    /// more than a piece.
    pub(super) fn params(&self, bulk: Bulk, piece: u32) -> Option<[ValType; 3]> {
        let memory = |index: u32| self.memories.get(index as usize).copied();
        let table = |index: u32| self.tables.get(index as usize).map(|table| table.0);
        let copied = |to, from| [to, from, if (to, from) == (ValType::I64, ValType::I64) { to } else { ValType::I32 }];
        Some(match bulk {
            Bulk::MemoryFill { mem } => [memory(mem)?, ValType::I32, memory(mem)?],
            Bulk::MemoryCopy { to, from } => copied(memory(to)?, memory(from)?),
            Bulk::MemoryInit { mem, data } => {
                self.data.get(data as usize).filter(|length| **length > piece as usize)?;
                [memory(mem)?, ValType::I32, ValType::I32]
            }
            Bulk::TableFill { table: index } => {
                let (index, element) = *self.tables.get(index as usize)?;
                [index, element?, index]
            }
            Bulk::TableCopy { to, from } => copied(table(to)?, table(from)?),
            Bulk::TableInit { table: index, elem } => {
                self.elements.get(elem as usize).filter(|count| **count > piece)?;
                [table(index)?, ValType::I32, ValType::I32]
            }
        })
    }
}

fn index_type(is_64: bool) -> ValType {
    if is_64 { ValType::I64 } else { ValType::I32 }
}

/// None for what this engine has no tables of: it collects no garbage, so there are functions only.
fn reference(element: wasmparser::RefType) -> Option<ValType> {
    use wasmparser::{AbstractHeapType, HeapType, UnpackedIndex};
    let heap_type = match element.heap_type() {
        HeapType::Abstract { shared: false, ty: AbstractHeapType::Func } => wasm_encoder::HeapType::FUNC,
        HeapType::Concrete(UnpackedIndex::Module(index)) => wasm_encoder::HeapType::Concrete(index),
        _ => return None,
    };
    Some(ValType::Ref(wasm_encoder::RefType { nullable: element.is_nullable(), heap_type }))
}
