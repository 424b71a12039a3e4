//! The shell's language: script, output, exit code.

mod common;

use common::{check, toolbox};

#[test]
fn words_and_quotes() {
    check(&[
        ("echo a  b", "a b\n", 0),
        ("echo 'a  b' \"c  d\" e\\ f", "a  b c  d e f\n", 0),
        ("echo \"a\\\"b\\$c\\n\"", "a\"b$c\\n\n", 0),
        ("echo '$x' \"it's\"", "$x it's\n", 0),
        ("echo a#b # comment", "a#b\n", 0),
        ("echo a\\\nb", "ab\n", 0),
        ("echo ''; echo \"\" x", "\n x\n", 0),
        ("echo ~ ~/x '~'", "/home/me /home/me/x ~\n", 0),
        ("echo é 'ü'", "é ü\n", 0),
    ]);
}

#[test]
fn parameters() {
    check(&[
        ("X=1; echo $X ${X} \"$X\"", "1 1 1\n", 0),
        ("echo ${X:-d} ${X-e} ${X:+f}.", "d e .\n", 0),
        ("X=; echo ${X:-d} ${X-e}. ${X:+f}. ${X+g}", "d . . g\n", 0),
        ("echo ${X:=5} $X", "5 5\n", 0),
        ("X='a b'; echo ${#X}", "3\n", 0),
        ("F=/a/b.tar.gz; echo ${F##*/} ${F#*/} ${F%.*} ${F%%.*}", "b.tar.gz a/b.tar.gz /a/b.tar /a/b\n", 0),
        ("X='*'; F='*a'; echo \"${F#\"$X\"}\"", "a\n", 0),
        ("X=abcdef; echo ${X:2:3} ${X:4} ${X/b/X}", "cde ef aXcdef\n", 0),
        ("echo ${X:?must be set}; echo no", "", 2),
        ("set -- a 'b c'; echo $# $1 \"$2\"; for i in \"$@\"; do echo \"<$i>\"; done", "2 a b c\n<a>\n<b c>\n", 0),
        ("set -- a 'b c'; for i in $*; do echo \"<$i>\"; done; IFS=,; echo \"$*\"", "<a>\n<b>\n<c>\na,b c\n", 0),
        ("set --; for i in \"$@\"; do echo no; done; echo \"x$@y\"", "xy\n", 0),
        ("set -- 1 2 3 4 5 6 7 8 9 ten; echo ${10} $10; shift 2; echo $1 $#", "ten 10\n3 8\n", 0),
        ("false; echo $?; true; echo $?", "1\n0\n", 0),
        ("echo $$ $0", "1 sh\n", 0),
        ("X='a  b'; echo $X; echo \"$X\"", "a b\na  b\n", 0),
        ("IFS=:; X=a::b:; for i in $X; do echo \"<$i>\"; done", "<a>\n<>\n<b>\n", 0),
        ("X=${Y:-a b}; echo \"$X\"; for i in ${Y:-a b}; do echo $i; done", "a b\na\nb\n", 0),
        ("echo \"${X:-\"a  b\"}\" ${X:-'c  d'}", "a  b c  d\n", 0),
        ("X=1 Y=$X; echo $Y", "1\n", 0),
        ("X=${UNSET}; echo \"<$X>\" $UNSET", "<>\n", 0),
        ("unset X; X=3; unset X; echo ${X-gone}", "gone\n", 0),
        ("readonly R=1; R=2; echo no", "", 2),
    ]);
}

