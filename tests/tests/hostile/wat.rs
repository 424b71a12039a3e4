//! Guests as text: modules with everything of WASI preview 1, and a shorthand for texts in memory.

/// What most guests attack with. A call answers with an error number of WASI, 0 for none.
const IMPORTS: &[(&str, &str)] = &[
    ("args_get", "i32 i32"),
    ("args_sizes_get", "i32 i32"),
    ("environ_get", "i32 i32"),
    ("environ_sizes_get", "i32 i32"),
    ("clock_res_get", "i32 i32"),
    ("clock_time_get", "i32 i64 i32"),
    ("fd_allocate", "i32 i64 i64"),
    ("fd_close", "i32"),
    ("fd_filestat_get", "i32 i32"),
    ("fd_filestat_set_size", "i32 i64"),
    ("fd_prestat_dir_name", "i32 i32 i32"),
    ("fd_prestat_get", "i32 i32"),
    ("fd_pwrite", "i32 i32 i32 i64 i32"),
    ("fd_read", "i32 i32 i32 i32"),
    ("fd_readdir", "i32 i32 i32 i64 i32"),
    ("fd_renumber", "i32 i32"),
    ("fd_seek", "i32 i64 i32 i32"),
    ("fd_write", "i32 i32 i32 i32"),
    ("path_create_directory", "i32 i32 i32"),
    ("path_filestat_get", "i32 i32 i32 i32 i32"),
    ("path_link", "i32 i32 i32 i32 i32 i32 i32"),
    ("path_open", "i32 i32 i32 i32 i32 i64 i64 i32 i32"),
    ("path_readlink", "i32 i32 i32 i32 i32 i32"),
    ("path_remove_directory", "i32 i32 i32"),
    ("path_rename", "i32 i32 i32 i32 i32 i32"),
    ("path_symlink", "i32 i32 i32 i32 i32"),
    ("path_unlink_file", "i32 i32 i32"),
    ("poll_oneoff", "i32 i32 i32 i32"),
    ("random_get", "i32 i32"),
    ("sched_yield", ""),
    ("sock_accept", "i32 i32 i32"),
    ("sock_send", "i32 i32 i32 i32 i32"),
];

/// Functions that say in a word what guests do often. The first folder is descriptor 3: the volume, if there is one, or else `/`.
const SHORTHANDS: &str = r#"
    (global $n (mut i32) (i32.const 0))
    ;; Opens what is at a path in the first folder; 1: makes it, 2: has to be a folder. Its descriptor is at 0.
    (func $open (param $path i32) (param $length i32) (param $flags i32) (result i32)
        (call $path_open (i32.const 3) (i32.const 1) (local.get $path) (local.get $length) (local.get $flags)
            (select (i64.const 2) (i64.const 66) (i32.eq (local.get $flags) (i32.const 2)))
            (i64.const 0) (i32.const 0) (i32.const 0)))
    ;; Writes to a descriptor.
    (func $write (param $fd i32) (param $at i32) (param $length i32) (result i32)
        (i32.store (i32.const 16) (local.get $at))
        (i32.store (i32.const 20) (local.get $length))
        (call $fd_write (local.get $fd) (i32.const 16) (i32.const 1) (i32.const 24)))
    ;; Reads to 4096.
    (func $read (param $fd i32) (result i32)
        (i32.store (i32.const 16) (i32.const 4096))
        (i32.store (i32.const 20) (i32.const 4096))
        (call $fd_read (local.get $fd) (i32.const 16) (i32.const 1) (i32.const 24)))
    ;; Writes to the log.
    (func $say (param $at i32) (param $length i32)
        (drop (call $write (i32.const 1) (local.get $at) (local.get $length))))
    ;; Ends here if something went wrong.
    (func $must (param $error i32)
        (if (local.get $error) (then (call $exit (i32.add (local.get $error) (i32.const 100))))))
    ;; A year.
    (func $sleep
        (memory.fill (i32.const 32) (i32.const 0) (i32.const 48))
        (i32.store (i32.const 48) (i32.const 1))
        (i64.store (i32.const 56) (i64.const 31536000000000000))
        (drop (call $poll_oneoff (i32.const 32) (i32.const 80) (i32.const 1) (i32.const 24))))
    ;; The next number as text of 8 digits at 2048.
    (func $next
        (local $rest i32) (local $at i32)
        (local.set $rest (global.get $n))
        (local.set $at (i32.const 2055))
        (loop $digits
            (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $rest) (i32.const 10))))
            (local.set $rest (i32.div_u (local.get $rest) (i32.const 10)))
            (local.set $at (i32.sub (local.get $at) (i32.const 1)))
            (br_if $digits (i32.ge_u (local.get $at) (i32.const 2048))))
        (global.set $n (i32.add (global.get $n) (i32.const 1))))"#;

/// Where texts are put.
const TEXTS: usize = 16 << 10;

/// A guest with this body of `_start`, which may use all calls by their names and every shorthand. `{text}` in it stands for a
/// text in memory: its place and its length. Memory from 64 KiB on is free.
pub(crate) fn guest(body: &str) -> String {
    guest_with(2, "", body)
}

/// The same with so many pages of memory, and more in the module.
pub(crate) fn guest_with(pages: u64, more: &str, body: &str) -> String {
    let mut at = TEXTS;
    let mut data = String::new();
    let mut texts = |code: &str| {
        let mut pieces = code.split('{');
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (text, rest) = piece.split_once('}').expect("a closed brace");
            let escaped: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
            data += &format!("(data (i32.const {at}) \"{escaped}\")\n");
            out += &format!("(i32.const {at}) (i32.const {}){rest}", text.len());
            at += text.len();
        }
        out
    };
    let (more, body) = (texts(more), texts(body));
    let import = |(name, params): &(&str, &str)| {
        format!("(import \"wasi_snapshot_preview1\" {name:?} (func ${name} (param {params}) (result i32)))\n")
    };
    let imports: String = IMPORTS.iter().map(import).collect();
    format!(
        "(module\n{imports}(import \"wasi_snapshot_preview1\" \"proc_exit\" (func $exit (param i32)))\n\
         (memory (export \"memory\") {pages})\n{data}{SHORTHANDS}\n{more}\n(func (export \"_start\") {body}))"
    )
}

/// A guest that exits with the error of one call.
pub(crate) fn call(name: &str, arguments: &str) -> String {
    guest(&format!("(call $exit (call ${name} {arguments}))"))
}

/// A module with nothing but this, and `_start`.
pub(crate) fn module(fields: &str, body: &str) -> String {
    format!("(module {fields} (func (export \"_start\") {body}))")
}

/// Without end.
pub(crate) fn forever(body: &str) -> String {
    format!("(loop $forever {body} (br $forever))")
}

/// So many times.
pub(crate) fn times(count: u32, body: &str) -> String {
    format!(
        "(global.set $n (i32.const 0)) (loop $again (call $next) {body} (br_if $again (i32.lt_u (global.get $n) (i32.const {count}))))"
    )
}
