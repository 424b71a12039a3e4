//! `head`.

use std::io::{Read, Write};

use super::{Context, Status, plain};
use crate::cmdline;

/// `head [-n LINES | -c BYTES | -LINES] [FILE…]`.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let args: Vec<String> = context.operands().iter().map(|arg| with_option_letter(arg)).collect();
    let options = cmdline::parse(&args, "n:c:qv", &[])?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("invalid number '{text}'"));
    let lines = number(options.value("n").unwrap_or("10"))?;
    let bytes = options.value("c").map(number).transpose()?;
    let names = if options.operands.is_empty() { vec!["-"] } else { options.operands.clone() };
    let mut status = 0;
    for (index, name) in names.iter().enumerate() {
        let mut file = match context.open(name) {
            Ok(file) => file,
            Err(error) => {
                context.complain(format_args!("{name}: {}", plain(&error)));
                status = 1;
                continue;
            }
        };
        if names.len() > 1 && !options.has("q") {
            let gap = if index > 0 { "\n" } else { "" };
            writeln!(context.output, "{gap}==> {name} <==")?;
        }
        if let Some(bytes) = bytes {
            let mut start = Vec::new();
            file.take(bytes).read_to_end(&mut start)?;
            context.output.write_all(&start)?;
            continue;
        }
        for _ in 0..lines {
            let line = file.read_line()?;
            if line.is_empty() {
                break;
            }
            context.output.write_all(&line)?;
        }
    }
    Ok(status)
}

/// The old way to say how many lines: `-5` is `-n5`.
pub(super) fn with_option_letter(arg: &str) -> String {
    match arg.strip_prefix('-') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => format!("-n{digits}"),
        _ => arg.to_owned(),
    }
}
