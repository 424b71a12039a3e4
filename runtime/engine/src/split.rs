//! Instructions that move much at once, in pieces (TERM-04).
//!
//! A guest is asked whether it is to end, and lets others run, wherever it loops, calls or is called. `memory.fill` and its like
//! are one instruction however much they move, and gigabytes take seconds. So modules are changed a little before they are
//! compiled: what may move more than a [`PIECE`] calls a function, added to the module, that moves it in a loop, a piece at a time.
//! To the guest it is the same: what is out of bounds traps before anything is moved, and what overlaps is copied as it was.

use std::collections::HashMap;
use std::ops::Range;

use wasm_encoder::{BlockType, Encode, Function, InstructionSink, MemArg, RawSection, ValType};
use wasmparser::{
    BinaryReader, CodeSectionReader, ElementItems, Operator, SectionLimited, TypeRef, Validator, WasmFeatures,
};

/// Bytes, or elements of a table, that are moved at once: so few that nobody waits for them, and so many that a loop costs nothing.
const PIECE: u32 = 64 * 1024;

/// Components within components: far more than toolchains make.
const DEEPEST: usize = 100;

/// Sections of a module or component: far more than toolchains make.
const MOST_SECTIONS: usize = 1 << 20;

/// Goes into the names of compiled code: change it with what comes out of here.
pub(crate) const VERSION: u32 = 1;

/// Why a binary can't be split.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SplitError {
    #[error(transparent)]
    Unreadable(#[from] wasmparser::BinaryReaderError),
    #[error("it has more parts than a module can have")]
    TooMuch,
    #[error("components are nested more than {DEEPEST} deep")]
    TooDeep,
}

type Result<T, E = SplitError> = std::result::Result<T, E>;

/// A module or component that does the same in pieces; none if it has nothing to split. What is valid can be split.
pub(crate) fn split(binary: &[u8]) -> Result<Option<Vec<u8>>> {
    let pieces = split_by(binary, PIECE, 0)?;
    if pieces.is_some() {
        // What is added is there for whoever names it, so it has to be valid without. Which features there are is the compiler's affair.
        Validator::new_with_features(WasmFeatures::all()).validate_all(binary)?;
    }
    Ok(pieces)
}

/// Layer and version of the binary format say it: 1 is a core module, 0x1_000d a component.
pub(crate) fn is_component(binary: &[u8]) -> bool {
    binary.get(6) == Some(&1)
}

fn split_by(binary: &[u8], piece: u32, depth: usize) -> Result<Option<Vec<u8>>> {
    if depth > DEEPEST {
        return Err(SplitError::TooDeep);
    }
    let mut reader = BinaryReader::new(binary, 0);
    let header = reader.read_bytes(8)?;
    let mut sections = Vec::new();
    while !reader.eof() {
        let id = reader.read_u8()?;
        let content = reader.read_reader()?.range();
        sections.push(Section { id, content: &binary[content], new: None });
        if sections.len() > MOST_SECTIONS {
            return Err(SplitError::TooMuch);
        }
    }
    match is_component(header) {
        true => split_component(&mut sections, piece, depth)?,
        false => split_module(&mut sections, piece)?,
    }
    if sections.iter().all(|section| section.new.is_none()) {
        return Ok(None);
    }
    let mut out = header.to_vec();
    for section in &sections {
        out.push(section.id);
        let data = section.new.as_deref().unwrap_or(section.content);
        RawSection { id: section.id, data }.encode(&mut out);
    }
    Ok(Some(out))
}

/// A part of a module or component.
struct Section<'b> {
    id: u8,
    content: &'b [u8],
    /// What it is to contain instead.
    new: Option<Vec<u8>>,
}

impl Section<'_> {
    const CORE_MODULE: u8 = 1;
    const COMPONENT: u8 = 4;

    const CUSTOM: u8 = 0;
    const TYPES: u8 = 1;
    const IMPORTS: u8 = 2;
    const FUNCTIONS: u8 = 3;
    const TABLES: u8 = 4;
    const MEMORIES: u8 = 5;
    const ELEMENTS: u8 = 9;
    const CODE: u8 = 10;
    const DATA: u8 = 11;
}

