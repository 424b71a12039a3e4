//! People and scripts that look into containers: `husk exec`, `attach` and `debug`, at a terminal and without one.

use std::fs::File;
use std::io::{Read, Write, copy};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::device::{Device, line_with, until};
use crate::verbs::WEB;

/// Nothing takes so long.
const STUCK: Duration = Duration::from_secs(60);
/// Between two words.
const PAUSE: Duration = Duration::from_millis(200);

/// A container that answers what is typed.
const ANSWERS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: answers}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: busybox
    command: [sh, -c, "echo up; while read line; do echo got $line; done; echo over >&2"]
    stdin: true
"#;

/// A command at a terminal, which `script` makes.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Receiver<Vec<u8>>,
    shown: String,
}

impl Terminal {
    fn of(device: &Device, arguments: &str) -> Self {
        let husk = device.command(&[]);
        let line = format!("{} {arguments}", husk.get_program().display());
        let mut script = Command::new("script");
        script
            .args(["-qec", &line, "/dev/null"])
            .envs(husk.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is installed");
        let (keys, mut output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (sender, screen) = channel();
        thread::spawn(move || {
            let mut piece = [0; 1024];
            while let Ok(read @ 1..) = output.read(&mut piece)
                && sender.send(piece[..read].to_vec()).is_ok()
            {}
        });
        Self { child, keys, screen, shown: String::new() }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Waits until this is on the screen, below what was waited for before.
    #[track_caller]
    fn shows(&mut self, wanted: &str) {
        while !self.shown.contains(wanted) {
            match self.screen.recv_timeout(STUCK) {
                Ok(piece) => self.shown.push_str(&String::from_utf8_lossy(&piece)),
                Err(error) => panic!("{error}: no {wanted:?} in {:?}", self.shown),
            }
        }
        let place = self.shown.find(wanted).expect("it is there");
        self.shown.drain(..place + wanted.len());
    }

    /// Its exit code, and what it showed until then.
    fn ends(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("it ends").code();
        for piece in self.screen.iter() {
            self.shown.push_str(&String::from_utf8_lossy(&piece));
        }
        (code, self.shown)
    }
}

#[test]
fn a_person_works_at_a_shell_in_a_pod() {
    let device = Device::start();
    device.apply(WEB);
    device.ready("web");
    for (arguments, last_word) in [
        ("exec -it web -c app -- sh", "command terminated with exit code 5\r\n"),
        ("debug -it web --image busybox --target app -c looker -- sh", "container looker has ended: Error\r\n"),
    ] {
        let mut terminal = Terminal::of(&device, arguments);
        // Its first prompt may be from before there was anybody to see it.
        terminal.types("echo $((6 * 7)) $PLAIN\r");
        terminal.shows("42 one two\r\n$ ");
        terminal.types("sleep 86400\r");
        terminal.shows("sleep 86400\r\n");
        terminal.types("\x03");
        terminal.shows("^C\r\n$ ");
        terminal.types("exit 5\r");
        let (code, shown) = terminal.ends();
        assert!(shown.ends_with(last_word), "{arguments}: {shown:?}");
        assert_eq!(code, Some(5), "{arguments}");
    }
    let pod = device.json(&["get", "pod", "web"]);
    let looker = &pod["status"]["ephemeralContainerStatuses"][0];
    assert_eq!((looker["name"].as_str(), &looker["state"]["terminated"]["exitCode"]), (Some("looker"), &5.into()));
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
}

#[test]
fn a_terminal_of_a_container_is_attached_to() {
    let device = Device::start();
    device.apply(&ANSWERS.replace("stdin: true", "stdin: true\n    tty: true"));
    device.ready("answers");
    let mut terminal = Terminal::of(&device, "attach -it answers");
    terminal.shows("If you don't see a command prompt, try pressing enter.");
    terminal.types("a word\r");
    terminal.shows("a word\r\ngot a word\r\n");
    // Ctrl-D.
    terminal.types("\x04");
    let (code, shown) = terminal.ends();
    assert!(shown.contains("over\r\n"), "{shown:?}");
    assert_eq!(code, Some(0));
}

#[test]
fn who_detaches_leaves_the_container_as_it_was() {
    let device = Device::start();
    device.apply(ANSWERS);
    device.ready("answers");
    for word in ["first", "second"] {
        let mut attach = device.command(&["attach", "-i", "answers"]);
        let mut attach = attach.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("husk starts");
        let mut stdin = attach.stdin.take().expect("piped");
        stdin.write_all(format!("{word}\n").as_bytes()).expect("it reads");
        line_with(&mut attach, &[&format!("got {word}")]);
        attach.kill().expect("it runs");
        attach.wait().expect("killed");
    }
    assert_eq!(device.husk(&["logs", "answers"]).ok(), "up\ngot first\ngot second\n");
    // Without an input it only shows what is said, from when it has connected on: somebody talks until it has.
    let mut watch = device.command(&["attach", "answers"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().expect("husk starts");
    let talk = device.command(&["attach", "-i", "answers"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut talk = talk.expect("husk starts");
    let mut stdin = talk.stdin.take().expect("piped");
    let talking = thread::spawn(move || {
        // Until the container has ended, and with it who reads.
        while stdin.write_all(b"third\n").is_ok() {
            thread::sleep(PAUSE);
        }
    });
    line_with(&mut watch, &["got third"]);
    device.husk(&["delete", "pod", "answers"]).ok();
    for mut child in [watch, talk] {
        assert!(child.wait().expect("it ends with the container").code().is_some());
    }
    talking.join().expect("it ends with its reader");
}

/// A container that is told to end twice, with another code each time.
const TWICE: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: twice}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: busybox
    command: [sh, -c, "n=1; [ -e /data/end-1 ] && n=2; while [ ! -e /data/end-$n ]; do echo life $n; sleep 0.1; done; exit $n"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - {name: data, emptyDir: {}}
"#;

#[test]
fn the_exit_code_is_that_of_the_instance_which_was_attached_to() {
    let device = Device::start();
    device.apply(TWICE);
    device.ready("twice");
    let end = |n: u8| device.husk(&["exec", "twice", "--", "sh", "-c", &format!("echo > /data/end-{n}")]).ok();
    let gate = Gate::before(&device);
    let shown = gate.folder.path().join("shown");
    let mut attach = device.command(&["attach", "twice"]);
    attach.env("HUSK_SOCKET", gate.socket()).stdout(File::create(&shown).expect("a file"));
    let mut attach = attach.spawn().expect("husk starts");
    // It has looked at the pod and is about to connect when the container is restarted.
    gate.asked.recv_timeout(STUCK).expect("it asks");
    end(1);
    device.husk(&["wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/twice"]).ok();
    device.ready("twice");
    gate.open.send(()).expect("it waits");
    until("it shows something", || std::fs::read_to_string(&shown).ok().filter(|shown| shown.contains("life 2")));
    end(2);
    assert_eq!(attach.wait().expect("it ends with the instance").code(), Some(2));
}

/// Passes on what clients say to the agent, but holds back who wants to attach until it is opened.
struct Gate {
    folder: TempDir,
    asked: Receiver<()>,
    open: Sender<()>,
}

impl Gate {
    fn before(device: &Device) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("gate.sock")).expect("a socket");
        let agent = device.socket();
        let ((asks, asked), (open, opened)) = (channel(), channel());
        thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                let mut first = vec![0; 8192];
                let length = client.read(&mut first).expect("a request");
                first.truncate(length);
                if first.windows(8).any(|word| word == b"/attach?") {
                    asks.send(()).expect("somebody waits");
                    opened.recv().expect("it is opened");
                }
                let mut server = UnixStream::connect(&agent).expect("the agent listens");
                server.write_all(&first).expect("it reads");
                let mut back = (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
                thread::spawn(move || {
                    let _ = copy(&mut back.0, &mut back.1);
                    let _ = back.1.shutdown(Shutdown::Both);
                });
                thread::spawn(move || {
                    let _ = copy(&mut client, &mut server);
                    let _ = server.shutdown(Shutdown::Write);
                });
            }
        });
        Self { folder, asked, open }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("gate.sock")
    }
}

#[test]
fn an_input_for_one_ends_with_the_first() {
    let device = Device::start();
    device.apply(&ANSWERS.replace("stdin: true", "stdin: true\n    stdinOnce: true"));
    device.ready("answers");
    let said = device.with_input(&["attach", "-i", "answers"], "a word\n");
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "got a word\n", "over\n"));
    device.husk(&["wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/answers", "--timeout=60s"]).ok();
    let late = device.husk(&["attach", "answers"]).failed();
    assert!(late.contains("cannot exec into a container in a completed pod; current phase is Succeeded"), "{late}");
}

#[test]
fn a_debugger_is_added_to_a_pod_that_runs() {
    let device = Device::start();
    device.apply(WEB);
    device.ready("web");
    let look = ["debug", "web", "--image", "busybox", "--target", "app", "--env", "WHO=me"];
    let script = ["--", "sh", "-c", "echo $WHO $PLAIN; cat /proc/1/comm; exit 3"];
    let said = device.husk(&[&look[..], &["-c", "looker"], &script].concat());
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
    let ended = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=3";
    device.husk(&["wait", &format!("--for={ended}"), "pod/web", "--timeout=60s"]).ok();
    assert_eq!(device.husk(&["logs", "web", "-c", "looker"]).ok(), "me one two\nsh\n");
    let again = device.husk(&[&look[..], &["-c", "looker"]].concat()).failed();
    assert!(again.contains("container with name \"looker\" already exists in pod web"), "{again}");
    // It is talked to, and its exit code is ours.
    let script = ["-i", "--", "sh", "-c", "read line; echo got $line; exit 4"];
    let said = device.with_input(&[&look[..], &script].concat(), "a word\n");
    let named = said.out.strip_prefix("Defaulting debug container name to debugger-");
    let named = named.unwrap_or_else(|| panic!("{said:?}"));
    assert_eq!((said.code, named.get(5..)), (4, Some(".\ngot a word\n")));
    let pod = device.json(&["get", "pod", "web"]);
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    assert!(device.husk(&["debug", "nobody", "--image", "busybox"]).failed().contains("(NotFound)"));
}
