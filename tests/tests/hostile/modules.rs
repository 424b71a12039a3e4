//! Attacks on whoever reads and compiles modules: files that are none, or more than anybody needs.

use crate::arena::{Arena, withstand};
use crate::attack::Attack;
use crate::wasm::{CODE, CUSTOM, EXPORTS, IMPORTS};
use crate::wasm::{body, export, functions, module, number, one_type, raw_section, section, sized, start, with_code};

#[test]
fn files_that_are_no_modules_are_refused() {
    let nothing = with_code(&[]);
    let torn = nothing[..nothing.len() - 3].to_vec();
    let with_section = |bytes: Vec<u8>| [nothing.clone(), bytes].concat();
    withstand([
        Attack::new("an empty file", Vec::new()).refused("it is empty"),
        Attack::new("64 MB of nothing", vec![0; 64 << 20]).refused("").grows(80),
        Attack::new("a program for Linux", b"\x7fELF\x02\x01\x01".to_vec()).refused("ELF"),
        Attack::new("the magic number alone", b"\0asm".to_vec()).refused(""),
        Attack::new("a module of version 99", b"\0asm\x63\0\0\0".to_vec()).refused(""),
        Attack::new("a module that is torn", torn).refused(""),
        Attack::new("a section that is longer than the file", with_section(b"\x00\xff\xff\xff\xff\x0f".to_vec()))
            .refused(""),
        Attack::new("a number without end", with_section([vec![CUSTOM], vec![0xff; 64]].concat())).refused("truncated"),
        Attack::new("a custom section without name", with_section(raw_section(CUSTOM, &[]))).refused("not valid"),
        Attack::new("a custom section with a name of 4 GB", with_section(raw_section(CUSTOM, b"\xff\xff\xff\xff\x0f")))
            .refused(""),
        Attack::new("sections in the wrong order", module(&[functions(1), one_type()])).refused("unknown type 0"),
        Attack::new("a count of four thousand million", module(&[section(1, u32::MAX as usize, [])]))
            .refused("exceeds limit"),
        Attack::new("a component that is torn inside", b"\0asm\x0d\0\x01\0\x01\x09\0asm\x01\0\0\0\xff".to_vec())
            .refused("not valid"),
        Attack::new("instructions that are none", with_code(&[0xff; 100])).refused("illegal opcode"),
        Attack::new("no _start", "(module)".to_owned()).refused("_start"),
        Attack::new("a _start with parameters", "(module (func (export \"_start\") (param i32)))".to_owned())
            .refused("_start"),
        Attack::new("a _start that is a memory", "(module (memory (export \"_start\") 1))".to_owned())
            .refused("_start"),
        Attack::new(
            "an import of nobody's",
            "(module (import \"host\" \"system\" (func)) (func (export \"_start\")))".to_owned(),
        )
        .refused("host::system"),
        Attack::new(
            "an import of another type",
            "(module (import \"wasi_snapshot_preview1\" \"fd_close\" (func (param i64))) (func (export \"_start\")))"
                .to_owned(),
        )
        .refused("fd_close"),
        Attack::new("text without end of it", "(".repeat(1 << 20)).refused(""),
    ]);
}

#[test]
fn modules_that_are_too_much_are_compiled_in_bounds_or_not_at_all() {
    withstand([
        Attack::new("5,000 functions", many_functions(5_000)).exits(0).grows(200),
        Attack::new("two million functions", many_functions(2_000_000)).refused("").grows(400),
        Attack::new("a function of 500 KB", with_code(&b"\x41\x01\x1a".repeat(170_000))).exits(0).grows(600),
        Attack::new("a function of 8 MB", with_code(&[1; 8 << 20])).refused(""),
        Attack::new("10,000 nested blocks", with_code(&nested(10_000))).grows(400).exits(0),
        Attack::new("a function with a million locals", with_locals(1_000_000)).refused(""),
        Attack::new("50,000 locals that all live", with_locals(50_000)).exits(0),
        Attack::new("100,000 exports", exports(100_000)).exits(0).grows(256),
        Attack::new("100,000 imports", imports(100_000)).refused("nobody::").grows(256),
        Attack::new("a name of a megabyte", imports_of(&"n".repeat(1 << 20))).refused(""),
        Attack::new("names of control characters", imports_of("\u{1b}[2J\r\n\0")).refused(""),
        Attack::new("a custom section of 32 MB", custom(32 << 20)).exits(0).grows(256),
        Attack::new("100,000 custom sections", customs(100_000)).exits(0),
        Attack::new("200 components in each other", components(200)).refused(""),
        Attack::new("a component with a thousand instances", instances(1000)).refused(""),
        Attack::new("a type that is twice the one before, thirty times", doubled_types(30)).refused(""),
    ]);
}

