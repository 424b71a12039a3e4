use std::sync::LazyLock;

use proptest::prelude::*;
use wasmtime::{Engine, Instance, Module, Ref, Store, Trap};

use super::*;

/// So small that everything that happens with big ones happens here.
const TINY: u32 = 5;
const SLOTS: u64 = 40;

/// What is called, and what it does with where to (0), where from (1) and how much (2). `$a` and `$t` are indexed by the first
/// type, `$b` and `$u` by 32 bits.
const OPERATIONS: [(&str, &str); 10] = [
    ("fill", "(memory.fill $a {0} (i32.wrap_i64 (local.get 1)) {2})"),
    ("copy within", "(memory.copy $a $a {0} {1} {2})"),
    ("copy there", "(memory.copy $b $a (i32.wrap_i64 (local.get 0)) {1} (i32.wrap_i64 (local.get 2)))"),
    ("copy here", "(memory.copy $a $b {0} (i32.wrap_i64 (local.get 1)) (i32.wrap_i64 (local.get 2)))"),
    ("init", "(memory.init $a $d {0} (i32.wrap_i64 (local.get 1)) (i32.wrap_i64 (local.get 2)))"),
    ("table fill", "(table.fill $t {0} (ref.func $f2) {2})"),
    ("table copy within", "(table.copy $t $t {0} {1} {2})"),
    ("table copy there", "(table.copy $u $t (i32.wrap_i64 (local.get 0)) {1} (i32.wrap_i64 (local.get 2)))"),
    ("table copy here", "(table.copy $t $u {0} (i32.wrap_i64 (local.get 1)) (i32.wrap_i64 (local.get 2)))"),
    ("table init", "(table.init $t $e {0} (i32.wrap_i64 (local.get 1)) (i32.wrap_i64 (local.get 2)))"),
];

/// A module with all of them, what moves being as different as can be.
fn everything(index: &str) -> String {
    let place = |number: usize| match index {
        "i64" => format!("(local.get {number})"),
        _ => format!("(i32.wrap_i64 (local.get {number}))"),
    };
    let operations: String = OPERATIONS
        .iter()
        .map(|(name, body)| {
            let body = (0..3).fold((*body).to_owned(), |body, n| body.replace(&format!("{{{n}}}"), &place(n)));
            format!("(func (export {name:?}) (param i64 i64 i64) {body})\n")
        })
        .collect();
    let functions: String = (0..7).map(|n| format!("(func $f{n} (result i32) (i32.const {n}))\n")).collect();
    let data: String = (0..200).map(|n| format!("\\{:02x}", n * 7 % 256)).collect();
    let others: String = (1..SLOTS).map(|n| format!("$f{} ", n * 5 % 7)).collect();
    let members: String = (0..SLOTS).map(|n| format!("$f{} ", n * 3 % 7)).collect();
    format!(
        r#"(module
            (memory $a (export "a") {index} 1) (memory $b (export "b") 1)
            (table $t (export "t") {index} {SLOTS} funcref) (table $u (export "u") {SLOTS} funcref)
            {functions} {operations}
            (data $d "{data}") (data (memory $b) (i32.const 65300) "{data}")
            (data (memory $a) ({index}.const 0) "{data}") (data (memory $a) ({index}.const 65336) "{data}")
            (elem $e func {members}) (elem (table $u) (i32.const 0) func {members})
            (elem (table $t) ({index}.const 1) func {others}))"#
    )
}

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);
/// The modules, by how they are indexed, as they are and in pieces.
static MODULES: LazyLock<[[Module; 2]; 2]> = LazyLock::new(|| {
    ["i32", "i64"].map(|index| {
        let whole = wat::parse_str(everything(index)).expect("text");
        let pieces = split_by(&whole, TINY, 0).expect("readable").expect("something to split");
        [whole, pieces].map(|binary| Module::from_binary(&ENGINE, &binary).expect("valid"))
    })
});

/// A module at work.
struct Life(Store<()>, Instance);

impl Life {
    fn of(module: &Module) -> Self {
        let mut store = Store::new(&ENGINE, ());
        let instance = Instance::new(&mut store, module, &[]).expect("instance");
        Self(store, instance)
    }

    fn call(&mut self, name: &str, operands: (u64, u64, u64)) -> Result<(), Option<Trap>> {
        let function = self.1.get_typed_func::<(u64, u64, u64), ()>(&mut self.0, name).expect("function");
        function.call(&mut self.0, operands).map_err(|error| error.downcast_ref().copied())
    }

