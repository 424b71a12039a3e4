//! The command `sh`.

use super::{Outcome, Shell, interactive};

/// `sh -c TEXT [NAME [ARG…]]`, `sh FILE [ARG…]`, a script from the input, or lines from a person.
pub(crate) fn run(shell: &mut Shell, args: &[String]) -> Outcome {
    let options_end = match shell.options.read(&args[1..]) {
        Ok(count) => 1 + count,
        Err(message) => return Err(shell.fatal(&message)),
    };
    let takes_text =
        args[1..options_end].iter().any(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c'));
    let mut operands = args[options_end..].iter().cloned();
    if args.get(options_end).is_some_and(|arg| arg == "--" || arg == "-") {
        operands.next();
    }
    if takes_text {
        let Some(text) = operands.next() else { return Err(shell.fatal("-c: needs a text to run")) };
        if let Some(name) = operands.next() {
            shell.name = name;
        }
        shell.args = operands.collect();
        return shell.run_text(&text);
    }
    match operands.next() {
        Some(file) => {
            let is_here = shell.path(&file).is_file();
            // As POSIX says: a name without a slash is looked for here first, then along PATH.
            let path = if is_here && !file.contains('/') { format!("./{file}") } else { file };
            let args: Vec<String> = std::iter::once(path).chain(operands).collect();
            shell.run_script_file(&args)
        }
        None if interactive::is_meant(shell) => interactive::run(shell),
        None => match shell.read_all(0) {
            Ok(text) => shell.run_text(&text),
            Err(error) => Err(shell.fatal(&format!("input: {error}"))),
        },
    }
}