/// A small module can keep a compiler for hours, or have it take all memory.
// spec: TERM-04
#[test]
fn modules_that_are_bombs_are_compiled_for_so_long_and_with_so_much_and_no_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, "husk: {compileTimeout: 2s, compileMemory: 48Mi}").expect("written");
    let config = file.to_str().expect("text");
    Arena::new(&["--config", config]).withstands([
        Attack::new("200 KB that take a minute", with_code(&nested(70_000)))
            .not_created("takes more than 2 s of a processor"),
        Attack::new("1 MB that takes a hundred", with_code(&b"\x41\x01\x1a".repeat(340_000)))
            .not_created("takes more than 50331648 bytes of memory"),
        // Nobody tries that again.
        Attack::new("the first once more", with_code(&nested(70_000)))
            .not_created("takes more than 2 s of a processor"),
        Attack::new("one who is let wait and asks for nothing more", with_code(&[])).exits(0),
    ]);
}

fn many_functions(count: usize) -> Vec<u8> {
    let code = section(CODE, count, std::iter::repeat_n(body(&[]), count));
    module(&[one_type(), functions(count), start(0), code])
}

fn nested(depth: usize) -> Vec<u8> {
    [b"\x02\x40".repeat(depth), vec![0x0b; depth]].concat()
}

fn with_locals(count: usize) -> Vec<u8> {
    let function = [vec![1], number(count), vec![0x7e, 0x0b]].concat();
    module(&[one_type(), functions(1), start(0), section(CODE, 1, [sized(&function)])])
}

fn exports(count: usize) -> Vec<u8> {
    let all = (0..count).map(|n| export(format!("e{n}").as_bytes(), 0)).chain([export(b"_start", 0)]);
    module(&[one_type(), functions(1), section(EXPORTS, count + 1, all), section(CODE, 1, [body(&[])])])
}

fn import(name: &str) -> Vec<u8> {
    [sized(b"nobody"), sized(name.as_bytes()), vec![0, 0]].concat()
}

fn imports(count: usize) -> Vec<u8> {
    let all = (0..count).map(|n| import(&format!("i{n}")));
    module(&[one_type(), section(IMPORTS, count, all), functions(1), start(count), section(CODE, 1, [body(&[])])])
}

fn imports_of(name: &str) -> Vec<u8> {
    module(&[one_type(), section(IMPORTS, 1, [import(name)]), functions(1), start(1), section(CODE, 1, [body(&[])])])
}

fn custom(size: usize) -> Vec<u8> {
    [with_code(&[]), raw_section(CUSTOM, &[sized(b"big"), vec![7; size]].concat())].concat()
}

fn customs(count: usize) -> Vec<u8> {
    [with_code(&[]), raw_section(CUSTOM, &sized(b"small")).repeat(count)].concat()
}

fn components(depth: usize) -> String {
    format!("{}{}", "(component ".repeat(depth), ")".repeat(depth))
}

fn instances(count: usize) -> String {
    format!("(component (core module $m (memory 1)) {})", "(core instance (instantiate $m))".repeat(count))
}

/// Written down it is short; what it stands for has 2^n parts.
fn doubled_types(count: usize) -> String {
    let double = |n: usize| format!("(type $t{} (tuple $t{n} $t{n}))", n + 1);
    format!("(component (type $t0 (tuple u8 u8)) {})", (0..count).map(double).collect::<String>())
}
