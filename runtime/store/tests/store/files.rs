//! Real files: locks, rights, names, and agents that are killed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use husk_core::Instant;
use husk_store::{Batch, Expect, OpenError, Store, Urgency};

use crate::support::sim::Random;
use crate::support::{PODS, body, options, pod, put};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_second_agent_is_refused_and_told_who_has_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("state.redb");
    let first = Store::open(&path, options()).expect("open");
    let error = Store::open(&path, options()).expect_err("refused");
    assert!(matches!(error, OpenError::InUse { by: Some(pid), .. } if pid == std::process::id()), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("another agent (process") && message.contains("--data-dir"), "{message}");
    drop(first);
    Store::open(&path, options()).expect("free again");
}

#[test]
fn nobody_else_may_read_it_and_nothing_else_is_left() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("state.redb");
    let store = Store::open(&path, options()).expect("open").store;
    store.commit(Instant::ZERO, put("web", "1", Expect::Absent)).expect("created");
    drop(store);
    assert_eq!(names(dir.path()), ["state.redb", "state.redb.lock"]);
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    // What an agent that was killed while it wrote a new file has left.
    fs::write(dir.path().join("state.redb.new"), "half of it").expect("written");
    let opened = Store::open(&path, options()).expect("open");
    assert_eq!((opened.set_aside, body(&opened.store, "web").as_deref()), (None, Some("1")));
}

#[test]
fn the_newest_three_that_were_set_aside_are_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("state.redb");
    for round in 1..=5 {
        fs::write(&path, format!("junk {round}")).expect("written");
        let aside = Store::open(&path, options()).expect("open").set_aside.expect("set aside");
        assert_eq!(aside.kept_as, format!("{}.corrupt-{round}", path.display()));
        assert!(aside.to_string().starts_with(&path.display().to_string()));
    }
    let kept =
        ["state.redb", "state.redb.corrupt-3", "state.redb.corrupt-4", "state.redb.corrupt-5", "state.redb.lock"];
    assert_eq!(names(dir.path()), kept);
    assert_eq!(fs::read_to_string(dir.path().join("state.redb.corrupt-4")).expect("kept"), "junk 4");
}

#[test]
fn a_directory_that_can_not_be_used_is_named_with_a_remedy() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("file"), "").expect("written");
    for (path, says) in [
        (dir.path().join("nowhere/state.redb"), "create the directory or use another --data-dir"),
        (dir.path().join("file/state.redb"), "use another --data-dir"),
        ("/proc/state.redb".into(), "use another --data-dir"),
    ] {
        let error = Store::open(&path, options()).expect_err("refused").to_string();
        assert!(error.contains(&path.display().to_string()) && error.contains(says), "{error}");
    }
}

const VICTIM: &str = "HUSK_STORE_VICTIM";

/// Does nothing, unless [`killed_agents_lose_nothing`] has started it.
#[test]
fn victim() {
    let Ok(path) = env::var(VICTIM) else { return };
    let opened = Store::open(Path::new(&path), options()).expect("open");
    let (store, now) = (opened.store, opened.now);
    let counter = body(&store, "counter").and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
    let mut out = std::io::stdout().lock();
    for count in counter + 1.. {
        // Both have to be there, or neither; and the record with them.
        let batch = put("counter", &count.to_string(), Expect::Any).put(
            pod("twin"),
            "u",
            count.to_string().into(),
            Expect::Any,
        );
        let filler = "x".repeat((count % 50) as usize * 100);
        let batch = batch.put(pod(&format!("filler-{}", count % 20)), "u", filler.into(), Expect::Any);
        store.persist(now, "pod", vec![0, (count % 251) as u8], Urgency::Soon);
        store.commit(now, batch).expect("committed");
        writeln!(out, "acknowledged {count}").and_then(|()| out.flush()).expect("somebody listens");
    }
}

// spec: NODE-04
#[test]
fn killed_agents_lose_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("state.redb");
    let mut random = Random(5);
    let mut last = 0;
    for _ in 0..30 {
        let mut victim = Command::new(env::current_exe().expect("this test"))
            .args(["--exact", "files::victim", "--nocapture"])
            .env(VICTIM, &path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut lines = BufReader::new(victim.stdout.take().expect("a pipe")).lines();
        // Somewhere after so many acknowledgements, sometimes while it opens.
        let mut said: Vec<_> = lines.by_ref().take(random.below(12)).map_while(Result::ok).collect();
        std::thread::sleep(Duration::from_micros(random.below(8000) as u64));
        victim.kill().expect("killed");
        victim.wait().expect("gone");
        said.extend(lines.map_while(Result::ok));
        let acknowledged = said.iter().filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok());
        let acknowledged: u64 = acknowledged.max().unwrap_or(last);

        let opened = Store::open(&path, options()).expect("open");
        assert_eq!(opened.set_aside, None);
        let count = body(&opened.store, "counter").and_then(|count| count.parse().ok()).unwrap_or(0);
        assert!(
            count == acknowledged || count == acknowledged + 1,
            "{count} is there, {acknowledged} was acknowledged"
        );
        assert!(count >= last);
        assert_eq!(body(&opened.store, "twin"), body(&opened.store, "counter"));
        if count > 0 {
            assert_eq!(opened.unreadable[0].bytes, [0, (count % 251) as u8]);
            assert!(opened.store.list(PODS).objects.len() >= 2);
        }
        last = count;
        // Dropped without a close, as if killed again.
        opened.store.commit(opened.now, Batch::new().fact("f", vec![])).expect("committed");
    }
    assert!(last > 30, "{last} commits");
}
