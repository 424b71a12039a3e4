//! Mounts of single files.

use std::fs::{self, File};
use std::path::Path;

use husk_core::io::Outcome;
use husk_engine::{ContainerConfig, Image, Log, Mount};
use tempfile::TempDir;

use crate::support::{engine, guest, start, text};

/// A folder on the disk of the node's data, so that files in it can have another name there.
fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

async fn shell(image: Image, mounts: Vec<Mount>, script: &str) -> (Outcome, Vec<String>) {
    let mut config = ContainerConfig::new(image);
    config.command = ["sh", "-c", script].map(String::from).to_vec();
    config.mounts = mounts;
    let (container, log) = start(config).await;
    (container.wait().await, text(&log))
}

/// An image with files.
fn directory_image(folder: &Path) -> Image {
    let toolbox = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests").join("toolbox.wasm");
    fs::create_dir_all(folder.join("etc/sub")).expect("made");
    fs::copy(toolbox, folder.join("toolbox.wasm")).expect("copied");
    fs::write(folder.join("etc/own"), "of the image\n").expect("written");
    fs::write(folder.join("etc/sub/deep"), "deep in it\n").expect("written");
    Image::open(folder).expect("an image")
}

#[tokio::test]
async fn a_file_is_seen_where_it_is_mounted_and_written_in_its_place() {
    let folder = folder();
    let file = folder.path().join("settings");
    fs::write(&file, "of the host\n").expect("written");
    let script = "cat /etc/app/settings; echo of the guest > /etc/app/settings; echo x > /etc/app/other && echo made";
    let mounts = vec![Mount::new(&file, "/etc/app/settings", false)];
    let (outcome, said) = shell(guest("toolbox"), mounts, script).await;
    assert_eq!((outcome, said), (Outcome::Code(0), vec!["of the host".into(), "made".into()]));
    assert_eq!(fs::read_to_string(&file).expect("there"), "of the guest\n");
}

#[tokio::test]
async fn what_a_guest_does_to_a_read_only_file_stays_with_it() {
    let folder = folder();
    let file = folder.path().join("settings");
    fs::write(&file, "of the host\n").expect("written");
    let script = "cat /settings; echo of the guest > /settings; rm /settings; mkdir /settings";
    let mounts = vec![Mount::new(&file, "/settings", true)];
    let (_, said) = shell(guest("toolbox"), mounts, script).await;
    assert_eq!(said[0], "of the host");
    assert_eq!(fs::read_to_string(&file).expect("there"), "of the host\n");
}

#[tokio::test]
async fn a_file_held_open_is_mounted_whatever_becomes_of_its_name() {
    let folder = folder();
    let file = folder.path().join("settings");
    fs::write(&file, "of the host\n").expect("written");
    let held = Mount::of(File::open(&file).expect("open").into(), "/settings", true);
    fs::rename(&file, folder.path().join("other")).expect("renamed");
    std::os::unix::fs::symlink("/etc/passwd", &file).expect("linked");
    let (outcome, said) = shell(guest("toolbox"), vec![held], "cat /settings").await;
    assert_eq!((outcome, said), (Outcome::Code(0), vec!["of the host".into()]));
}

#[tokio::test]
async fn a_file_stands_beside_those_of_an_image() {
    let folder = folder();
    let image = directory_image(&folder.path().join("image"));
    let file = folder.path().join("settings");
    fs::write(&file, "of the host\n").expect("written");
    for read_only in [true, false] {
        let mounts = vec![Mount::new(&file, "/etc/settings", read_only)];
        let script = "cat /etc/settings /etc/own /etc/sub/deep; echo x > /etc/own; echo x > /etc/sub/deep";
        let (_, said) = shell(image.clone(), mounts, script).await;
        assert_eq!(said[..3], ["of the host", "of the image", "deep in it"], "{said:?}");
    }
    let mounts = vec![Mount::new(&file, "/settings", true)];
    let (_, said) = shell(image, mounts, "cat /settings /etc/own").await;
    assert_eq!(said, ["of the host", "of the image"], "beside the root's own");
    let own = |name: &str| fs::read_to_string(folder.path().join("image/etc").join(name)).expect("there");
    assert_eq!((own("own").as_str(), own("sub/deep").as_str()), ("of the image\n", "deep in it\n"));
}

#[tokio::test]
async fn what_can_not_be_mounted_is_named() {
    let folder = folder();
    let file = folder.path().join("settings");
    fs::write(&file, "").expect("written");
    let volume = folder.path().join("volume");
    fs::create_dir(&volume).expect("made");
    for (mounts, wanted) in [
        (
            vec![Mount::new(&volume, "/data", false), Mount::new(&file, "/data/settings", true)],
            "/data, which is a volume",
        ),
        (vec![Mount::new("/dev/null", "/null", true)], "neither a folder nor a file"),
    ] {
        let mut config = ContainerConfig::new(guest("toolbox"));
        config.mounts = mounts;
        let error = engine().start(config, Log::default()).await.expect_err("it can't");
        assert_eq!(error.reason, "CreateContainerError");
        assert!(error.message.contains(wanted), "{}", error.message);
    }
    assert_eq!(fs::read_dir(&volume).expect("there").count(), 0);
}
