//! The commands beside the shell: script, output, exit code.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;

use common::{check, toolbox};

#[test]
fn echo_and_printf() {
    check(&[
        ("echo -n a; echo -e 'b\\tc\\n'; echo -x; echo -", "ab\tc\n\n-x\n-\n", 0),
        ("echo -e 'a\\cb'; echo 'a\\nb'", "aa\\nb\n", 0),
        ("printf '%s-%s\\n' a b c", "a-b\nc-\n", 0),
        (
            "printf '%5d|%-5d|%05d|%+d|%x|%X|%o|%c|%%\\n' 42 42 42 42 255 255 8 abc",
            "   42|42   |00042|+42|ff|FF|10|a|%\n",
            0,
        ),
        ("printf '%.2f %8.3f %e\\n' 3.14159 2.5 12345", "3.14    2.500 1.234500e+04\n", 0),
        ("printf '%s\\n'; printf 'no arguments\\n' a", "\nno arguments\n", 0),
        ("printf '%b|%s\\n' 'a\\tb' 'a\\tb'", "a\tb|a\\tb\n", 0),
        ("printf '%.3s|%*d\\n' abcdef 4 7", "abc|   7\n", 0),
        ("printf '%d\\n' 0x1f 010 \"'A\"", "31\n8\n65\n", 0),
        ("printf '%d\\n' x", "0\n", 1),
        ("printf '\\101\\n'", "A\n", 0),
    ]);
}

#[test]
fn tests() {
    check(&[
        ("[ a = a ] && [ a != b ] && [ ! a = b ] && test -n x && test -z '' && echo ok", "ok\n", 0),
        ("[ 1 -lt 2 -a 2 -ge 2 ] && [ 1 -eq 2 -o 3 -ne 4 ] && [ \\( 1 -gt 0 \\) ] && echo ok", "ok\n", 0),
        (
            "touch f; mkdir d; echo x > g; [ -e f ] && [ -f f ] && [ -d d ] && [ ! -s f ] && [ -s g ] && [ ! -f d ] && echo ok",
            "ok\n",
            0,
        ),
        ("[ ]; echo $?; [ x ]; echo $?; [ ! ]; echo $?; [ = ]; echo $?", "1\n0\n0\n0\n", 0),
        ("[ a = a; echo $?; [ a -lt 1 ]; echo $?; [ a b ]; echo $?", "2\n2\n2\n", 0),
        ("[ -n \"$UNSET\" ]; echo $?; [ \"$UNSET\" = '' ]; echo $?; [ -z ]; echo $?", "1\n0\n0\n", 0),
    ]);
}

#[test]
fn files() {
    check(&[
        ("mkdir -p a/b; touch a/b/f; ls a a/b; rm -r a; ls; rm -f none; echo $?", "a:\nb\n\na/b:\nf\n0\n", 0),
        ("mkdir a; mkdir a; echo $?; mkdir -p a; echo $?; rmdir a; rm a; echo $?", "1\n0\n1\n", 0),
        ("touch b a .h; ls; ls -a; ls -r", "a\nb\n.\n..\n.h\na\nb\nb\na\n", 0),
        (
            "echo 12345 > f; ls -l f | cut -c 1; ls -l f | sed 's/  */ /g' | cut -d' ' -f5; ls none; echo $?",
            "-\n6\n1\n",
            0,
        ),
        ("echo x > a; cp a b; mv a c; cat b c; mkdir d; cp b c d; ls d; cp -r d e; ls e", "x\nx\nb\nc\nb\nc\n", 0),
        ("mkdir d; cp d e; echo $?", "1\n", 0),
        ("touch -c no; ls; echo text > f; touch f; cat f", "text\n", 0),
        ("mkdir x; touch x/f; ls -R; ls -d x; ls -F", ".:\nx\n\n./x:\nf\nx\nx/\n", 0),
    ]);
}

