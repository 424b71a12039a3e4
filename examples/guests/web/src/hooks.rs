//! What preStop hooks ask of a web server's image: `sleep 5`, `nginx -s quit`. A hook is another instance of this module,
//! called with the hook's command.

use guest_support::duration;
use husk_guest::{error, info};

/// Runs a hook's command. The answer is its exit code; None: it is no hook's.
pub(crate) fn run(called_as: &str, args: &[String]) -> Option<u8> {
    match (called_as.rsplit('/').next().unwrap_or_default(), args) {
        // Time for the node's Services to forget this pod before it drains.
        ("sleep", [time]) => match duration::parse(time) {
            Ok(time) => {
                std::thread::sleep(time);
                Some(0)
            }
            Err(message) => {
                error!("sleep: {message}");
                Some(1)
            }
        },
        (_, [flag, action]) if flag == "-s" => {
            // One instance can't signal another. The stop signal comes after the hook anyway, and drains.
            info!("-s {action}: left to the stop signal that follows");
            Some(0)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_told_from_servers() {
        let run = |name: &str, args: &[&str]| run(name, &args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
        assert_eq!(run("/bin/sleep", &["0"]), Some(0));
        assert_eq!(run("sleep", &["soon"]), Some(1));
        assert_eq!(run("nginx", &["-s", "quit"]), Some(0));
        assert_eq!(run("nginx", &["-g", "daemon off;"]), None);
        assert_eq!(run("web", &[]), None);
    }
}