    fn memories(&mut self) -> [Vec<u8>; 2] {
        ["a", "b"].map(|name| self.1.get_memory(&mut self.0, name).expect("memory").data(&self.0).to_vec())
    }

    fn tables(&mut self) -> Vec<Option<i32>> {
        let mut all = Vec::new();
        for name in ["t", "u"] {
            let table = self.1.get_table(&mut self.0, name).expect("table");
            for slot in 0..SLOTS {
                let Some(Ref::Func(function)) = table.get(&mut self.0, slot) else { panic!("a function") };
                let number = function.map(|f| f.typed::<(), i32>(&self.0).expect("type"));
                all.push(number.map(|f| f.call(&mut self.0, ()).expect("a number")));
            }
        }
        all
    }
}

fn place() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..64_u64, 4 => 65_480..65_545_u64, 1 => (0..64_u64).prop_map(|n| (1 << 32) - n), 1 => (0..64_u64).prop_map(|n| u64::MAX - n)]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..48_u64, 1 => 65_500..65_540_u64, 1 => (0..64_u64).prop_map(|n| (1 << 32) - n), 1 => (0..64_u64).prop_map(|n| u64::MAX - n)]
}

proptest! {
    #[test]
    fn in_pieces_is_as_at_once(
        is_64 in any::<bool>(),
        steps in proptest::collection::vec((0..OPERATIONS.len(), place(), place(), count()), 1..12),
    ) {
        let mut lives = MODULES[usize::from(is_64)].each_ref().map(Life::of);
        for (which, to, from, count) in steps {
            let name = OPERATIONS[which].0;
            let [whole, pieces] = lives.each_mut().map(|life| life.call(name, (to, from, count)));
            prop_assert_eq!(whole, pieces, "{} of {} from {} to {}", name, count, from, to);
            let [whole, pieces] = lives.each_mut().map(|life| (life.memories(), life.tables()));
            prop_assert!(whole == pieces, "{name} of {count} from {from} to {to}");
        }
    }

    #[test]
    fn whatever_the_bytes_nothing_panics(at in any::<proptest::sample::Index>(), byte in any::<u8>(), length in any::<proptest::sample::Index>()) {
        let mut binary = wat::parse_str(everything("i64")).expect("text");
        let at = at.index(binary.len());
        binary[at] = byte;
        binary.truncate(length.index(binary.len() * 4));
        let is_valid = Module::validate(&ENGINE, &binary).is_ok();
        match split(&binary) {
            Ok(Some(pieces)) => {
                let of_pieces = Module::validate(&ENGINE, &pieces);
                prop_assert_eq!(of_pieces.is_ok(), is_valid, "{:?} {:?}", of_pieces, Module::validate(&ENGINE, &binary));
            }
            Ok(None) => {}
            Err(error) => prop_assert!(!is_valid, "{}", error),
        }
    }
}

#[test]
fn what_moves_little_stays_as_it_is() {
    let module = |count: &str| {
        let text =
            format!(r#"(module (memory 1) (func (param i32) (memory.fill (i32.const 0) (i32.const 0) {count})))"#);
        pieces_of(&text)
    };
    assert_eq!(module("(i32.const 65536)"), None);
    assert!(module("(i32.const 65537)").is_some());
    assert!(module("(i32.const -1)").is_some());
    assert!(module("(local.get 0)").is_some());
    // In code that is never reached the operands may be anything.
    assert!(module("(local.get 0) unreachable").is_some());
    assert_eq!(pieces_of("(module (memory 1) (func))"), None);
    assert!(split(b"short").is_err());
}

/// The text's binary, in pieces if there is anything to split. Both are valid.
fn pieces_of(text: &str) -> Option<Vec<u8>> {
    let whole = wat::parse_str(text).expect("text");
    wasmtime::Module::validate(&ENGINE, &whole).expect("valid");
    let pieces = split(&whole).expect("readable");
    pieces.inspect(|pieces| wasmtime::Module::validate(&ENGINE, pieces).expect("still valid"))
}

#[test]
fn modules_of_all_kinds_are_split() {
    let kinds = [
        (
            "imports",
            r#"(import "a" "f" (func)) (import "a" "m" (memory 1)) (import "a" "t" (table 1 funcref)) (import "a" "g" (global i32))"#,
        ),
        (
            "recursive types",
            "(rec (type $a (func (param i32))) (type $b (func))) (type $c (func (result i32))) (memory 1) (table 1 funcref)",
        ),
        (
            "vectors",
            "(memory 1) (table 1 funcref) (func (drop (i8x16.add (v128.const i64x2 1 2) (v128.const i64x2 3 4))))",
        ),
        (
            "names",
            r#"(memory 1) (table 1 funcref) (func $named (export "named")) (@custom "name" (after last) "junk")"#,
        ),
        (
            "typed references",
            "(type $f (func)) (memory 1) (table 1 funcref) (table $typed 1 (ref null $f)) (func (param i32)
            (table.fill $typed (i32.const 0) (ref.null $f) (local.get 0)))",
        ),
    ];
    for (what, parts) in kinds {
        let text = format!(
            "(module {parts} (func (param i32)
            (memory.fill (i32.const 0) (i32.const 0) (local.get 0))
            (table.fill (i32.const 0) (ref.null func) (local.get 0))
            (memory.copy (i32.const 0) (i32.const 0) (local.get 0))
            (table.copy (i32.const 0) (i32.const 0) (local.get 0)) unreachable (memory.fill)))"
        );
        assert!(pieces_of(&text).is_some(), "{what}");
    }
}