#[test]
fn substitutions() {
    check(&[
        ("echo $(echo a; echo b) `echo c`", "a b c\n", 0),
        ("echo \"$(printf 'a\\n\\nb\\n\\n')\"", "a\n\nb\n", 0),
        ("X=$(echo \"$(echo nested)\"); echo $X", "nested\n", 0),
        ("X=$(false); echo $?; X=1; echo $?", "1\n0\n", 0),
        ("X=1; echo $(X=2; echo $X) $X", "2 1\n", 0),
        ("echo `echo \\`echo deep\\``", "deep\n", 0),
        ("echo $(exit 3) $?", "3\n", 0),
        ("echo $((1+2*3)) $(( (1+2)*3 )) $((7/2)) $((-7%3)) $((1<<4|1))", "7 9 3 -1 17\n", 0),
        ("i=5; echo $((i+1)) $(($i*2)) $((i++)) $i $((i+=3)) $((i>8&&1))", "6 10 5 6 9 1\n", 0),
        ("echo $((2>1 ? 10 : 20)) $((0x10)) $((!5)) $((~0))", "10 16 0 -1\n", 0),
        ("echo $((1/0)); echo no", "", 2),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; echo $i", "3\n", 0),
    ]);
}

#[test]
fn braces_and_file_names() {
    check(&[
        ("for i in {1..5}; do echo -n $i; done; echo", "12345\n", 0),
        ("echo {a,b}{1,2} x{3..1}y {a..c}", "a1 a2 b1 b2 x3y x2y x1y a b c\n", 0),
        ("echo '{1..3}' \"{a,b}\" {x} {}", "{1..3} {a,b} {x} {}\n", 0),
        (
            "touch a.txt b.txt .c.txt d; echo *.txt ? [ab].txt *.none '*.txt' \\*",
            "a.txt b.txt d a.txt b.txt *.none *.txt *\n",
            0,
        ),
        ("mkdir -p x/1 x/2; touch x/1/f x/2/g; echo x/*/? */", "x/1/f x/2/g x\n", 0),
        ("touch 'a b'; for f in *; do echo \"<$f>\"; done", "<a b>\n", 0),
        ("touch a; set -f; echo *", "*\n", 0),
        ("touch a; X='*'; echo $X \"$X\"", "a *\n", 0),
    ]);
}

#[test]
fn conditions_and_loops() {
    check(&[
        ("if true; then echo y; else echo n; fi", "y\n", 0),
        ("if false; then echo a; elif true; then echo b; else echo c; fi", "b\n", 0),
        ("if false; then echo a; fi; echo $?", "0\n", 0),
        ("for i in a b c; do echo $i; done", "a\nb\nc\n", 0),
        ("for i in; do echo no; done; echo $?", "0\n", 0),
        ("i=0; until [ $i = 2 ]; do echo $i; i=$((i+1)); done", "0\n1\n", 0),
        ("for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done", "1\n3\n", 0),
        ("for i in 1 2; do for j in 1 2; do [ $j = 2 ] && continue 2; echo $i$j; done; done", "11\n21\n", 0),
        ("while true; do while true; do break 2; done; echo no; done; echo out", "out\n", 0),
        ("case abc in a*) echo 1;; *) echo 2;; esac", "1\n", 0),
        ("case x in a|x) echo ax;; esac; case y in (z) echo z;; esac; echo $?", "ax\n0\n", 0),
        ("case '*' in '\\*') echo 1;; \\*) echo 2;; esac", "2\n", 0),
        ("true && echo a || echo b; false && echo c || echo d", "a\nd\n", 0),
        ("! true; echo $?; ! false; echo $?", "1\n0\n", 0),
        ("break; continue; echo on", "on\n", 0),
        ("for i in 1 2 3\ndo\n  echo $i\ndone | tail -1", "3\n", 0),
    ]);
}

#[test]
fn functions() {
    check(&[
        ("f() { echo \"$1-$#\"; return 3; }; f a b; echo $?", "a-2\n3\n", 0),
        ("f() { local x=2; x=3; echo $x; }; x=1; f; echo $x", "3\n1\n", 0),
        ("f() { g; }; g() { echo g; }; f", "g\n", 0),
        ("set -- a; f() { set -- b; echo $1; }; f; echo $1", "b\na\n", 0),
        ("f() { return; }; false; f; echo $?", "1\n", 0),
        ("f() { [ $1 -gt 0 ] && { echo $1; f $(($1-1)); }; }; f 3", "3\n2\n1\n", 1),
        ("f() ( x=2; cd /; ); x=1; f; echo $x; [ \"$PWD\" = / ] || echo here", "1\nhere\n", 0),
        ("f() { echo out; } > file; f; cat file", "out\n", 0),
        ("echo() { command echo \"my $1\"; }; echo x", "my x\n", 0),
        ("f() { f; }; f; echo no", "", 2),
        ("f() { echo $x; }; x=1 f; echo \"<$x>\"", "1\n<>\n", 0),
    ]);
}

