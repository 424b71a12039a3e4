//! A small POSIX shell and the commands around it, in one module: what Linux images have `busybox` for.
//!
//! It goes by the name it is called with: `sleep 5` when that is the program's name, or `toolbox sleep 5`. By its own name
//! alone it is a shell, as busybox' image is.
//!
//! A Wasm instance has no child processes. So applets run inside the shell, pipelines run stage after stage with the
//! data in memory, subshells are copies of the shell's state, and background jobs don't exist but for `sleep`.

mod applets;
mod cmdline;
mod shell;
mod stream;

use shell::Shell;

/// How the names of the module's file begin, whatever was built of it. A command by any other name is one that isn't here.
const OWN_NAMES: [&str; 2] = ["toolbox", "busybox"];

fn main() {
    let mut args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let called_as = args.first().map(|name| base_name(name).to_owned()).unwrap_or_default();
    if applets::find(&called_as).is_none() && called_as != "sh" {
        if !OWN_NAMES.iter().any(|name| called_as.starts_with(name)) {
            eprintln!("{called_as}: not found");
            husk_guest::exit(127);
        }
        // Called by the module's name: the applet is the first argument.
        if !args.is_empty() {
            args.remove(0);
        }
        match args.first().map(String::as_str) {
            None => args.push("sh".to_owned()),
            Some("--list") => {
                println!("{}", applets::names().collect::<Vec<_>>().join("\n"));
                return;
            }
            Some(_) => {}
        }
    }
    let mut shell = Shell::from_environment();
    let status = shell.main(&args);
    husk_guest::exit(u8::try_from(status & 0xff).unwrap_or(255))
}

/// `/usr/bin/sleep` and `sleep.wasm` are both `sleep`.
fn base_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".wasm").unwrap_or(name)
}
