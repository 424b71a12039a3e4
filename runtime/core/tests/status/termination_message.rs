//! How much of a container's last words is kept.

use husk_core::termination_message::{from_file, from_log, join};

// spec: STATE-06
// spec: EDGE-25
#[test]
fn edge_25_the_end_of_a_file_is_kept_and_no_character_is_torn() {
    assert_eq!(from_file(b"well\n"), "well\n");
    assert_eq!(from_file(b""), "");
    let long = "x".repeat(5000) + "end";
    let kept = from_file(long.as_bytes());
    assert!(kept.len() == 4096 && kept.ends_with("xend"));
    // 4,096 is no multiple of three: the first of what was read is the last byte of a character.
    let wide = "\u{20ac}".repeat(2000);
    let read = &wide.as_bytes()[wide.len() - 4096..];
    assert_eq!(from_file(read), "\u{20ac}".repeat(1365));
}

// spec: STATE-06
#[test]
fn what_is_no_text_is_shown_as_such_and_cut_all_the_same() {
    assert_eq!(from_file(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
    let binary = from_file(&[0xff; 4096]);
    assert_eq!(binary, "\u{fffd}".repeat(1365));
}

// spec: STATE-06
// spec: EDGE-25
#[test]
fn edge_25_of_a_log_eighty_lines_or_2048_bytes() {
    let lines = |count: usize, width: usize| -> Vec<String> { (0..count).map(|n| format!("{n:0width$}\n")).collect() };
    let of = |lines: &[String]| from_log(lines.iter().map(String::as_str));
    assert_eq!(of(&lines(81, 5)), lines(81, 5)[1..].concat());
    let wide = lines(80, 50).concat();
    assert_eq!(of(&lines(80, 50)), wide[wide.len() - 2048..]);
    assert_eq!(of(&["\u{20ac}".repeat(1000)]), "\u{20ac}".repeat(682));
    assert_eq!(of(&[]), "");
}

// spec: STATE-06
#[test]
fn the_runtimes_words_come_first() {
    assert_eq!(join("unreachable", "goodbye"), "unreachable: goodbye");
    assert_eq!(join("", "goodbye"), "goodbye");
    assert_eq!(join("unreachable", ""), "unreachable");
}