#[test]
fn groups_and_subshells() {
    check(&[
        ("{ echo a; echo b; } | cat", "a\nb\n", 0),
        ("(exit 4); echo $?", "4\n", 0),
        ("x=1; (x=2); echo $x; { x=3; }; echo $x", "1\n3\n", 0),
        ("(cd /; pwd); [ \"$(pwd)\" = / ] || echo here", "/\nhere\n", 0),
        ("( echo a; ( echo b ) )", "a\nb\n", 0),
    ]);
}

#[test]
fn pipelines_and_redirections() {
    check(&[
        ("printf 'b\\na\\n' | sort | head -n 1", "a\n", 0),
        ("false | true; echo $?; true | false; echo $?", "0\n1\n", 0),
        ("set -o pipefail; false | true; echo $?", "1\n", 0),
        ("echo a | while read x; do echo \"got $x\"; done", "got a\n", 0),
        ("echo x | { read a; echo $a; }; x=1; echo | x=2; echo $x", "x\n1\n", 0),
        ("echo a > f; echo b >> f; cat < f", "a\nb\n", 0),
        ("echo err >&2; echo out", "out\n", 0),
        ("{ echo out; echo err >&2; } > f 2>&1; cat f", "out\nerr\n", 0),
        ("ls nothing 2>/dev/null || echo failed", "failed\n", 0),
        ("cat <<E\nhi $((1+1)) $(echo x) 'q' \"d\"\nE", "hi 2 x 'q' \"d\"\n", 0),
        ("cat <<'E'\n$X `y`\nE\necho end", "$X `y`\nend\n", 0),
        ("cat <<-E\n\ttab\n\tE", "tab\n", 0),
        ("cat < nothing; echo $?", "1\n", 0),
        ("echo x > /nodir/f; echo $?", "1\n", 0),
        ("exec 3> f; echo three >&3; exec 3>&-; cat f", "three\n", 0),
        ("exec > f; echo hidden; cat f >&2", "", 0),
        ("printf 'a\\nb\\n' > f; while read l; do echo \"<$l>\"; done < f", "<a>\n<b>\n", 0),
        ("> f; [ -e f ] && echo made", "made\n", 0),
        ("echo a 2>&1 1>/dev/null", "", 0),
        ("echo to-stderr > /dev/stderr; echo to-stdout > /dev/stdout", "to-stdout\n", 0),
        ("printf 'a\\nb\\n' | (read x; cat)", "b\n", 0),
    ]);
}

#[test]
fn stages_after_an_endless_one_see_lines_as_they_come() {
    check(&[
        // The shell is ended while the first stage still runs: what was written before has gone through.
        ("while true; do echo a1; echo b2; kill $$; done | grep b", "b2\n", 143),
        ("while :; do echo a1; kill $$; done | sed 's/a/x/' | tr 1 2", "x2\n", 143),
        (
            "i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done | while read n; do echo \"<$n>\"; done",
            "<1>\n<2>\n<3>\n",
            0,
        ),
        ("while :; do echo x; done | while read n; do echo $n; break; done", "x\n", 0),
        ("while :; do echo x; done | while read n; do echo $n; exit 4; done", "x\n", 4),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); printf $i; done | cat", "123", 0),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done | wc -l", "3\n", 0),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done | sort -r | head -n 1", "3\n", 0),
    ]);
}