#[test]
fn text() {
    check(&[
        ("printf 'a\\nb\\n' | cat -n", "     1\ta\n     2\tb\n", 0),
        ("echo a > f; echo b | cat f - f; cat none; echo $?", "a\nb\na\n1\n", 0),
        (
            "seq 3; seq 2 4 | tr '\\n' ' '; seq 5 -2 1 | tr '\\n' ' '; seq -s, 1 3; seq -w 8 10; seq 0 .5 1; seq 2 1",
            "1\n2\n3\n2 3 4 5 3 1 1,2,3\n08\n09\n10\n0.0\n0.5\n1.0\n",
            0,
        ),
        ("seq 20 | head -n 2; seq 20 | head -1; printf abcdef | head -c 3", "1\n2\n1\nabc", 0),
        (
            "seq 20 | tail -n 2; seq 20 | tail -1; seq 5 | tail -n +4; printf abcdef | tail -c 2",
            "19\n20\n20\n4\n5\nef",
            0,
        ),
        ("echo a > f; echo b > g; head f g; tail -n 1 none; echo $?", "==> f <==\na\n\n==> g <==\nb\n1\n", 0),
        (
            "printf 'a b\\nc\\n' | wc; printf 'a b\\nc\\n' | wc -l; echo héé | wc -m; echo x > f; wc -c f",
            "        2         3         6\n2\n4\n2 f\n",
            0,
        ),
        (
            "echo hello | tr a-y b-z; echo HeLLo | tr '[:upper:]' '[:lower:]'; echo aabbc | tr -s ab; echo a1b2 | tr -d 0-9; echo a1 | tr -cd '0-9\\n'",
            "ifmmp\nhello\nabc\nab\n1\n",
            0,
        ),
        (
            "echo a:b:c | cut -d: -f2; echo a:b:c | cut -d: -f1,3; echo abcdef | cut -c2-4; echo a:b | cut -d: -f2-; echo none | cut -d: -f2",
            "b\na:c\nbcd\nb\nnone\n",
            0,
        ),
        (
            "printf 'b\\na\\nc\\na\\n' | sort; printf '10\\n9\\n' | sort -n; printf '1\\n2\\n' | sort -r; printf 'a\\na\\nb\\n' | sort -u",
            "a\na\nb\nc\n9\n10\n2\n1\na\nb\n",
            0,
        ),
        ("printf 'x 2\\ny 1\\n' | sort -k2 -n; printf 'a:3\\nb:1\\n' | sort -t: -k2", "y 1\nx 2\nb:1\na:3\n", 0),
        (
            "printf 'a\\na\\nb\\n' | uniq; printf 'a\\na\\nb\\n' | uniq -c; printf 'a\\na\\nb\\n' | uniq -d",
            "a\nb\n      2 a\n      1 b\na\n",
            0,
        ),
        ("echo x | tee f g; cat f g; echo y | tee -a f > /dev/null; cat f", "x\nx\nx\nx\ny\n", 0),
        (
            "basename /a/b.txt; basename /a/b.txt .txt; basename /; dirname /a/b; dirname a; dirname /a",
            "b.txt\nb\n/\n/a\n.\n/\n",
            0,
        ),
    ]);
}

#[test]
fn grep() {
    check(&[
        ("printf 'ab\\ncd\\n' | grep b; printf 'ab\\n' | grep x; echo $?", "ab\n1\n", 0),
        (
            "printf 'ab\\nAB\\n' | grep -i ab | wc -l; printf 'a\\nb\\n' | grep -v a; printf 'a\\na\\n' | grep -c a; printf 'x\\ny\\n' | grep -n y",
            "2\nb\n2\n2:y\n",
            0,
        ),
        (
            "echo a.c | grep -F .; echo abc | grep -Eo 'b|c'; echo ab | grep -q a && echo q; echo abc | grep '^a.c$'",
            "a.c\nb\nc\nq\nabc\n",
            0,
        ),
        (
            "echo foobar | grep -w foo; echo foo bar | grep -w foo; echo ab | grep -x a; echo a | grep -x a",
            "foo bar\na\n",
            0,
        ),
        (
            "echo a > f; echo b > g; grep a f g; grep -l a f g; grep -h . f g; grep a none; echo $?",
            "f:a\nf\na\nb\n2\n",
            0,
        ),
        (
            "printf 'a\\nb\\nc\\n' | grep -e a -e c; printf '1\\n2\\n3\\n' | grep -m1 .; echo 'a+b' | grep 'a+b'",
            "a\nc\n1\na+b\n",
            0,
        ),
        ("echo x | grep -E '('; echo $?; grep; echo $?", "2\n2\n", 0),
    ]);
}