#[test]
fn segments_that_are_little_stay_as_they_are() {
    let with = |bytes: usize| {
        let data = "x".repeat(bytes);
        pieces_of(&format!(
            r#"(module (memory 2) (data $d "{data}") (func (param i32) (memory.init $d (i32.const 0) (i32.const 0) (local.get 0))))"#
        ))
    };
    assert_eq!(with(65_536), None);
    assert!(with(65_537).is_some());
}

#[test]
fn what_no_toolchain_makes_is_refused() {
    let component = [b"\0asm", &[0x0d, 0, 1, 0][..]].concat();
    let mut nested = component.clone();
    for _ in 0..10_000 {
        let mut outer = component.clone();
        outer.push(Section::COMPONENT);
        nested.as_slice().encode(&mut outer);
        nested = outer;
    }
    assert!(matches!(split(&nested), Err(SplitError::TooDeep)));
    let module = wat::parse_str("(module)").expect("text");
    let sections = |section: &[u8], count: usize| [module.clone(), section.repeat(count)].concat();
    assert!(matches!(split(&sections(&[0, 1, 0], MOST_SECTIONS)), Ok(None)));
    assert!(matches!(split(&sections(&[0, 1, 0], MOST_SECTIONS + 1)), Err(SplitError::TooMuch)));
    // As many functions as there are numbers, and one more.
    let functions = [Section::FUNCTIONS, 5, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(matches!(split(&sections(&functions, 2)), Err(SplitError::TooMuch)));
}

#[test]
fn nobody_can_name_what_is_added() {
    let text = r#"(module (memory 1)
        (func (param i32) (memory.fill (i32.const 0) (i32.const 0) (local.get 0))) (export "x" (func 0)))"#;
    let mut binary = wat::parse_str(text).expect("text");
    assert!(split(&binary).is_ok_and(|pieces| pieces.is_some()));
    let export = [1, b'x', 0, 0];
    let at = binary.windows(4).position(|four| four == export).expect("the export");
    binary[at + 3] = 1;
    assert!(matches!(split(&binary), Err(SplitError::Unreadable(error)) if error.message().contains("out of bounds")));
}