#[test]
fn exit_codes() {
    check(&[
        ("exit 7", "", 7),
        ("exit 300", "", 44),
        ("nosuchcommand; echo $?", "127\n", 0),
        ("nosuchcommand", "", 127),
        ("./nofile", "", 127),
        ("mkdir d; ./d", "", 126),
        ("printf '\\000asm' > m.wasm; ./m.wasm", "", 126),
        ("false; exit", "", 1),
        ("echo a; echo 'b", "", 2),
        ("if true; then echo", "", 2),
        ("echo a | | b", "", 2),
        (";;", "", 2),
        ("sleep 0 && exit 0; exit 1", "", 0),
        ("false || exit 88", "", 88),
        ("sleep abc", "", 1),
    ]);
}

#[test]
fn options() {
    check(&[
        ("set -e; false; echo no", "", 1),
        ("set -e; false || true; if false; then :; fi; ! true; false && true; echo on", "on\n", 0),
        ("set -e; f() { false; echo in; }; f || echo caught; echo on", "in\non\n", 0),
        ("set -e; (exit 5); echo no", "", 5),
        ("set -e; x=$(false); echo no", "", 1),
        ("set -u; echo $NOT; echo no", "", 2),
        ("set -u; echo ${NOT-ok} $# \"$@\"", "ok 0\n", 0),
        ("set -x; X=1; echo $X 2>/dev/null", "1\n", 0),
        ("set -eu; echo $-", "eu\n", 0),
        ("set -e; set +e; false; echo on", "on\n", 0),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let run = toolbox(dir.path(), &["sh", "-xc", "X=1; echo a$X"], "");
    assert_eq!(run.stderr, "+ X=1\n+ echo a1\n");
    let run = toolbox(dir.path(), &["sh", "-ec", "false; echo no"], "");
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(1)));
}

#[test]
fn builtins() {
    check(&[
        ("export X=1; sh -c 'echo $X'; Y=2; sh -c 'echo \"<$Y>\"'; Z=3 sh -c 'echo $Z'", "1\n<>\n3\n", 0),
        ("eval 'echo a; x=1'; echo $x", "a\n1\n", 0),
        ("echo 'y=5; return 4' > lib; . ./lib; echo $? $y", "4 5\n", 0),
        ("echo 'a b c' | { read x y; echo \"$x|$y\"; }", "a|b c\n", 0),
        ("printf 'a\\\\tb\\n' | { read -r x; echo \"$x\"; }", "a\\tb\n", 0),
        ("echo a:b:c | { IFS=: read x y z; echo $z$y$x; }", "cba\n", 0),
        ("read x < /dev/null; echo $?", "1\n", 0),
        ("command -v echo sh cd; command -v nosuch; echo $?", "echo\nsh\ncd\n127\n", 0),
        ("type cd nosuch; echo $?", "cd is a shell builtin\n127\n", 0),
        ("cd /tmp; cd ..; pwd; cd - ", "/\n/tmp\n", 0),
        ("cd /nowhere; echo $?", "1\n", 0),
        ("while getopts ab:c o; do echo \"$o ${OPTARG-}\"; done", "", 0),
        (
            "set -- -a -b val -cx rest; while getopts ab:c o; do echo \"$o ${OPTARG-}\"; done 2>/dev/null; shift $((OPTIND-1)); echo $1",
            "a \nb val\nc \n? \nrest\n",
            0,
        ),
        ("exec echo replaced; echo no", "replaced\n", 0),
        (": ${X:=1}; echo $X", "1\n", 0),
        ("umask 022; kill -0 1 && echo alive; kill -0 77; echo $?", "alive\n1\n", 0),
        ("env X=5 sh -c 'echo $X'; env -i sh -c 'echo \"<$HOME>\"'", "5\n<>\n", 0),
        ("cd /tmp; cd /; echo $PWD $OLDPWD", "/ /tmp\n", 0),
        ("/bin/echo a; /usr/bin/env true && echo b", "a\nb\n", 0),
        (
            "printf '#!/bin/sh\\necho \"$0 $1\"; exit 6' > s.sh; ./s.sh x; echo $?; sh s.sh y",
            "./s.sh x\n6\n./s.sh y\n",
            6,
        ),
    ]);
}

