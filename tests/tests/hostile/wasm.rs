//! Modules in binary form, well made or not.

/// What every module begins with.
const HEADER: &[u8] = b"\0asm\x01\0\0\0";

/// Numbers of sections.
pub(crate) const TYPES: u8 = 1;
pub(crate) const IMPORTS: u8 = 2;
pub(crate) const FUNCTIONS: u8 = 3;
pub(crate) const EXPORTS: u8 = 7;
pub(crate) const CODE: u8 = 10;
pub(crate) const CUSTOM: u8 = 0;

/// A number as Wasm writes it (LEB128).
pub(crate) fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        bytes.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return bytes;
        }
    }
}

/// Bytes after their length.
pub(crate) fn sized(bytes: &[u8]) -> Vec<u8> {
    [&number(bytes.len()), bytes].concat()
}

/// A section with so many entries.
pub(crate) fn section(id: u8, count: usize, entries: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut content = number(count);
    entries.into_iter().for_each(|entry| content.extend(entry));
    raw_section(id, &content)
}

/// A section with this content.
pub(crate) fn raw_section(id: u8, content: &[u8]) -> Vec<u8> {
    [vec![id], sized(content)].concat()
}

/// A module of these sections.
pub(crate) fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    [HEADER.to_vec(), sections.concat()].concat()
}

/// The type of functions without parameters and results, as the only one.
pub(crate) fn one_type() -> Vec<u8> {
    section(TYPES, 1, [vec![0x60, 0, 0]])
}

/// So many functions of that type.
pub(crate) fn functions(count: usize) -> Vec<u8> {
    section(FUNCTIONS, count, std::iter::repeat_n(vec![0], count))
}

/// An export of a function.
pub(crate) fn export(name: &[u8], function: usize) -> Vec<u8> {
    [sized(name), vec![0], number(function)].concat()
}

/// The function with this number as `_start`.
pub(crate) fn start(function: usize) -> Vec<u8> {
    section(EXPORTS, 1, [export(b"_start", function)])
}

/// A function without locals and with these instructions.
pub(crate) fn body(code: &[u8]) -> Vec<u8> {
    sized(&[&[0], code, &[0x0b]].concat())
}

/// A module whose only function has these instructions.
pub(crate) fn with_code(code: &[u8]) -> Vec<u8> {
    module(&[one_type(), functions(1), start(0), section(CODE, 1, [body(code)])])
}
