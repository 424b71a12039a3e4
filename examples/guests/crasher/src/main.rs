//! Ends in every way in which a container can end.
//!
//! It imports no signals, so a stop signal ends it by the default disposition.

mod faults;

use std::path::Path;
use std::thread;

use guest_support::duration;

const USAGE: &str = "\
usage: crasher [--after TIME] [--once FILE] WAY      (or CRASHER='--after 5s exit 3' in the environment)
  --after TIME    first sleep for so long: 500ms, 30s, 1m30s
  --once FILE     end well if the file exists, else make it and go on: a failure that is over after a restart
ways:
  exit CODE       with an exit code, 0 to 255
  panic           as Rust programs do when they give up (abort)
  unreachable     the unreachable instruction
  div-by-zero     an integer division by zero
  out-of-bounds   a load beyond the end of memory
  stack-overflow  a recursion without end
  out-of-memory   take memory until there is none
  loop            compute without end
  sleep           sleep without end
  log COUNT       write so many lines, then exit with 0";

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() {
        args = std::env::var("CRASHER").unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    }
    let code = crash(&args).unwrap_or_else(|message| {
        eprintln!("crasher: {message}\n{USAGE}");
        2
    });
    husk_guest::exit(code)
}

fn crash(args: &[String]) -> Result<u8, String> {
    let mut args = args.iter().map(String::as_str);
    loop {
        let way = args.next().ok_or("no way to end given")?;
        let mut value = |what: &str| args.next().ok_or(format!("{way} needs {what}"));
        match way {
            "--after" => thread::sleep(duration::parse(value("a time")?)?),
            "--once" => {
                let file = Path::new(value("a file")?);
                if file.exists() {
                    println!("{} exists: all is well", file.display());
                    return Ok(0);
                }
                std::fs::write(file, "").map_err(|error| format!("{}: {error}", file.display()))?;
            }
            "exit" => {
                let code = value("a code")?;
                let number: u8 = code.parse().map_err(|_| format!("'{code}' is no exit code: 0 to 255"))?;
                println!("exit {number}");
                return Ok(number);
            }
            "log" => {
                let count = value("a count")?;
                let count: u64 = count.parse().map_err(|_| format!("'{count}' is no count"))?;
                (1..=count).for_each(|line| println!("line {line}"));
                return Ok(0);
            }
            "panic" => std::process::abort(),
            "unreachable" => faults::unreachable(),
            "div-by-zero" => faults::div_by_zero(),
            "out-of-bounds" => faults::out_of_bounds(),
            "stack-overflow" => return Ok((faults::stack_overflow(1) & 1) as u8),
            "out-of-memory" => faults::out_of_memory(),
            "loop" => faults::endless_loop(),
            "sleep" => thread::sleep(std::time::Duration::MAX),
            other => return Err(format!("{other}: no such way")),
        }
    }
}