#[test]
fn traps() {
    check(&[
        ("trap 'echo bye' EXIT; echo hi", "hi\nbye\n", 0),
        ("trap 'echo bye' EXIT; exit 3", "bye\n", 3),
        ("trap 'exit 9' EXIT; exit 3", "", 9),
        ("trap 'echo term; exit 0' TERM; kill -TERM $$; echo no", "term\n", 0),
        ("trap 'echo int' INT; kill -INT 1; echo on", "int\non\n", 0),
        ("kill -TERM $$; echo no", "", 143),
        ("trap 'echo bye' EXIT; kill $$", "", 143),
        ("trap '' TERM; kill -TERM $$; echo still", "still\n", 0),
        ("trap 'echo t' TERM; trap - TERM; kill $$; echo no", "", 143),
        ("trap 'echo t' TERM; trap", "trap -- 'echo t' TERM\n", 0),
        ("trap 'echo $?' USR1; false; kill -USR1 $$; true", "0\n", 0),
        ("trap 'stop=1' TERM; while [ -z \"$stop\" ]; do kill $$; done; echo stopped", "stopped\n", 0),
        ("trap 'echo t; exit 5' TERM; (kill $$; echo no); echo no", "t\n", 5),
        ("trap 'echo t; exit 5' TERM; echo $(kill $$); echo no", "t\n", 5),
        ("trap 'echo t; exit 5' TERM; kill $$ | cat; echo no", "t\n", 5),
        ("(trap 'echo sub' EXIT); echo main", "sub\nmain\n", 0),
        ("kill -9 $$; echo no", "", 137),
        ("trap x NOSUCH; echo $?", "1\n", 0),
        ("f() { trap 'echo f' TERM; kill $$; }; f; echo on", "f\non\n", 0),
        // A stop signal cuts one pause short: the next one where none is under way.
        (
            "trap 'stop=1' TERM; while [ -z \"$stop\" ]; do kill $$; sleep 1h; done; echo $?; sleep 0.01; echo $?",
            "143\n0\n",
            0,
        ),
        ("trap 'sleep 0.01; echo $?' TERM; kill $$; sleep 1h; echo $?", "0\n143\n", 0),
        ("trap 'echo u' USR1; kill -USR1 $$; sleep 0.01; echo $?", "u\n0\n", 0),
        // What comes while a trap runs waits until it has ended.
        ("trap 'echo a; kill $$; echo b; trap - TERM' TERM; kill $$; echo no", "a\nb\n", 143),
    ]);
}

#[test]
fn background_jobs_are_refused_but_for_sleeps() {
    check(&[
        ("sleep 0.01 & wait; echo $? \"<$!>\"", "0 <>\n", 0),
        ("sleep 1h & echo $!; kill $!; wait; echo done", "2\ndone\n", 0),
        ("trap 'echo t; exit 3' TERM; sleep infinity & kill $$; wait; echo no", "t\n", 3),
        ("echo a & echo no", "", 2),
        ("(sleep 1; echo x) & echo no", "", 2),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let run = toolbox(dir.path(), &["sh", "-c", "server & wait"], "");
    assert!(run.stderr.contains("background jobs aren't possible"), "{run:?}");
}

#[test]
fn scripts_come_from_files_and_input_too() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s"), "echo $0 $1 $#\n").unwrap();
    assert_eq!(toolbox(dir.path(), &["sh", "s", "a", "b"], "").stdout, "./s a 2\n");
    assert_eq!(toolbox(dir.path(), &["sh"], "echo from input\nexit 4").code, Some(4));
    assert_eq!(toolbox(dir.path(), &[], "echo no name").stdout, "no name\n");
    assert_eq!(toolbox(dir.path(), &["sh", "-c", "echo $0 $1 $2", "name", "a", "b"], "").stdout, "name a b\n");
    assert_eq!(toolbox(dir.path(), &["/bin/sh", "-c", "exit 5"], "").code, Some(5));
    assert_eq!(toolbox(dir.path(), &["nosuch"], "").code, Some(127));
    let run = toolbox(dir.path(), &["sh", "-c", "if"], "");
    assert!(run.stderr.starts_with("sh: syntax error"), "{run:?}");
}