#[test]
fn grep_by_its_other_names() {
    check(&[("echo 'a|b' | fgrep 'a|b'; echo b | egrep 'a|b'", "a|b\nb\n", 0)]);
}

#[test]
fn sed() {
    check(&[
        (
            "echo aaa | sed s/a/b/; echo aaa | sed s/a/b/g; echo aaa | sed s/a/b/2; echo /a/ | sed 's|/|-|g'",
            "baa\nbbb\naba\n-a-\n",
            0,
        ),
        (
            "echo 'key: v' | sed 's/\\(.*\\): \\(.*\\)/\\2=\\1/'; echo ab | sed -E 's/(a)(b)/\\2\\1&/'",
            "v=key\nbaab\n",
            0,
        ),
        ("seq 5 | sed -n 2,3p; seq 5 | sed '2,4d'; seq 3 | sed '$d'; seq 3 | sed -n '$='", "2\n3\n1\n5\n1\n2\n3\n", 0),
        ("seq 5 | sed -n '/2/,/4/p'; seq 3 | sed 2q; seq 3 | sed '/2/!d'", "2\n3\n4\n1\n2\n2\n", 0),
        (
            "echo a > f; sed -i s/a/b/ f; cat f; echo x | sed -e s/x/y/ -e s/y/z/; echo l | sed '1i top\n$a end'",
            "b\nz\ntop\nl\nend\n",
            0,
        ),
        ("echo a | sed k; echo $?", "1\n", 0),
    ]);
}

#[test]
fn environment_and_identity() {
    check(&[
        ("hostname; uname -m; whoami; id -u", "pod-1\nwasm32\nroot\n0\n", 0),
        ("export A=1; env | grep ^A=; printenv A; printenv NONE; echo $?; env B=2 printenv B", "A=1\n1\n1\n2\n", 0),
        ("env -u HOME printenv HOME; echo $?; which sh cat; which nosuch; echo $?", "1\n/bin/sh\n/bin/cat\n1\n", 0),
        (
            "date -d @1709251199 '+%Y-%m-%dT%H:%M:%SZ %a %j'; date -u -d @0 -Is; [ $(date +%s) -gt 1700000000 ] && echo now",
            "2024-02-29T23:59:59Z Thu 060\n1970-01-01T00:00:00+00:00\nnow\n",
            0,
        ),
        ("sleep 0; sleep 0.01 0s; sleep; echo $?", "1\n", 0),
        (
            "nslookup localhost | head -1 | cut -d: -f1; nslookup no.such.name.invalid; echo $?; nslookup; echo $?",
            "Name\n1\n1\n",
            0,
        ),
    ]);
}

#[test]
fn wget_fetches_plain_http() {
    let answers: [(&str, &str); 5] = [
        ("/plain", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ("/chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
        ("/moved", "HTTP/1.1 302 Found\r\nLocation: /plain\r\n\r\n"),
        ("/missing", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        ("/short", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"),
    ];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 4096];
            let count = stream.read(&mut request).unwrap();
            let text = String::from_utf8_lossy(&request[..count]).into_owned();
            let path = text.split(' ').nth(1).unwrap_or_default();
            let answer =
                answers.iter().find(|(known, _)| *known == path).map_or("HTTP/1.0 500 Oops\r\n\r\n", |(_, text)| text);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let fetch = |path: &str| {
        let url = format!("http://127.0.0.1:{port}{path}");
        let run = toolbox(dir.path(), &["wget", "-q", "-O", "-", &url], "");
        (run.stdout, run.code)
    };
    assert_eq!(fetch("/plain"), ("hello".to_owned(), Some(0)));
    assert_eq!(fetch("/chunked"), ("abcde".to_owned(), Some(0)));
    assert_eq!(fetch("/moved"), ("hello".to_owned(), Some(0)));
    assert_eq!(fetch("/missing"), (String::new(), Some(1)));
    assert_eq!(fetch("/short"), (String::new(), Some(1)));
    let run = toolbox(dir.path(), &["wget", &format!("127.0.0.1:{port}/plain")], "");
    assert_eq!((run.code, std::fs::read_to_string(dir.path().join("plain")).unwrap().as_str()), (Some(0), "hello"));
    let run = toolbox(dir.path(), &["wget", "https://127.0.0.1/"], "");
    assert!(run.code == Some(1) && run.stderr.contains("only plain HTTP"), "{run:?}");
}
