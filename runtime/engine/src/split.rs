//! Instructions that move much at once, in pieces (TERM-04).
//!
//! A guest is asked whether it is to end, and lets others run, wherever it loops, calls or is called. `memory.fill` and its like
//! are one instruction however much they move, and gigabytes take seconds. So modules are changed a little before they are
//! compiled: what may move more than a [`PIECE`] calls a function, added to the module, that moves it in a loop, a piece at a time.
//! To the guest it is the same: what is out of bounds traps before anything is moved, and what overlaps is copied as it was.

mod bulk;
mod mover;
mod spaces;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

use wasm_encoder::{Encode, RawSection, ValType};
use wasmparser::{BinaryReader, CodeSectionReader, Operator, Validator, WasmFeatures};

use self::bulk::Bulk;
use self::mover::Mover;
use self::spaces::Spaces;

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