fn split_component(sections: &mut [Section<'_>], piece: u32, depth: usize) -> Result<()> {
    for section in sections {
        if matches!(section.id, Section::CORE_MODULE | Section::COMPONENT) {
            section.new = split_by(section.content, piece, depth + 1)?;
        }
    }
    Ok(())
}

fn split_module(sections: &mut [Section<'_>], piece: u32) -> Result<()> {
    let mut spaces = Spaces::default();
    for section in sections.iter() {
        spaces.read(section.id, section.content)?;
    }
    let mut added = Added::default();
    for section in sections.iter_mut().filter(|section| section.id == Section::CODE) {
        section.new = split_code(section.content, &spaces, &mut added, piece)?;
    }
    if added.all.is_empty() {
        return Ok(());
    }
    let (mut types, mut functions, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (bulk, params)) in added.all.iter().enumerate() {
        types.extend([FUNCTION_TYPE, params.len() as u8]);
        params.iter().for_each(|param| param.encode(&mut types));
        types.push(0);
        sum(spaces.types, number)?.encode(&mut functions);
        sum(spaces.functions, number)?.encode(&mut names);
        bulk.name().encode(&mut names);
    }
    let count = added.all.len();
    let mut is_named = false;
    for section in sections {
        match section.id {
            Section::TYPES => section.new = Some(appended(section.content, count, &types)?),
            Section::FUNCTIONS => section.new = Some(appended(section.content, count, &functions)?),
            // Names are for people only: those that can't be read are no reason to do anything else.
            Section::CUSTOM if !is_named => {
                section.new = named(section.content, count, &names).unwrap_or_default();
                is_named = section.new.is_some();
            }
            _ => {}
        }
    }
    Ok(())
}

/// A section with more items at its end.
fn appended(content: &[u8], count: usize, items: &[u8]) -> Result<Vec<u8>> {
    let mut reader = BinaryReader::new(content, 0);
    let before = reader.read_var_u32()?;
    let mut out = Vec::with_capacity(content.len() + items.len() + 5);
    sum(before, count)?.encode(&mut out);
    out.extend(&content[reader.original_position()..]);
    out.extend(items);
    Ok(out)
}

/// The custom section with functions' names, with more of them; none if it is another one.
fn named(content: &[u8], count: usize, names: &[u8]) -> Result<Option<Vec<u8>>> {
    const FUNCTION_NAMES: u8 = 1;
    let mut reader = BinaryReader::new(content, 0);
    if reader.read_string()? != "name" {
        return Ok(None);
    }
    let mut out = content[..reader.original_position()].to_vec();
    while !reader.eof() {
        let id = reader.read_u8()?;
        let part = &content[reader.read_reader()?.range()];
        out.push(id);
        match id {
            FUNCTION_NAMES => appended(part, count, names)?.as_slice().encode(&mut out),
            _ => part.encode(&mut out),
        }
    }
    Ok(Some(out))
}

/// The code of a module with calls where much is moved, and what they call; none if nowhere.
fn split_code(content: &[u8], spaces: &Spaces, added: &mut Added, piece: u32) -> Result<Option<Vec<u8>>> {
    let reader = CodeSectionReader::new(BinaryReader::new(content, 0))?;
    let (count, mut at) = (reader.count(), reader.original_position());
    let mut bodies = Vec::new();
    // Bodies before this are in there.
    let mut copied = at;
    for function in reader {
        let function = function?;
        let begins = at;
        at = function.range().end;
        if let Some(body) = split_body(content, &function, spaces, added, piece)? {
            bodies.extend(&content[copied..begins]);
            body.as_slice().encode(&mut bodies);
            copied = at;
        }
    }
    if added.all.is_empty() {
        return Ok(None);
    }
    bodies.extend(&content[copied..]);
    for (bulk, params) in &added.all {
        Mover { bulk: *bulk, params: *params, piece }.function().encode(&mut bodies);
    }
    let mut out = Vec::with_capacity(bodies.len() + 5);
    sum(count, added.all.len())?.encode(&mut out);
    out.extend(bodies);
    Ok(Some(out))
}

/// A function with calls where it moves much; none if it doesn't.
fn split_body(
    content: &[u8],
    function: &wasmparser::FunctionBody<'_>,
    spaces: &Spaces,
    added: &mut Added,
    piece: u32,
) -> Result<Option<Vec<u8>>> {
    let Range { start, end } = function.range();
    let (mut out, mut copied) = (Vec::new(), start);
    let mut operators = function.get_operators_reader()?;
    // How much it moves is said right before, if it is known: whoever branches here comes after an operator of another kind.
    let mut is_little = false;
    while !operators.eof() {
        let (operator, at) = operators.read_with_offset()?;
        if !is_little
            && let Some(bulk) = Bulk::of(&operator)
            && let Some(params) = spaces.params(bulk, piece)
        {
            out.extend(&content[copied..at]);
            out.push(CALL);
            sum(spaces.functions, added.number(bulk, params))?.encode(&mut out);
            copied = operators.original_position();
        }
        is_little = match operator {
            Operator::I32Const { value } => value.cast_unsigned() <= piece,
            Operator::I64Const { value } => value.cast_unsigned() <= u64::from(piece),
            _ => false,
        };
    }
    if copied == start {
        return Ok(None);
    }
    out.extend(&content[copied..end]);
    Ok(Some(out))
}

fn sum(count: u32, more: usize) -> Result<u32> {
    u32::try_from(more).ok().and_then(|more| count.checked_add(more)).ok_or(SplitError::TooMuch)
}

const CALL: u8 = 0x10;
const FUNCTION_TYPE: u8 = 0x60;

/// The functions that are added, in order, with what they take.
#[derive(Default)]
struct Added {
    all: Vec<(Bulk, [ValType; 3])>,
    numbers: HashMap<Bulk, usize>,
}

impl Added {
    fn number(&mut self, bulk: Bulk, params: [ValType; 3]) -> usize {
        *self.numbers.entry(bulk).or_insert_with(|| {
            self.all.push((bulk, params));
            self.all.len() - 1
        })
    }
}

/// What a module has, as far as these instructions are concerned.
#[derive(Default)]
struct Spaces {
    types: u32,
    functions: u32,
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
    fn read(&mut self, id: u8, content: &[u8]) -> Result<()> {
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
    fn params(&self, bulk: Bulk, piece: u32) -> Option<[ValType; 3]> {
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

/// An instruction that moves as much as it is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Bulk {
    MemoryFill { mem: u32 },
    MemoryCopy { to: u32, from: u32 },
    MemoryInit { mem: u32, data: u32 },
    TableFill { table: u32 },
    TableCopy { to: u32, from: u32 },
    TableInit { table: u32, elem: u32 },
}

impl Bulk {
    fn of(operator: &Operator<'_>) -> Option<Self> {
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
    fn name(self) -> &'static str {
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
    fn has_source(self) -> bool {
        !matches!(self, Self::MemoryFill { .. } | Self::TableFill { .. })
    }

    fn encode(self, code: &mut InstructionSink<'_>) {
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

/// The function that does what an instruction does.
struct Mover {
    bulk: Bulk,
    params: [ValType; 3],
    piece: u32,
}

/// Its parameters.
const TO: u32 = 0;
const FROM: u32 = 1;
const COUNT: u32 = 2;

impl Mover {
    fn function(&self) -> Function {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        // Little is moved at once.
        self.count(&mut code);
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
        self.count(code);
        self.constant(code, COUNT, self.piece);
        match self.of(COUNT) {
            ValType::I64 => code.i64_sub(),
            _ => code.i32_sub(),
        };
        code.local_set(COUNT);
    }

    fn again_if_much_is_left(&self, code: &mut InstructionSink<'_>) {
        self.count(code);
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

    fn count(&self, code: &mut InstructionSink<'_>) {
        code.local_get(COUNT);
    }

    /// The count as a number of a place's type, which is never the smaller one.
    fn count_as(&self, code: &mut InstructionSink<'_>, place: u32) {
        self.count(code);
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
        match self.of(place) {
            ValType::I64 => code.i64_sub(),
            _ => code.i32_sub(),
        };
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

#[cfg(test)]
mod tests;