/// Two imports can be the same memory, or table, under two indices.
#[test]
fn what_overlaps_under_two_names_is_copied_as_it_was() {
    let text = r#"(component
        (core module $owner
            (memory (export "m") 1) (table (export "t") 40 funcref)
            (data (i32.const 0) "0123456789abcdefghijklmnopqrstuvwxyz"))
        (core instance $it (instantiate $owner))
        (core module $user
            (import "x" "m1" (memory $m1 1)) (import "x" "m2" (memory $m2 1))
            (import "x" "t1" (table $t1 40 funcref)) (import "x" "t2" (table $t2 40 funcref))
            (elem (table $t1) (i32.const 0) func $a $b $c $d $e $f $g $h $i)
            (func $a (result i32) (i32.const 0)) (func $b (result i32) (i32.const 1)) (func $c (result i32) (i32.const 2))
            (func $d (result i32) (i32.const 3)) (func $e (result i32) (i32.const 4)) (func $f (result i32) (i32.const 5))
            (func $g (result i32) (i32.const 6)) (func $h (result i32) (i32.const 7)) (func $i (result i32) (i32.const 8))
            (func (export "memory") (param i32 i32 i32) (memory.copy $m2 $m1 (local.get 0) (local.get 1) (local.get 2)))
            (func (export "table") (param i32 i32 i32) (table.copy $t2 $t1 (local.get 0) (local.get 1) (local.get 2)))
            (func (export "byte") (param i32) (result i32) (i32.load8_u $m1 (local.get 0)))
            (func (export "call") (param i32) (result i32)
                (if (result i32) (ref.is_null (table.get $t1 (local.get 0)))
                    (then (i32.const -1)) (else (call_indirect $t1 (result i32) (local.get 0))))))
        (core instance $used (instantiate $user (with "x" (instance
            (export "m1" (memory $it "m")) (export "m2" (memory $it "m"))
            (export "t1" (table $it "t")) (export "t2" (table $it "t"))))))
        (func (export "memory") (param "to" u32) (param "from" u32) (param "count" u32) (canon lift (core func $used "memory")))
        (func (export "table") (param "to" u32) (param "from" u32) (param "count" u32) (canon lift (core func $used "table")))
        (func (export "byte") (param "at" u32) (result s32) (canon lift (core func $used "byte")))
        (func (export "call") (param "at" u32) (result s32) (canon lift (core func $used "call"))))"#;
    let whole = wat::parse_str(text).expect("text");
    let pieces = split_by(&whole, TINY, 0).expect("readable").expect("something to split");
    for (to, from) in [(0, 3), (3, 0), (7, 7)] {
        let seen = [&whole, &pieces].map(|binary| {
            let component = wasmtime::component::Component::from_binary(&ENGINE, binary).expect("valid");
            let mut store = Store::new(&ENGINE, ());
            let linker = wasmtime::component::Linker::new(&ENGINE);
            let instance = linker.instantiate(&mut store, &component).expect("instance");
            for what in ["memory", "table"] {
                let copy = instance.get_typed_func::<(u32, u32, u32), ()>(&mut store, what).expect("function");
                copy.call(&mut store, (to, from, 22)).expect("in bounds");
            }
            ["byte", "call"].map(|what| {
                let look = instance.get_typed_func::<(u32,), (i32,)>(&mut store, what).expect("function");
                (0..40).map(|at| look.call(&mut store, (at,)).expect("there").0).collect::<Vec<_>>()
            })
        });
        assert_eq!(seen[0], seen[1], "22 from {from} to {to}");
    }
}

#[test]
fn modules_within_components_are_split() {
    let text = r#"(component
        (component (core module (memory 1) (func (param i32) (memory.fill (i32.const 0) (i32.const 0) (local.get 0)))))
        (core module (memory i64 1) (func (param i64) (memory.copy (i64.const 0) (i64.const 1) (local.get 0)))))"#;
    let whole = wat::parse_str(text).expect("text");
    let pieces = split(&whole).expect("readable").expect("something to split");
    wasmtime::component::Component::from_binary(&ENGINE, &pieces).expect("valid");
    // Nothing is left that isn't.
    let found = |binary: &[u8]| binary.windows(2).filter(|two| *two == [CALL, 1]).count();
    assert_eq!((found(&whole), found(&pieces)), (0, 2));
}

#[test]
fn a_trap_says_in_which_instruction_the_guest_was() {
    let text = r#"(module (memory 1)
        (func $clear (export "clear") (param i32) (memory.fill (i32.const 9) (i32.const 0) (local.get 0))))"#;
    let pieces = pieces_of(text).expect("something to split");
    let module = Module::from_binary(&ENGINE, &pieces).expect("valid");
    let mut store = Store::new(&ENGINE, ());
    let instance = Instance::new(&mut store, &module, &[]).expect("instance");
    let clear = instance.get_typed_func::<i32, ()>(&mut store, "clear").expect("function");
    let trapped = format!("{:#}", clear.call(&mut store, 65_530).expect_err("out of bounds"));
    let places: Vec<_> = ["memory.fill", "clear", "out of bounds"].map(|part| trapped.find(part).is_some()).to_vec();
    assert_eq!(places, [true; 3], "{trapped}");
}
